"""Sampled quantities: same bits however they are run, inequalities that hold for every pair, honest stops."""

import tracemalloc
import warnings

import joblib
import numpy as np
import pytest

from contracts.work_clock import installed_work_clock
from fastpriv import (
    DomainError,
    Estimate,
    GaussianMixture,
    entropy,
    hockey_stick_divergence,
    jensen_shannon,
    kl_divergence,
    renyi_divergence,
    total_variation,
)
from fastpriv.divergences import label_information, log_hockey_stick_divergence
from fastpriv.errors import SamplingWarning
from properties.known import ask, known, mixtures_of

SURE = 1 - 1e-6
BRIEF = {"rtol": 0.02, "max_samples": 40_000, "max_seconds": np.inf, "confidence": SURE}


def pair(seed, dimension=None):
    """A random pair of mixtures, isotropic, diagonal or full."""
    rng = np.random.default_rng(seed)
    d = dimension or int(rng.integers(2, 7))
    out = []
    for _ in range(2):
        k = int(rng.integers(1, 6))
        weights, means = rng.dirichlet(np.ones(k)), rng.normal(0, 1.0, (k, d))
        form = rng.integers(3)
        if form == 0:
            out.append(GaussianMixture(weights, means, np.exp(rng.uniform(-0.3, 0.3, k))))
        elif form == 1:
            out.append(GaussianMixture(weights, means, np.exp(rng.uniform(-0.3, 0.3, (k, d)))))
        else:
            roots = np.eye(d) + rng.normal(0, 0.2, (k, d, d))
            out.append(GaussianMixture(weights, means, covariances=roots @ roots.transpose(0, 2, 1)))
    return out


def bits(answer):
    return [np.asarray(part).tobytes() for part in (answer.value, answer.lower, answer.upper)]


P, Q = pair(1, 3)
CALLS = {
    "kl": lambda **k: kl_divergence(P, Q, **k),
    "kl both": lambda **k: kl_divergence(P, Q, both=True, **k),
    "js": lambda **k: jensen_shannon(P, Q, **k),
    "tv": lambda **k: total_variation(P, Q, **k),
    "hockey-stick": lambda **k: hockey_stick_divergence(P, Q, [0.0, 1.0, 20.0], **k),
    "renyi": lambda **k: renyi_divergence(P, Q, 0.5, **k),
    "entropy": lambda **k: entropy(P, **k),
    "label": lambda **k: label_information(P, **k),
}


@pytest.mark.parametrize("name", CALLS)
def test_the_same_seed_gives_the_same_bits_for_any_number_of_workers(name):
    call, fixed = CALLS[name], {"rng": 7, "rtol": 0.01, "max_samples": 60_000, "max_seconds": np.inf}
    want = bits(call(n_jobs=1, **fixed))
    for n_jobs in (None, 2, 4):
        assert bits(call(n_jobs=n_jobs, **fixed)) == want, n_jobs
    assert bits(call(n_jobs=2, progress=lambda done, total: None, **fixed)) == want
    assert bits(call(n_jobs=1, progress=True, **fixed)) == want
    with joblib.parallel_config("threading", n_jobs=3):
        assert bits(call(**fixed)) == want
    assert bits(call(**fixed | {"rng": 8})) != want


@pytest.mark.parametrize("name", ["kl", "hockey-stick"])
def test_the_same_seed_gives_the_same_bits_in_processes(name):
    fixed = {"rng": [3, 1], "rtol": 0.0, "max_samples": 40_000, "max_seconds": np.inf}
    want = bits(CALLS[name](n_jobs=1, **fixed))
    for backend in ("loky", "multiprocessing"):
        with joblib.parallel_config(backend, n_jobs=2):
            assert bits(CALLS[name](**fixed)) == want


@pytest.mark.few(1)
@pytest.mark.parametrize("method", ["direct sobol", "direct antithetic", "direct random", "direct plain"])
def test_the_same_seed_gives_the_same_bits_where_a_replicate_has_many_segments(method, monkeypatch):
    monkeypatch.setattr("fastpriv.sampling.replicates.SEGMENT_COST", 2.0**17)
    fixed = {"rng": 5, "rtol": 0.0, "max_samples": 600_000, "max_seconds": np.inf, "method": method}
    assert bits(kl_divergence(P, Q, n_jobs=1, **fixed)) == bits(kl_divergence(P, Q, n_jobs=3, **fixed))


def test_generators_and_seeds_name_streams():
    fixed = {"rtol": 0.0, "max_samples": 3000}
    sequence = np.random.SeedSequence(9)
    assert bits(kl_divergence(P, Q, rng=sequence, **fixed)) == bits(kl_divergence(P, Q, rng=9, **fixed))
    generators = [np.random.default_rng(4), np.random.default_rng(4)]
    first, again = (bits(kl_divergence(P, Q, rng=g, **fixed)) for g in generators)
    assert first == again
    assert bits(kl_divergence(P, Q, rng=generators[0], **fixed)) != first  # a generator moves on
    assert bits(kl_divergence(P, Q, **fixed)) != bits(kl_divergence(P, Q, **fixed))


SEEDS = [*range(10, 14), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(14, 18))]


def below(small, large):
    """small <= large as far as the intervals can tell."""
    return np.all(np.asarray(small.lower) <= np.asarray(large.upper))


def meets(a, b):
    return below(a, b) and below(b, a)


@pytest.mark.parametrize("seed", SEEDS)
def test_dropping_a_coordinate_never_increases_a_divergence(seed):
    laws = pair(seed)
    d = laws[0].dimension
    shorter = []
    for law in laws:
        if law.form == "full":
            shorter.append(GaussianMixture(law.weights, law.means[:, 1:], covariances=law.covariances[:, 1:, 1:]))
        else:
            sigmas = law.sigmas[:, 1:] if law.form == "diagonal" else law.sigmas
            shorter.append(GaussianMixture(law.weights, law.means[:, 1:], sigmas))
    assert shorter[0].dimension == d - 1
    for call in (
        lambda p, q: kl_divergence(p, q, rng=1, **BRIEF), lambda p, q: jensen_shannon(p, q, rng=2, **BRIEF),
        lambda p, q: hockey_stick_divergence(p, q, [0.0, 0.5, 3.0], rng=3, **BRIEF),
        lambda p, q: renyi_divergence(p, q, 0.5, rng=4, **BRIEF),
    ):
        assert below(call(*shorter) if d > 2 else on_the_line(call, shorter), call(*laws))


def on_the_line(call, laws):
    assert all(law.dimension == 1 for law in laws)
    return call(*laws)


@pytest.mark.parametrize("seed", SEEDS)
def test_symmetries_and_bounds(seed):
    p, q = pair(seed)
    kl = kl_divergence(p, q, rng=1, **BRIEF)
    js, tv = jensen_shannon(p, q, rng=2, **BRIEF), total_variation(p, q, rng=3, **BRIEF)
    assert kl.lower >= 0
    assert 0 <= js.lower <= js.upper <= np.nextafter(np.log(2), 1)
    assert 0 <= tv.lower <= tv.upper <= 1
    assert meets(js, jensen_shannon(q, p, rng=4, **BRIEF))
    assert meets(tv, total_variation(q, p, rng=5, **BRIEF))
    assert meets(tv, hockey_stick_divergence(p, q, 0.0, rng=6, **BRIEF))
    assert 2 * tv.lower**2 <= kl.upper  # Pinsker
    assert tv.lower**2 / 2 <= js.upper  # the same for both halves
    label = label_information(p, rng=7, **BRIEF)
    assert 0 <= label.lower <= -np.sum(p.weights * np.log(p.weights)) * (1 + 1e-12)


@pytest.mark.parametrize("seed", SEEDS)
def test_hockey_sticks_fall_with_epsilon_and_agree_with_their_logarithm(seed):
    p, q = pair(seed)
    grid = np.array([0.0, 0.1, 0.5, 1.0, 2.0, 5.0, 12.0, 30.0, np.inf])
    values = hockey_stick_divergence(p, q, grid, rng=1, **BRIEF)
    assert (values.upper[:-1] >= values.lower[1:]).all()
    assert values.value[-1] == 0
    assert values.upper[-1] <= 1e-14  # weights that sum to 1 up to rounding
    assert ((values.lower >= 0) & (values.upper <= 1)).all()
    logs = log_hockey_stick_divergence(p, q, grid, rng=2, **BRIEF)
    assert (np.exp(logs.lower) <= values.upper * (1 + 1e-12)).all()
    assert (values.lower <= np.exp(logs.upper) * (1 + 1e-12)).all()
    assert logs.unit == "log probability"
    a = np.exp(grid[:-1])  # H is convex in e^epsilon
    slope = (values.lower[1:-1] - values.upper[:-2]) / np.diff(a)
    back = (values.upper[1:-1] - values.lower[:-2]) / np.diff(a)
    assert (slope[:-1] <= back[1:] + 1e-12).all()


@pytest.mark.parametrize("seed", SEEDS)
def test_an_affine_map_changes_no_divergence(seed):
    p, q = pair(seed)
    d = p.dimension
    rng = np.random.default_rng(seed)
    matrix, shift = np.eye(d) * np.exp(rng.normal(0, 3)) + rng.normal(0, 0.1, (d, d)), rng.normal(0, 100, d)
    moved = []
    for law in (p, q):
        sigmas = None if law.sigmas is None else np.broadcast_to(law.sigmas.reshape(len(law), -1), law.means.shape)
        full = law.covariances if sigmas is None else np.stack([np.diag(s * s) for s in sigmas])
        full = matrix @ full @ matrix.T
        full = (full + full.transpose(0, 2, 1)) / 2
        moved.append(GaussianMixture(law.weights, law.means @ matrix.T + shift, covariances=full))
    for call in (kl_divergence, jensen_shannon, total_variation):
        assert meets(call(p, q, rng=1, **BRIEF), call(*moved, rng=1, **BRIEF)), call
    change = np.linalg.slogdet(matrix)[1]
    before, after = entropy(p, rng=2, **BRIEF), entropy(moved[0], rng=2, **BRIEF)
    assert before.lower + change <= after.upper + 1e-9
    assert after.lower <= before.upper + change + 1e-9


@pytest.mark.parametrize("seed", SEEDS)
def test_both_directions_agree_with_single_calls(seed):
    p, q = pair(seed)
    for call in (kl_divergence, lambda *laws, **k: hockey_stick_divergence(*laws, [0.0, 1.5], **k)):
        both = call(p, q, both=True, rng=1, **BRIEF)
        assert both.shape[0] == 2
        assert meets(both[0], call(p, q, rng=2, **BRIEF))
        assert meets(both[1], call(q, p, rng=3, **BRIEF))


def test_orders_of_renyi_divergences_are_ordered():
    p, q = mixtures_of("plane")
    kl = kl_divergence(p, q, rng=1, **BRIEF)
    low, high = (renyi_divergence(p, q, order, rng=2, **BRIEF) for order in (0.9, 1.1))
    assert below(low, kl)
    assert below(kl, high)
    assert below(renyi_divergence(p, q, 0.5, rng=3, **BRIEF), low)
    near, back = renyi_divergence(p, q, 0.25, rng=4, **BRIEF), renyi_divergence(q, p, 0.75, rng=5, **BRIEF)
    assert near.lower * 0.75 <= back.upper * 0.25  # (1 - a) D_a(p||q) = a D_(1-a)(q||p)
    assert back.lower * 0.25 <= near.upper * 0.75


# stops


def interrupting(after):
    def progress(done, total):
        progress.calls += 1
        if progress.calls > after:
            raise KeyboardInterrupt

    progress.calls = 0
    return progress


@pytest.mark.parametrize("after", [10, 20])
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_an_interruption_carries_what_was_reached(after, n_jobs):
    row = known("plane", "kl_PQ")
    with pytest.raises(KeyboardInterrupt, match=r"the run was interrupted after \d+ samples\.") as stopped:
        ask(row, rtol=0.0, max_samples=4_000_000, rng=1, n_jobs=n_jobs, progress=interrupting(after), confidence=SURE)
    answer = stopped.value.best
    assert stopped.value.__notes__ == ["The result that was reached is the attribute best of this error."]
    assert answer.lower <= row.value <= answer.upper
    assert answer.cost["stopped"] == "interrupted"
    assert 0 < answer.cost["samples"] < 4_000_000


def test_an_interruption_before_anything_is_passed_on():
    p, q = mixtures_of("plane")
    with pytest.raises(KeyboardInterrupt) as stopped:
        kl_divergence(p, q, rtol=0.0, max_samples=10_000, progress=interrupting(0), method="direct sobol", rng=1)
    assert not hasattr(stopped.value, "best")


def test_an_interruption_carries_the_unit_that_was_asked_for():
    p, q = mixtures_of("plane")
    words = {"rtol": 0.0, "max_samples": 4_000_000, "rng": 1}
    found = {}
    for unit in ("nats", "bits"):
        for name, call in (("kl", kl_divergence), ("renyi", lambda *laws, **k: renyi_divergence(*laws, 1.0, **k))):
            with pytest.raises(KeyboardInterrupt) as stopped:
                call(p, q, unit=unit, progress=interrupting(20), **words)
            found[name, unit] = stopped.value.best
    assert found["kl", "bits"].unit == found["renyi", "bits"].unit == "bits"
    same = [found["kl", "bits"], found["renyi", "bits"], found["kl", "nats"].to("bits")]
    assert len({(one.value, one.lower, one.upper) for one in same}) == 1


def test_an_interruption_of_a_call_with_an_estimate_carries_nothing():
    """What one end of its bracket came to is not an answer."""
    p, q = mixtures_of("plane")
    order = Estimate(2.0, 1.9, 2.1, kind="certified", unit="1", method="measured")
    with pytest.raises(KeyboardInterrupt) as stopped:
        renyi_divergence(p, q, order, rtol=0.0, max_samples=4_000_000, rng=1, progress=interrupting(30))
    assert not hasattr(stopped.value, "best")


def test_the_time_budget_is_kept(monkeypatch):
    row = known("product-16-affine", "kl_PQ")
    for seconds in (0.05, 0.4):
        clock = installed_work_clock(monkeypatch, look=1e-3, term=1e-8)
        answer = ask(row, rtol=0.0, max_samples=2**40, max_seconds=seconds, rng=1, confidence=SURE)
        assert seconds <= clock.now < 1.5 * seconds
        assert answer.cost["stopped"] == "max_seconds"
        assert answer.lower <= row.value <= answer.upper


def test_budgets_and_targets_are_kept():
    row = known("plane", "kl_PQ")
    for most in (8, 9, 31, 100, 1000, 12_345):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SamplingWarning)
            answer = ask(row, rtol=0.0, max_samples=most, rng=1)
        assert answer.cost["samples"] <= most
        assert answer.lower <= answer.value <= answer.upper
    for rtol in (0.1, 0.01, 0.001):
        answer = ask(row, rtol=rtol, rng=2)
        assert answer.cost["stopped"] == "target"
        assert answer.width / 2 <= rtol * answer.value
    answer = ask(row, rtol=0.0, atol=0.005, rng=3)
    assert answer.width / 2 <= 0.005
    whole = ask(row, rtol=0.1, max_samples=1e5, rng=4)  # people write budgets like this
    assert whole.cost["samples"] <= 100_000


def test_one_sided_bounds_leave_the_other_end_trivial_and_are_tighter():
    row = known("plane", "kl_PQ")
    fixed = {"rtol": 0.0, "max_samples": 20_000, "rng": 1, "method": "direct sobol"}
    both, upper, lower = (ask(row, side=side, **fixed) for side in ("both", "upper", "lower"))
    assert upper.lower == 0
    assert lower.upper == np.inf
    assert upper.upper < both.upper
    assert lower.lower > both.lower


def test_a_guarantee_is_wider_and_says_so():
    p, q = mixtures_of("plane")
    fixed = {"rtol": 0.0, "max_samples": 30_000, "rng": 1}
    proved, usual = (total_variation(p, q, interval=kind, **fixed) for kind in ("guaranteed", "replicates"))
    assert proved.width > usual.width
    assert proved.method != usual.method


def peak(samples):
    p, q = mixtures_of("plane")
    kl_divergence(p, q, rtol=0.0, max_samples=1000, rng=1)
    tracemalloc.start()
    kl_divergence(p, q, rtol=0.0, max_samples=samples, max_seconds=np.inf, rng=1, n_jobs=1)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return most


def test_memory_does_not_grow_with_the_samples():
    few, many = peak(200_000), peak(4_000_000)
    assert many <= 1.5 * few + 2**20
    assert many <= 64 * 2**20


def test_thousands_of_epsilons_share_a_run():
    p, q = mixtures_of("shared-plane-in-16")
    grid = np.linspace(0.0, 3.0, 2000)
    answer = hockey_stick_divergence(p, q, grid, rtol=0.05, atol=1e-3, rng=1, max_samples=100_000)
    assert answer.shape == (2000,)
    assert (np.diff(answer.value) <= 1e-12).all() or (answer.upper[:-1] >= answer.lower[1:]).all()


def test_exact_answers_need_no_samples():
    p, q = mixtures_of("single-16")
    assert kl_divergence(p, q).kind in ("exact", "certified")
    assert kl_divergence(p, p).value == 0
    for law in (total_variation, jensen_shannon):
        assert law(p, p).upper == 0
    collinear, other = mixtures_of("collinear-24")
    for row in (known("collinear-24", "kl_PQ"), known("collinear-24", "hockey_stick", 6.0)):
        answer = ask(row, certified=True) if row.quantity == "kl_PQ" else ask(row)
        assert answer.kind in ("exact", "certified")
        assert answer.lower <= row.high
        assert row.low <= answer.upper
    with pytest.raises(DomainError, match="certified must be False where nothing reduces"):
        kl_divergence(*mixtures_of("plane"), certified=True)
    assert collinear.dimension == other.dimension == 24
