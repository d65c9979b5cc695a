"""Mistakes whose errors came from deep inside: each is one sentence with argument, value and what to do."""

import json
import re
from pathlib import Path

import numpy as np
import pytest

import fastpriv
from fastpriv import (
    Channel,
    DomainError,
    Estimate,
    GaussianMechanism,
    GaussianMixture,
    Pmf,
    RandomizedResponse,
    assess,
    conversions,
    figures,
    hockey_stick_divergence,
    kl_divergence,
    notions,
    posterior,
    read_column,
    renyi_divergence,
)
from fastpriv.channels import DefaultChannel, ProductLikelihood, rank_of_subset, subset_of_rank
from fastpriv.conversions import lip_delta_from_pointwise_lmip
from fastpriv.errors import ShapeError
from fastpriv.mechanisms import BatchGradient, SubsetSelection, UnaryEncoding
from fastpriv.sampling import stopping

NORMAL, OTHER = GaussianMixture.single(0.0, 1.0), GaussianMixture.single(1.0, 1.0)
TWO = GaussianMixture([0.5, 0.5], [0.0, 1.0], 1.0)
PRIOR, NOISE = Pmf([0.0, 1.0], [0.5, 0.5]), GaussianMechanism(1.0, 1.0)
REPORT = assess([1, 2, 2, 3], sigma=[1.0], epsilon=[0.5])
STEP = BatchGradient.from_gradients(np.eye(9), 2, sigma=1.0)
MANY = RandomizedResponse(2, 1.0).product(RandomizedResponse(3, 1.0))


def told(mechanism):
    return notions.pac_accuracy(mechanism, [1.0, 2.0], 0.0, 1.0, rng=1)


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: assess({"a": [1, 2]}, mechanism=3), DomainError, "mechanism must be a name or a channel, or a sequ"),
        (lambda: figures.curves(3), DomainError,
         r"report must be what fastpriv.assess returns for one column and one mechanism; got 3. Pass its result"),
        (lambda: figures.comparison(REPORT), DomainError,
         "report must be what fastpriv.assess returns for several columns or mechanisms; got"),
        (lambda: figures.curves(REPORT, ax="here"), DomainError,
         r"ax must be axes of matplotlib; got 'here'. Pass Figure\(\).add_subplot\(\), or leave it out"),
        (lambda: REPORT.to_figure("figure.doc"), DomainError,
         r"path must be a name that ends in .png, .svg or .pdf; got 'figure.doc'. Choose one of these endings"),
        (lambda: NOISE.delta("1"), DomainError, r"epsilon must be a number; got '1'. Convert it with float\(\)"),
        (lambda: notions.lip_delta(PRIOR, NOISE, None), DomainError, "epsilon must be at least 0; got None. Pass"),
        (lambda: hockey_stick_divergence(NORMAL, OTHER, 1 + 2j), DomainError, "got .1.2j.. Pass a number, or an"),
        (lambda: conversions.mbp_from_lip([[1], [1, 2]]), DomainError, "epsilon .*an array of real numbers"),
        (lambda: Channel([[0.5, 0.5], [1]]), (DomainError, ShapeError), r"matrix must be .*; got \[\[0.5, 0.5"),
        (lambda: told(lambda rng, n: rng.normal(size=n)), DomainError,
         r"mechanism must draw .* TypeError.*It is called as mechanism\(rng, n, secret\) and returns \(n, 1\)"),
        (lambda: posterior(np.sin), DomainError,
         "likelihood must be a function without arguments that yields arrays; got TypeError: sin.*IndexLikelihood"),
        (lambda: DefaultChannel(4, [0.5, 0.5], [1], None), DomainError, "rows must be probabilities; got None"),
        (lambda: DefaultChannel(4, [0.5, 0.5], [1], [[2.0, -1.0]]), DomainError, "rows with default must be made of"),
        (lambda: Channel([[1.0, 0.0]]).then([[0.5, 0.5], [1]]), (DomainError, ShapeError), "post must be"),
        (lambda: notions.ldp_epsilon(None, [[0.5, 0.6]]), DomainError, "each row of mechanism must sum to 1"),
        (lambda: notions.mbp(PRIOR, "gaussian"), DomainError,
         "mechanism must be a channel, rows of probabilities or a GaussianMechanism; got 'gaussian'. Build one"),
        (lambda: NOISE.output_distribution([0.5, 0.5]), DomainError, r"prior must be a Pmf; got \[0.5, 0.5\]"),
        (lambda: renyi_divergence(TWO, TWO.affine(1.0, 1.0), 1e305), DomainError,
         "order must be at most 1e.300 for several components; got 1e.305. Take that one: the divergence is the same"),
        (lambda: conversions.kl_from_dp_curve(lambda: 0.0, lambda: 0.0), DomainError,
         "forward must be a function of an array of epsilons; got TypeError: .*numpy.vectorize makes one"),
        (lambda: Estimate("1", 0.0, 2.0, kind="certified", unit="nats", method=""), DomainError,
         r"value must be a number or an array of numbers; got '1'. Convert it with numpy.asarray\(x, dtype=float\)"),
        (lambda: Estimate(1.0, 0.0, 2.0, kind="certified", unit="nats", method="", cost=[3]), DomainError,
         r"cost must be a mapping; got \[3\]. Pass a dictionary, or leave it out"),
        (lambda: Estimate(1.0, 0.0, 2.0, kind="certified", unit="nats", method="").to(["bits"]), DomainError,
         r"unit must be one of .*; got \['bits'\]. Choose one of these"),
        (lambda: notions.abp(None, RandomizedResponse(3, 1.0), secret=[]), ShapeError,
         "secret must be at least one secret; got none. Leave it out for all of them"),
        (lambda: read_column(__file__, 3), DomainError, "column must be the name of a column; got 3. Pass it as text"),
        (lambda: kl_divergence(TWO, NORMAL, n_jobs="all"), DomainError, "n_jobs must be a non-zero integer or None"),
    ],
)
def test_a_mistake_is_one_sentence(call, error, text):
    with pytest.raises(error, match=text):
        call()


@pytest.mark.few(14)
@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: UnaryEncoding(2**40, 1.0).outputs, DomainError,
         "outputs must be a number of at most 134217728 bits to be written; got one of about 1.1e.12 bits for Unary"),
        (lambda: RandomizedResponse(10, 0.1).power(10**9).inputs, DomainError, "inputs must be a number of at most 8"),
        (lambda: SubsetSelection(10**12, 1.0).outputs, DomainError, "outputs must be a number of at most 1048576 bits"),
        (lambda: RandomizedResponse(2, 1.0).power(2**54), DomainError,
         "exponent must be an integer of at least 1 and at most 9007199254740992; got .*multiply those of one copy"),
        (lambda: MANY.power(10**9), DomainError,
         r"factors must be at most 4194304, with all products flattened; got 2000000000. Put equal factors together"),
        (lambda: RandomizedResponse(2, 1.0).power(2**23).sample([0]), DomainError,
         "powers must be at most 4194304 copies where coordinates are enumerated; got 8388608. Ask for quant"),
        (lambda: RandomizedResponse(2, 1.0).power(2**17).column(0), DomainError,
         "output must hold one release for each of the 131072 coordinates where they exceed 65536; got 0. Pass"),
        (lambda: subset_of_rank(0, 10**12, 10**9), DomainError,
         "pool and size must be small enough for tables of binomial coefficients, with 33554432 entries in all; got"),
        (lambda: subset_of_rank(0, 10**18, 10**9), DomainError, "pool must be an integer of at least 1 and at"),
        (lambda: ProductLikelihood([[-1.0, -0.5]], [10**9]), DomainError,
         "powers must add up to at most 8388608; got 1000000000. Quantities of a product add up: multiply"),
        (lambda: ProductLikelihood([np.zeros(1000)], [10**6]).size, DomainError,
         "powers must be small enough for a number of secrets of at most 8388608 bits; got one of about 9.966e.06"),
        (lambda: rank_of_subset([0, 1], 10**12), DomainError, "pool and size must be small enough for tables of bino"),
        (lambda: SubsetSelection(2**70, 1.0, 3).sample([0]), DomainError,
         "k must be at most 2..63 for sets to be drawn; got 2..70. Take fewer secrets"),
        (lambda: SubsetSelection(10**12, 1.0).sample([0]), MemoryError, "sample must fit in memory"),
        (lambda: UnaryEncoding(10**12, 1.0).matrix(), MemoryError, "matrix must fit in memory; got a need of at"),
        (lambda: NOISE.delta(np.broadcast_to(1.0, 10**15)), MemoryError, "epsilon with sigma and sensitivity of shape"),
        (lambda: fastpriv.bac_capacity(np.full((10**6, 1), 0.1), np.full((1, 10**7), 0.1)), MemoryError,
         r"a with b of shape \(1000000, 10000000\) must fit in memory; got a need of 6.4e.05 GB"),
        (lambda: conversions.dp_delta_from_dp(*(np.full(s, 0.1) for s in
                                                ((3000, 1, 1), (1, 3000, 1), (1, 1, 3000)))), MemoryError,
         "epsilon with delta with target_epsilon of shape"),
        (lambda: lip_delta_from_pointwise_lmip(np.broadcast_to(0.1, 10**15), np.inf), MemoryError,
         "mu of shape .* must fit in memory"),
        (lambda: hockey_stick_divergence(NORMAL, OTHER, np.broadcast_to(1.0, 10**15)), MemoryError, "epsilon of shape"),
    ],
)
def test_a_size_typed_by_accident_ends_at_once(call, error, text):
    with pytest.raises(error, match=text):
        call()


def test_sizes_that_are_never_counted_have_answers():
    assert notions.ldp_epsilon(None, UnaryEncoding(10**12, 1.0)).value == 1.0
    found = notions.ldp_epsilon(None, RandomizedResponse(10, 0.1).power(10**9))
    assert found.lower <= 1e8 <= found.upper
    far = notions.ldp_epsilon(None, RandomizedResponse(2, 1e308).product(RandomizedResponse(3, 1e308)))
    assert (far.lower, far.upper) == (np.finfo(float).max, np.inf)  # 2e308 is no double


def test_a_channel_file_of_few_bytes_does_not_hang_its_reader(tmp_path):
    inner = {"channel": "RandomizedResponse", "k": 10, "epsilon": 0.1}
    path = tmp_path / "q.json"
    path.write_text(json.dumps({"channel": "ProductChannel", "factors": [inner], "powers": [10**9]}))
    assert repr(fastpriv.channels.read_channel(path)) == "<ProductChannel: RandomizedResponse(10, 0.1) ** 1000000000>"
    nested = {"channel": "ProductChannel", "factors": [inner, inner], "powers": [2, 3]}
    for power in (1000, 10**9):
        nested = {"channel": "ProductChannel", "factors": [nested, inner], "powers": [power, 1]}
    path.write_text(json.dumps(nested))
    with pytest.raises(DomainError, match=r"factors must be at most 4194304, with all products flattened"):
        fastpriv.channels.read_channel(path)


def laws(d):
    p = GaussianMixture([0.5, 0.5], np.vstack([np.zeros(d), np.full(d, 1e-2)]), 1.0)
    return p, GaussianMixture([0.25, 0.75], np.vstack([np.zeros(d), np.arange(d) / d * 1e-2]), 1.5)


def test_a_divergence_in_more_dimensions_than_sobol_points_have(monkeypatch):
    monkeypatch.setattr(stopping, "DIMENSIONS", 2)
    assert "antithetic" in kl_divergence(*laws(3), max_samples=256, rng=1, method="direct").method
    with pytest.raises(DomainError, match="method must name other points than sobol in more than 2 dimensions; got 3"):
        kl_divergence(*laws(3), max_samples=256, rng=1, method="sobol")


@pytest.mark.slow
def test_a_divergence_in_100000_dimensions_is_sampled():
    found = kl_divergence(*laws(100_000), max_samples=256, rng=1)
    assert "antithetic" in found.method
    # d (log s + (1/s^2 - 1) / 2) of one component, s = 1.5; weights, means and noise move it by less than 1 %
    assert found.value == pytest.approx(1e5 * (np.log(1.5) + 0.5 * (1.5**-2 - 1.0)), rel=1e-2)


def test_a_function_that_fails_at_its_second_array_says_where():
    def pieces():
        yield np.zeros(10)
        raise OSError("the disk is gone")

    with pytest.raises(DomainError, match="in place of its array 1, which starts at secret 10. Mend") as caught:
        posterior(pieces)
    assert str(caught.value).endswith(" Mend the function, and call again.")


@pytest.mark.parametrize(
    "call",
    [
        lambda none: notions.lip_delta(None, [[0.8, 0.2], [0.1, 0.9]], none),
        lambda none: notions.ldp_delta(None, [[0.8, 0.2], [0.1, 0.9]], none),
        lambda none: notions.lip_curves(None, RandomizedResponse(3, 1.0), none)[1],
        lambda none: notions.lip_delta(PRIOR, NOISE, none), lambda none: NOISE.delta(none),
        lambda none: notions.pac_accuracy(NOISE, 0.0, 0.0, none),
        lambda none: notions.robust_accuracy(NOISE, [0.0, 1.0], 0.0, none).maximum,
        lambda none: hockey_stick_divergence(NORMAL, OTHER, none),
        lambda none: hockey_stick_divergence(TWO, TWO.affine(1.0, 1.0), none, method="plain", rng=1),
        lambda none: fastpriv.capacity.binary_entropy(none), lambda none: fastpriv.awgn_capacity(2, none, 1.0),
        lambda none: fastpriv.capacity.average_power_capacity(2, none, 1.0),
        lambda none: conversions.mbp_from_lip(none),
        lambda none: fastpriv.calibration.sigma_from_ldp(none, 0.1, 1.0),
    ],
)
def test_no_number_in_gives_no_number_out(call):
    for none in ([], np.empty(0)):
        found = call(none)
        assert found.value.shape == found.lower.shape == found.upper.shape == (0,)


def test_nothing_drawn_and_no_rank():
    assert RandomizedResponse(3, 1.0).sample([]).shape == (0,)
    assert MANY.sample([]).shape == (0, 2)
    assert subset_of_rank([], 5, 2).shape == (0, 2)


def test_remedies_do_not_repeat_the_rule():
    text = Path(fastpriv.__file__).parent.joinpath("base/validate.py").read_text()
    assert not re.search(r"value that is \{constraint\}|Pass \{bounds\}", text)
