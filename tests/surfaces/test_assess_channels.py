"""``assess`` of channels: the table repeats the notions, files hold it, runs go on."""

import csv
import json
import math
from types import SimpleNamespace

import mpmath
import numpy as np
import pytest

import fastpriv
from fastpriv import Channel, DomainError, Pmf, RandomizedResponse, notions
from fastpriv.base.store import ResultStore
from fastpriv.cli import main
from fastpriv.errors import ShapeError
from fastpriv.mechanisms import ExponentialMechanism, GeometricMechanism, SubsetSelection, UnaryEncoding
from fastpriv.studies.assessment import assess, quantities
from fastpriv.studies.assessment.assess import default_level
from fastpriv.studies.assessment.families import FAMILIES
from fastpriv.studies.assessment.secret import secret_distribution

JOBS = ["nurse"] * 5 + ["clerk"] * 3 + ["judge"] * 2
AGES = [31.0, 33.0, 33.0, 36.0]
LEVEL, EPSILON = [0.5, 2.0], [0.0, 0.1, 1.0, 40.0]
PRIOR = np.array([0.3, 0.2, 0.5])  # clerk, judge, nurse
WANTED = {
    "ldp_delta", "ldp_epsilon", "pure_ldp_epsilon", "lip_delta", "mutual_information", "capacity", "abp_max",
    "abp_mean", "mbp_xi", "bayes_vulnerability", "min_entropy_leakage", "maximal_leakage",
}


@pytest.fixture(scope="module")
def report():
    return fastpriv.assess(JOBS, mechanism="rr", level=LEVEL, epsilon=EPSILON, name="job", source="test")


def same(found, i, want):
    assert found.unit == want.unit
    for part in ("value", "lower", "upper"):
        np.testing.assert_allclose(getattr(found, part)[i], getattr(want, part), rtol=1e-13, atol=1e-300)


def test_the_table_repeats_the_notions(report):
    assert set(report.quantities) == WANTED
    for i, level in enumerate(LEVEL):
        channel = RandomizedResponse(3, level)
        same(report["ldp_delta"], i, notions.ldp_delta(None, channel, EPSILON))
        same(report["lip_delta"], i, notions.lip_delta(PRIOR, channel, EPSILON))
        same(report["mutual_information"], i, notions.cd_lmip(PRIOR, channel))
        same(report["capacity"], i, notions.ci_lmip(channel))
        same(report["abp_max"], i, notions.abp(PRIOR, channel).maximum)
        same(report["abp_mean"], i, notions.abp(PRIOR, channel).mean)
        same(report["mbp_xi"], i, notions.lip_epsilon(PRIOR, channel))
        same(report["bayes_vulnerability"], i, notions.bayes_vulnerability(PRIOR, channel))
        same(report["min_entropy_leakage"], i, notions.min_entropy_leakage(PRIOR, channel))
        same(report["maximal_leakage"], i, notions.maximal_leakage(None, channel))
        same(report["pure_ldp_epsilon"], i, notions.ldp_epsilon(None, channel))
        near = report["ldp_epsilon"]
        assert notions.ldp_delta(None, channel, near.upper[i]).upper <= 1e-5
        assert notions.ldp_delta(None, channel, near.lower[i] - 1e-12).upper > 1e-5
        assert near.upper[i] - near.lower[i] < 2e-6 * near.upper[i]


BUILT = {
    "rr": lambda n, e: RandomizedResponse(n, e),
    "oue": lambda n, e: UnaryEncoding.optimized(n, e),
    "sue": lambda n, e: UnaryEncoding(n, e),
    "rappor": lambda n, e: UnaryEncoding.rappor(n, 2 / (1 + math.exp(e / 2)), p=0.5, q=0.75),
    "subset": lambda n, e: SubsetSelection(n, e),
    "exponential": lambda n, e: ExponentialMechanism(-np.abs(np.subtract.outer(AGES[::1], AGES)), e),
}


@pytest.mark.parametrize("name", [*BUILT, "geometric", "laplace-discrete"])
def test_every_mechanism_keeps_its_level(name):
    found = fastpriv.assess(AGES, mechanism=name, level=LEVEL, epsilon=[0.1])
    assert found.labels is None
    assert (found["pure_ldp_epsilon"].lower <= np.array(LEVEL) * (1 + 1e-12)).all()
    if name not in ("rappor", "exponential"):  # which give more privacy than asked
        np.testing.assert_allclose(found["pure_ldp_epsilon"].value, LEVEL, rtol=1e-12)
    places = found.secret.input_indices
    assert (places.tolist(), found.secret.inputs) == (
        ([0, 2, 5], 6) if name in ("geometric", "laplace-discrete") else ([0, 1, 2], 3)
    )
    if name in BUILT and name != "exponential":
        channel = BUILT[name](3, LEVEL[1])
        same(found["mutual_information"], 1, notions.cd_lmip(found.secret.input_probabilities, channel))
    for quantity in WANTED:
        e = found[quantity]
        assert (e.lower <= e.upper).all()
    assert (found["mutual_information"].lower <= found["capacity"].upper).all()


def test_noise_on_integers_sees_the_empty_places():
    found = fastpriv.assess(AGES, mechanism="geometric", level=[1.0], epsilon=[0.1])
    prior = np.array([0.25, 0, 0.5, 0, 0, 0.25])
    same(found["mutual_information"], 0, notions.cd_lmip(prior, GeometricMechanism(6, 0.2)))
    wide = fastpriv.assess(AGES, mechanism="geometric", level=[1.0], epsilon=[0.1], sensitivity=50.0)
    same(wide["mbp_xi"], 0, notions.lip_epsilon(prior, GeometricMechanism(6, 0.02)))
    binned = fastpriv.assess([0.0, 0.3, 1.0, 9.9], mechanism="geometric", level=[1.0], epsilon=[0.1], bins=10)
    assert (binned.secret.inputs, binned.secret.input_indices.tolist(), binned.bins) == (10, [0, 1, 9], 10)
    assert binned.sensitivity == 9.9
    exact = secret_distribution([0, 5000, 5001], None, "integers")
    assert (exact.bins, exact.inputs, exact.input_indices.tolist()) == (None, 5002, [0, 5000, 5001])


@pytest.mark.parametrize("mechanism", ["geometric", "laplace-discrete"])
@pytest.mark.parametrize("level", [1e-9, 0.5, 6.0, 300.0])
def test_a_wide_range_costs_the_values_that_occur_and_bounds_hold_beyond(monkeypatch, mechanism, level):
    data = [3, 3, 10, 11, 40]
    words = {"mechanism": mechanism, "level": [level], "epsilon": [0.1]}
    monkeypatch.setattr("fastpriv.studies.assessment.assess.required_parameters", lambda *_: ())
    whole = fastpriv.assess(data, **words)
    monkeypatch.setattr(quantities, "_MAX_ALL_CELLS", 0)
    few = fastpriv.assess(data, **words)
    monkeypatch.setattr(quantities, "_MAX_OCCURRING_CELLS", 0)
    none = fastpriv.assess(data, **words)
    for name, found in whole.quantities.items():
        for other in (few.quantities[name], none.quantities[name]):
            assert (other.lower <= found.upper).all(), name
            assert (other.upper >= found.lower).all(), name
        if name != "capacity":
            np.testing.assert_allclose(few.quantities[name].value, found.value, rtol=1e-6, atol=1e-300, err_msg=name)
        known = ("ldp_delta", "ldp_epsilon", "pure_ldp_epsilon", "mbp_xi", "maximal_leakage", "capacity")
        assert none.quantities[name].is_bound_only(0) or name in known, name


def test_the_exponential_mechanism_scores_distance_or_truth():
    numbers = fastpriv.assess(AGES, mechanism="exponential", level=[1.0], epsilon=[0.1])
    x = np.array([31.0, 33.0, 36.0])
    same(numbers["mutual_information"], 0,
         notions.cd_lmip([0.25, 0.5, 0.25], ExponentialMechanism(-np.abs(x[:, None] - x), 1.0)))
    names = fastpriv.assess(JOBS, mechanism="exponential", level=[1.0], epsilon=[0.1])
    other = notions.cd_lmip(PRIOR, RandomizedResponse(3, 0.5))
    assert names["mutual_information"].value[0] == pytest.approx(other.value, rel=1e-11)


def test_one_channel_with_a_law_with_data_or_with_neither():
    matrix = [[0.5, 0.5], [0.1, 0.9], [0.3, 0.7]]
    channel = Channel(matrix)
    alone = fastpriv.assess(mechanism=channel, epsilon=[0.1])
    assert (alone.mechanism, alone.parameter, alone["mbp_xi"].shape) == ("channel", "", (1,))
    same(alone["mutual_information"], 0, notions.cd_lmip(None, channel))
    law = fastpriv.assess(Pmf([0, 2], [0.25, 0.75]), mechanism=channel, epsilon=[0.1])
    same(law["mutual_information"], 0, notions.cd_lmip([0.25, 0.0, 0.75], channel))
    data = fastpriv.assess(JOBS, mechanism=channel, epsilon=[0.1])
    same(data["mutual_information"], 0, notions.cd_lmip(PRIOR, channel))
    rows = list(alone.rows())
    assert all(row[3] is row[4] is None for row in rows)
    assert "through 'value'" in alone.summary()
    assert repr(alone) == "<Assessment of value: 1 epsilons, channel>"


def test_epsilon_at_a_delta_of_channels_without_an_end():
    sure = fastpriv.assess(mechanism=Channel([[1.0, 0.0], [0.0, 1.0]]), epsilon=[1.0])["ldp_epsilon"]
    assert sure.upper[0] == math.inf
    assert sure.lower[0] >= 700.0
    tail = fastpriv.assess(mechanism=Channel([[0.5, 0.5 - 1e-6, 1e-6], [0.25, 0.75, 0.0]]), epsilon=[1.0])
    assert tail["pure_ldp_epsilon"].upper[0] == math.inf
    near = tail["ldp_epsilon"]
    assert math.log(2.0) - 1e-4 < near.lower[0] <= near.upper[0] < math.log(2.0) + 1e-5
    none = fastpriv.assess(mechanism=Channel([[0.5, 0.5], [0.5, 0.5]]), epsilon=[1.0])["ldp_epsilon"]
    assert (none.value[0], none.upper[0]) == (0.0, 0.0)


@pytest.mark.slow
def test_what_nobody_can_go_through_is_bracketed():
    prior = np.random.default_rng(3).dirichlet(np.ones(42))
    names = [f"n{i:02}" for i in range(42)]
    secret = secret_distribution(np.repeat(names, np.maximum(1, (prior * 5000).astype(int))), None, "values")
    channel = UnaryEncoding.optimized(42, 1.0)
    found = quantities.compute_quantities(secret, channel, np.array([0.01, 0.5, 2.0]))
    assert found["lip_delta"].method == "bounds alone: no more than LDP"
    assert (found["lip_delta"].upper == found["ldp_delta"].upper).all()
    for name in ("mutual_information", "abp_max", "abp_mean", "bayes_vulnerability", "min_entropy_leakage"):
        assert 0 < found[name].width <= 1e-9 * found[name].value, name
    subset = quantities.compute_quantities(secret, SubsetSelection(42, 1.0), np.array([0.5]))
    assert subset["abp_max"].method.startswith("bounds alone")
    assert 0 < subset["mutual_information"].width < 1e-9
    many = secret_distribution([f"n{i:04}" for i in range(3000) for _ in range(i % 20 + 1)], None, "values")
    bound = quantities.compute_quantities(many, SubsetSelection(3000, 1.0), np.array([0.5]))["mutual_information"]
    assert (bound.lower, bound.kind) == (0.0, "certified")
    dozen = secret_distribution(names[:12], None, "values")
    few = quantities.compute_quantities(dozen, UnaryEncoding.optimized(12, 1.0), np.array([0.5]))
    assert few["mutual_information"].lower > 0
    before = secret.prior.probabilities.max()
    best = found["bayes_vulnerability"]
    most = before * math.exp(float(found["mbp_xi"].upper)) * (1 + 1e-9)
    assert before < best.lower <= most
    assert found["abp_max"].upper < 0.3
    report = fastpriv.assess(np.repeat(names, np.arange(1, 43)), mechanism="oue", level=[1.0], epsilon=[0.1])
    assert "*            no more than a bound" in report.summary()
    assert found["min_entropy_leakage"].upper <= found["maximal_leakage"].upper * (1 + 1e-9)


@pytest.mark.parametrize("k", [3, 6])
def test_bounds_hold_where_the_truth_is_known(k):
    rng = np.random.default_rng(k)
    epsilon = np.array([0.0, 0.1, 0.7, 3.0])
    for _ in range(20):
        channel, prior = Channel(rng.dirichlet(np.ones(4), size=k)), rng.dirichlet(np.ones(k))
        level = float(notions.ldp_epsilon(None, channel).upper)
        truth = notions.ldp_delta(None, channel, epsilon)
        assert (truth.lower <= quantities._worst_curve(level, epsilon).upper).all()
        assert (notions.lip_delta(prior, channel, epsilon).lower <= truth.upper).all()
        sides = notions.mbp(prior, channel)
        assert notions.abp(prior, channel).maximum.lower <= quantities._abp_bound(float(sides.xi.upper)).upper
        guess, leak = quantities._vulnerability_bounds(float(prior.max()), float(sides.plus.upper), level)
        assert guess.lower <= notions.bayes_vulnerability(prior, channel).upper
        assert notions.bayes_vulnerability(prior, channel).lower <= guess.upper
        assert notions.min_entropy_leakage(prior, channel).lower <= leak.upper


def test_an_entropy_of_rounded_probabilities_caps_an_information():
    """The bit is 1 once in 10^9; p is rounded, and so is its term, by as much as the sum leaves: lemma 13.3."""
    n = 10**9
    secret = SimpleNamespace(prior=SimpleNamespace(probabilities=np.array([(n - 1) / n, 1 / n])))
    channel = SimpleNamespace(inputs=2, _cells_within=lambda cells: cells > 2**20)
    information = quantities._capacity_and_information(secret, channel, None, math.inf)[1]
    with mpmath.workdps(40):
        assert information.upper >= mpmath.log(n) / n - (1 - mpmath.mpf(1) / n) * mpmath.log1p(-mpmath.mpf(1) / n)


def test_the_leakage_of_hardly_any_geometric_noise_is_enclosed():
    found = quantities._geometric_maximal_leakage(SimpleNamespace(epsilon=5e-324, inputs=2))
    assert found.lower == 0.0 < found.upper <= 1e-322, "half of the least double"


def test_required_levels_meet_their_targets(report):
    sigma = {need.target: need.setting for need in report.requirements}
    bits = sigma["at most 0.1 bit on average"]
    assert notions.cd_lmip(PRIOR, RandomizedResponse(3, bits)).to("bits").upper <= 0.1
    assert notions.cd_lmip(PRIOR, RandomizedResponse(3, bits * 1.002)).to("bits").value > 0.1
    xi = sigma["MBP, xi = 1"]
    assert notions.lip_epsilon(PRIOR, RandomizedResponse(3, xi)).upper <= 1.0
    assert notions.lip_epsilon(PRIOR, RandomizedResponse(3, xi * 1.002)).value > 1.0
    assert "Level that meets a target" in report.summary()
    rare = fastpriv.assess(Pmf([0, 1], [1e-9, 1 - 1e-9]), mechanism="rr", level=[1.0], epsilon=[1.0])
    assert rare.requirements[0].setting > 1000.0  # it never leaks as much


def test_the_summary_says_what_is_meant(report):
    text = report.summary()
    assert "test: 10 records, 3 categories, nurse the likeliest (50 %)" in text
    assert "rr: randomised response" in text
    assert "before 0.5" in text
    assert max(map(len, text.splitlines())) <= 118
    assert repr(report) == "<Assessment of job: 2 levels x 4 epsilons, rr>"
    assert report.level.tolist() == LEVEL
    with pytest.raises(AttributeError, match="rr has no sigma; its grid holds: level"):
        report.sigma


@pytest.fixture(scope="module")
def several():
    return fastpriv.assess(
        {"age": AGES, "children": [0, 1, 1, 3]}, mechanism=["gaussian", "rr", "geometric"], sigma=[1.0, 10.0],
        level=LEVEL, epsilon=EPSILON, source="test",
    )


@pytest.mark.slow
def test_a_comparison_is_its_assessments(several):
    assert len(several) == 6
    assert repr(several) == "<Comparison of age, children under gaussian, rr, geometric>"
    alone = fastpriv.assess(AGES, mechanism="geometric", level=LEVEL, epsilon=EPSILON)
    for quantity, surface in alone.quantities.items():
        assert several["age", "geometric"].quantities[quantity].value.tobytes() == surface.value.tobytes(), quantity
    assert several["children", "gaussian"].sigma.tolist() == [1.0, 10.0]
    assert len(list(several.rows())) == sum(len(list(one.rows())) for one in several)
    with pytest.raises(DomainError, match="key must be a column and a mechanism, of .*; got 'age'"):
        several["age"]
    text = several.summary()
    assert "What does one release of 'age', 'children' leak?" in text
    assert text.count("geometric") >= 4
    assert max(map(len, text.splitlines())) <= 118


@pytest.mark.slow
def test_files_of_a_comparison(several, tmp_path):
    paths = several.save(tmp_path)
    assert [p.name for p in paths] == [f"assessment.{kind}" for kind in ("csv", "parquet", "json", "png", "html")]
    rows = list(csv.DictReader((tmp_path / "assessment.csv").read_text().splitlines()))
    table = pytest.importorskip("pyarrow.parquet").read_table(tmp_path / "assessment.parquet").to_pylist()
    document = json.loads((tmp_path / "assessment.json").read_text(), parse_constant=pytest.fail)
    want = list(several.rows())
    assert len(rows) == len(table) == len(document["table"]) == len(want)
    for text, arrow, one in zip(rows, table, want, strict=True):
        assert (text["column"], text["mechanism"], arrow["quantity"]) == one[:3]
        assert arrow["sigma"] == one[3]
        assert text["level"] == ("" if one[4] is None else repr(one[4]))
        assert arrow["upper"] == one[8]
    assert [one["mechanism"]["name"] for one in document["assessments"]][:3] == ["gaussian", "rr", "geometric"]
    frame = several.to_frame()
    assert frame.groupby(["column", "mechanism"]).ngroups == 6
    assert frame["level"].isna().sum() == (frame["mechanism"] == "gaussian").sum()


@pytest.mark.slow
def test_the_number_of_jobs_changes_no_bit(several):
    twin = fastpriv.assess(
        {"age": AGES, "children": [0, 1, 1, 3]}, mechanism=["gaussian", "rr", "geometric"], sigma=[1.0, 10.0],
        level=LEVEL, epsilon=EPSILON, n_jobs=2,
    )
    for one, other in zip(several, twin, strict=True):
        for quantity, surface in one.quantities.items():
            assert surface.value.tobytes() == other.quantities[quantity].value.tobytes()


@pytest.mark.slow
def test_a_stopped_comparison_goes_on_where_it_stopped(several, tmp_path, monkeypatch):
    block = assess._Case.block

    def stop_after_three(done, total):
        assert total == 6 * 2
        if done == 3:
            raise KeyboardInterrupt

    words = {
        "mechanism": ["gaussian", "rr", "geometric"], "sigma": [1.0, 10.0], "level": LEVEL, "epsilon": EPSILON,
        "checkpoint": tmp_path,
    }
    columns = {"age": AGES, "children": [0, 1, 1, 3]}
    with pytest.raises(KeyboardInterrupt):
        fastpriv.assess(columns, progress=stop_after_three, **words)
    kept = []
    for path in tmp_path.iterdir():
        with ResultStore.read(path) as store:
            kept += store.keys()
    assert len(kept) == 3
    computed = []
    monkeypatch.setattr(assess._Case, "block", lambda case, rows: (computed.append(rows), block(case, rows))[1])
    again = fastpriv.assess(columns, resume=True, **words)
    assert len(computed) == 9
    for one, other in zip(several, again, strict=True):
        for quantity, surface in one.quantities.items():
            assert surface.value.tobytes() == other.quantities[quantity].value.tobytes()
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_pictures_are_drawn(report, several, tmp_path):
    assert len(report.plot().axes) == 3
    assert len(several.plot().axes) == 6
    alone = fastpriv.assess(mechanism=Channel([[0.5, 0.5], [0.1, 0.9]]), epsilon=[0.1, 1.0])
    assert len(alone.plot().axes) == 3
    alone.to_figure(tmp_path / "a.svg")
    assert b"input 1" in (tmp_path / "a.svg").read_bytes() or (tmp_path / "a.svg").stat().st_size > 1000
    many = fastpriv.assess([f"n{i}" for i in range(30)], mechanism="rr", level=[1.0], epsilon=[1.0])
    texts = [text.get_text() for text in fastpriv.report.categories(many).texts]
    assert texts[-1] == "18 others"


@pytest.mark.parametrize(
    ("data", "words", "error", "message"),
    [
        (JOBS, {"mechanism": "gaussian"}, DomainError,
         "data must be numbers that doubles hold, for this mechanism; got 'nurse'. Choose a mechanism for"),
        (JOBS, {"mechanism": "geometric"}, DomainError, "data must be numbers that doubles hold, for this mechanism"),
        (["a", "a"], {}, DomainError, "data must have at least two different values, and at most 1048576; got 1"),
        (["a", None], {}, DomainError, r"data must have no missing values; got None at index 1 \(1 of 2 entries\)"),
        ([["a", "b"]], {}, ShapeError, "data must be one-dimensional with at least one entry; got shape"),
        (None, {}, DomainError, "data must be given unless the mechanism is a channel; got None"),
        (JOBS, {"sigma": 1.0}, DomainError, "sigma must be left out for a mechanism without it; got one with 'rr'"),
        (AGES, {"mechanism": "gaussian", "level": 1.0}, DomainError, "level must be left out for a mechanism without"),
        (JOBS, {"level": 0.0}, DomainError, r"level must be positive and finite; got 0.0.*such as 0.5,1,2"),
        (JOBS, {"level": "0.1..10:99999", "epsilon": "0:1:99999"}, DomainError, "level x epsilon must be a grid of at"),
        (JOBS, {"mechanism": Channel([[1.0], [1.0]])}, ShapeError,
         "data must have one distinct value for each of the 2 inputs of the channel, or number .*; got 3 values"),
        ([0.5, 1.0], {"mechanism": "geometric"}, DomainError, "data must be whole numbers less than 2.*apart for noise "
         "on integers; got 0.5. Pass bins, to release values rounded to the centres of equal bins"),
        (JOBS, {"bins": 2}, DomainError, "bins must be left out for names, which cannot be rounded; got 2"),
        (np.arange(2**20 + 1), {}, DomainError, "data must have at most 1048576 distinct values for a mechanism of c"),
        (None, {"mechanism": RandomizedResponse(10**9, 1.0)}, DomainError,
         "mechanism must have at most 1048576 inputs to be assessed; got 1000000000"),
    ],
)
def test_faults_are_named(data, words, error, message):
    given = {"mechanism": "rr", "epsilon": [1.0]} | words
    with pytest.raises(error, match=message):
        fastpriv.assess(data, **given)


@pytest.mark.parametrize(
    ("columns", "words", "message"),
    [
        ({}, {"mechanism": "rr"}, "data and mechanism must be at least one each, all different; got 0 columns and 1"),
        ({"a": JOBS}, {"mechanism": []}, "data and mechanism must be at least one each, all different; got 1 columns"),
        ({"a": JOBS}, {"mechanism": ["rr", "rr"]}, "got 'rr' twice. Name them"),
        (JOBS, {"mechanism": ["rr", "rr"]}, "data and mechanism must be at least one each.*got 'rr' twice. Name them"),
        ({"a": JOBS}, {"sigma": [1.0], "mechanism": "rr"}, "sigma must be left out for a mechanism without it"),
        ({"a": JOBS}, {"sensitivity": 9.0, "mechanism": "rr"}, "sensitivity must be left out for a mechanism without"),
    ],
)
def test_faults_of_comparisons_are_named(columns, words, message):
    with pytest.raises(DomainError, match=message):
        fastpriv.assess(columns, **words)


def test_default_levels_are_round():
    assert {0.1, 1.0, 10.0} <= set(default_level().tolist())
    assert {family.parameter for family in FAMILIES.values()} == {"sigma", "level"}


@pytest.fixture
def inside(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "jobs.csv").write_text("job,age,home\nnurse,31,a\nclerk,40,b\nnurse,31,\njudge,58,a\n")
    (tmp_path / "q.csv").write_text("a,b,c\n0.5,0.3,0.2\n0.1,0.8,0.1\n0.2,0.2,0.6\n")
    (tmp_path / "p.csv").write_text("p\n0.5\n0\n0.5\n")
    return tmp_path


@pytest.mark.slow
def test_the_command_takes_columns_and_mechanisms(inside, capsys):
    words = ("jobs.csv", "--columns", "job,age", "--mechanism", "rr,subset", "--epsilon", "0.5,1", "--curve", "0.1,1")
    assert main(["assess", *words, "--out", "here", "--quiet"]) == 0
    rows = list(csv.DictReader((inside / "here" / "assessment.csv").read_text().splitlines()))
    assert {(row["column"], row["mechanism"], row["level"]) for row in rows} == {
        (c, m, e) for c in ("job", "age") for m in ("rr", "subset") for e in ("0.5", "1.0")
    }
    assert {row["epsilon"] for row in rows} == {"", "0.1", "1.0"}
    assert main(["assess", "jobs.csv", "--column", "job", "--mechanism", "oue", "--epsilon", "1", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["data"]["categories"] == ["clerk", "judge", "nurse"]
    assert document["required_noise"][0]["level"] > 0


@pytest.mark.slow
def test_the_command_takes_a_channel(inside, capsys):
    assert main(["assess", "--channel", "q.csv", "--json", "--curve", "1"]) == 0
    uniform = json.loads(capsys.readouterr().out)
    assert uniform["data"]["source"] == "uniform prior"
    assert main(["assess", "--channel", "q.csv", "--prior", "p.csv", "--json", "--epsilon", "1"]) == 0
    rows = {row["quantity"]: row for row in json.loads(capsys.readouterr().out)["table"]}
    channel = fastpriv.channels.read_channel("q.csv")
    assert rows["mbp_xi"]["upper"] == notions.lip_epsilon([0.5, 0.0, 0.5], channel).upper
    assert main(["assess", "jobs.csv", "--column", "job", "--channel", "q.csv", "--quiet", "--out", "o"]) == 0
    assert "job through q.csv" in (inside / "o" / "assessment.csv").read_text()
    (inside / "rr.json").write_text('{"channel": "RandomizedResponse", "k": 3, "epsilon": 1.0}')
    assert main(["assess", "--channel", "rr.json", "--epsilon", "1", "--out", "o"]) == 0
    assert "RandomizedResponse(3, 1.0)" in capsys.readouterr().out


def test_missing_categories(inside, capsys):
    words = ("assess", "jobs.csv", "--column", "home", "--mechanism", "rr", "--epsilon", "1", "--json")
    assert main([*words]) == 2
    assert "column must have no missing values; got 1 of 4 rows without a category, the first at row 3" in (
        capsys.readouterr().err
    )
    assert main([*words, "--missing", "keep"]) == 0
    assert json.loads(capsys.readouterr().out)["data"]["categories"] == ["?", "a", "b"]
    assert main([*words, "--missing", "drop"]) == 0
    assert json.loads(capsys.readouterr().out)["data"]["categories"] == ["a", "b"]


@pytest.mark.slow
def test_the_shipped_categories(inside, capsys):
    words = ("--columns", "occupation", "--mechanism", "rr", "--epsilon", "1", "--missing", "drop", "--json")
    assert main(["assess", *words]) == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["data"]["records"], document["data"]["values"]) == (30718, 14)


BAD = [
    (("--channel", "none.csv"), "file must be an existing channel file; got 'none.csv'"),
    (("--channel", "short.csv"), "each row of matrix must sum to 1 within 1e-09; got a sum of 0.9"),
    (("--channel", "negative.csv"), "probabilities between 0 and 1; got -0.1 at row 1, column 0"),
    (("--channel", "ragged.csv"), "line 3"),
    (("--channel", "text.csv"), "line 3 must be numbers"),
    (("--channel", "gap.csv"), "line 2 must be numbers"),
    (("--channel", "empty.csv"), "must have at least one row"),
    (("--channel", "q.txt"), "path must be a name that ends in"),
    (("--channel", "q.csv", "--prior", "two.csv"), "must hold one probability for each of the 3 inputs of q.csv"),
    (("--channel", "q.csv", "--prior", "sum.csv"), "probabilities must sum to 1 within 1e-09; got a sum of 0.9"),
    (("--channel", "q.csv", "--prior", "p.csv", "jobs.csv"), "--prior must be left out beside a file of records"),
    (("--channel", "q.csv", "jobs.csv", "--column", "job,age"), "--column must be one column beside --channel"),
    (("--channel", "q.csv", "--epsilon", "1", "--curve", "1"), "--curve must be left out beside --epsilon here"),
    (("--prior", "p.csv"), "--prior must stand beside --channel; got 'p.csv' alone"),
    (("jobs.csv", "--column", "job", "--mechanism", "rr,huffman"), "mechanism must be one of gaussian, rr, oue"),
    (("jobs.csv", "--column", "job", "--mechanism", "rr", "--epsilon", "0"), "level must be positive and finite; got"),
    (("jobs.csv", "--column", "jobs", "--mechanism", "rr"), "column must be one of the file's columns: job, age, home"),
    (("jobs.csv", "--column", "job", "--mechanism", "rr", "--sigma", "1"), "sigma must be left out for a mechanism"),
]


@pytest.mark.parametrize(("arguments", "message"), BAD)
def test_bad_files_name_the_row_and_the_remedy(inside, capsys, arguments, message):
    for name, text in {
        "short.csv": "0.5,0.5\n0.5,0.4\n", "negative.csv": "0.5,0.5\n-0.1,1.1\n", "ragged.csv": "a,b\n1,0\n1\n",
        "text.csv": "a,b\n1,0\nx,1\n", "gap.csv": "a,b\n1,\n0,1\n", "empty.csv": "a,b\n", "q.txt": "1",
        "two.csv": "0.5\n0.5\n", "sum.csv": "0.5\n0.2\n0.2\n",
    }.items():
        (inside / name).write_text(text)
    assert main(["assess", *arguments]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.count("\n") == 1
    assert message in said.err
    assert not list(inside.glob("**/assessment.*"))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["rr", "oue", "subset", "exponential", "geometric"])
def test_epsilon_alone_is_not_taken_for_the_level(name):
    numbers = [1, 2, 2, 3]
    with pytest.raises(DomainError, match=f"level must be given .* got epsilon alone with '{name}'. Pass level="):
        fastpriv.assess(numbers, mechanism=name, epsilon=[1.0])
    with pytest.raises(DomainError, match="level must be given beside epsilon"):
        fastpriv.assess({"a": numbers}, mechanism=["gaussian", name], epsilon=[1.0])
    assert fastpriv.assess(numbers, mechanism=name, level=[1.0], epsilon=[1.0]).grid.tolist() == [1.0]
    assert len(fastpriv.assess(numbers, mechanism=name).grid) == 21


@pytest.mark.slow
def test_the_command_has_one_option_for_the_level_and_one_for_the_curves(tmp_path, capsys):
    (tmp_path / "a.csv").write_text("x\na\nb\nb\n")
    words = ["assess", str(tmp_path / "a.csv"), "--mechanism", "rr", "--json"]
    assert main([*words, "--epsilon", "1"]) == 0
    assert json.loads(capsys.readouterr().out)["grid"]["level"] == 1
    assert main([*words, "--curve", "1"]) == 0
    assert json.loads(capsys.readouterr().out)["grid"] == {"level": 21, "epsilon": 1}
