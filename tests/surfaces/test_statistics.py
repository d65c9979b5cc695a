"""``assess --statistic``: numbers about all records against arithmetic of high precision, texts, files, refusals."""

import csv
import itertools
import json

import mpmath as mp
import numpy as np
import pytest

import fastpriv
from fastpriv import DomainError, GaussianMechanism, Pmf, notions, risk
from fastpriv.cli import main
from fastpriv.errors import ShapeError
from fastpriv.studies.assessment.statistics import read_statistic

AGES = [31.0, 40.0, 40.0, 58.0, 130.0]
EPSILON = [0.25, 1.0, 2.0]
COLUMN = np.array([17.0, 23.0, 23.0, 40.0, 61.0, 61.0, 77.0])


def normal_delta(sensitivity, sigma, epsilon):
    r, e = mp.mpf(sensitivity) / mp.mpf(sigma) / 2, mp.mpf(epsilon)
    return mp.ncdf(r - e / (2 * r)) - mp.exp(e) * mp.ncdf(-r - e / (2 * r))


def laplace_delta(a, epsilon):
    """Of one number that moves by ``a`` scales, for epsilon of either sign."""
    e = abs(epsilon)
    delta = -mp.expm1((e - a) / 2) if e < a else mp.mpf(0)
    return delta if epsilon >= 0 else 1 - mp.exp(-e) + mp.exp(-e) * delta


def two_laplace_delta(a, epsilon):
    """Of two numbers that each move by ``a`` scales: the mean over the loss of the first of the delta that remains."""
    inner = mp.quad(lambda y: mp.exp(-y) / 2 * laplace_delta(a, epsilon - (a - 2 * y)),
                    sorted({mp.mpf(0), a, *(y for y in (a - epsilon / 2, (a - epsilon / 2) - a / 2,
                                                        (2 * a - epsilon) / 2) if 0 < y < a)}))
    return laplace_delta(a, epsilon - a) / 2 + inner + mp.exp(-a) / 2 * laplace_delta(a, epsilon + a)


def inside(estimate, index, truth):
    value, low, high = (np.asarray(x)[index] for x in (estimate.value, estimate.lower, estimate.upper))
    assert low <= truth <= high, (low, truth, high)
    assert value == pytest.approx(float(truth), rel=1e-12)


def test_one_record_changes_no_more_and_sometimes_as_much():
    """Every pair of neighbours among small data sets whose values lie on a lattice that reaches beyond the bounds."""
    values, low, high, n = (-3.0, -2.0, 0.0, 1.0, 5.0), -2.0, 1.0, 3

    def answer(name, data):
        clipped = np.clip(data, low, high)
        if name == "histogram":
            return np.array([np.sum(np.equal(data, x)) for x in values], dtype=float)
        return {"mean": clipped.mean() if len(data) else 0, "sum": clipped.sum(),
                "count": sum(low <= x <= high for x in data)}[name]

    for name, relation in (("mean", "replace_one"), *itertools.product(("sum", "count", "histogram"),
                                                                       ("add_or_remove", "replace_one"))):
        statistic = read_statistic(name, list(values[:n]), (low, high), relation)
        distances = []
        for data in itertools.product(values, repeat=n):
            others = [data[:-1]] if relation == "add_or_remove" else [(*data[:-1], x) for x in values]
            distances += [np.linalg.norm(np.atleast_1d(answer(name, data) - answer(name, other))) for other in others]
        assert max(distances) == pytest.approx(statistic.sensitivity, rel=1e-15)
        assert max(distances) <= statistic.sensitivity * (1 + 1e-15)
        assert statistic.change * np.sqrt(statistic.numbers) <= statistic.sensitivity


def test_gaussian_noise():
    report = fastpriv.assess(AGES, statistic="mean", bounds=(0, 120), sigma=[3.0, 40.0], epsilon=EPSILON)
    assert report.sensitivity == 24.0
    z = mp.sqrt(2) * mp.erfinv(mp.mpf(95) / 100)
    error = mp.sqrt(mp.fsum((mp.mpf(x) - mp.mpf("57.8")) ** 2 for x in (31, 40, 40, 58, 120)) / 5 / 5)
    for i, sigma in enumerate((3.0, 40.0)):
        for j, epsilon in enumerate(EPSILON):
            inside(report["dp_delta"], (i, j), normal_delta(24, sigma, epsilon))
        inside(report["noise_half_width"], i, z * sigma)
        inside(report["noise_deviation"], i, sigma)
        low, high = (getattr(report["dp_epsilon"], end)[i] for end in ("lower", "upper"))
        assert normal_delta(24, sigma, low * (1 - 1e-12)) >= 1e-5 >= normal_delta(24, sigma, high * (1 + 1e-12))
        assert report["noise_share"].value[i] == pytest.approx(float(sigma**2 / (sigma**2 + error**2)), rel=1e-12)
        prior, noise = Pmf([0.0, 24.0], [0.5, 0.5]), GaussianMechanism(sigma, 24.0)
        assert report["lip_delta"].upper[i].tolist() == notions.lip_delta(prior, noise, EPSILON).upper.tolist()
        assert report["mutual_information"].upper[i] == notions.cd_lmip(prior, noise).upper
        guess = mp.mpf(1) / 2 + normal_delta(24, sigma, 0) / 2
        assert report["bayes_vulnerability"].lower[i] <= guess <= report["bayes_vulnerability"].upper[i]
    assert (report["pure_dp_epsilon"].upper == np.inf).all()
    (need,) = report.requirements
    assert need.target == "DP, epsilon = 1, delta = 1e-5"
    assert normal_delta(24, need.setting, 1) <= mp.mpf("1e-5") * (1 + mp.mpf("1e-12"))
    assert normal_delta(24, need.setting * (1 - 1e-6), 1) > 1e-5


def test_the_share_of_the_noise_beside_values_that_lie_closely_together():
    """The values differ in their last seven digits only: so does their spread, whatever it is divided by."""
    values, sigma = [0.3 + 1e-9 * k for k in range(5)], 1e-10
    statistic = read_statistic("mean", values, (-0.7, 1.1), None)
    share = statistic.quantities("gaussian", sigma, np.array([1.0]))["noise_share"]
    with mp.workdps(40):
        exact = [mp.mpf(x) for x in values]
        square = mp.fsum((x - mp.fsum(exact) / 5) ** 2 for x in exact) / 25
        truth = 1 / (1 + square / mp.mpf(sigma) ** 2)
    assert share.lower <= truth <= share.upper <= 1.001 * share.lower


@pytest.mark.parametrize(("relation", "change"), [(None, 7.0), ("replace_one", 10.0)])
def test_laplace_noise(relation, change):
    report = fastpriv.assess(AGES, statistic="sum", bounds=(-3, 7), relation=relation, mechanism="laplace",
                             level=[0.5, 3.0], epsilon=EPSILON)
    assert report.sensitivity == change
    for i, level in enumerate((0.5, 3.0)):
        scale = report.statistic.scale(level)
        assert change / level <= scale <= change / level * (1 + 1e-15)
        for j, epsilon in enumerate(EPSILON):
            inside(report["dp_delta"], (i, j), laplace_delta(mp.mpf(change) / mp.mpf(scale), mp.mpf(epsilon)))
        inside(report["noise_half_width"], i, mp.mpf(scale) * mp.log(20))
        inside(report["noise_deviation"], i, mp.mpf(scale) * mp.sqrt(2))
        assert level * (1 - 1e-15) <= report["pure_dp_epsilon"].upper[i] <= level
    assert report["dp_delta"].upper[0].tolist()[1:] == [0.0, 0.0]  # beyond the pure epsilon
    assert not {"lip_delta", "mutual_information", "noise_share"} & set(report.quantities)


@pytest.mark.slow
def test_two_counts_of_a_histogram_with_laplace_noise():
    report = fastpriv.assess(AGES, statistic="histogram", relation="replace_one", mechanism="laplace", level=[2.5],
                             epsilon=EPSILON)
    a = mp.mpf(1) / mp.mpf(report.statistic.scale(2.5))
    for j, epsilon in enumerate(EPSILON):
        truth = two_laplace_delta(a, mp.mpf(epsilon))
        assert report["dp_delta"].lower[0, j] <= truth <= report["dp_delta"].upper[0, j]
        assert report["dp_delta"].value[0, j] == pytest.approx(float(truth), rel=1e-9)
        assert truth < laplace_delta(2 * a, mp.mpf(epsilon))  # that of one number which moves twice as far
    assert report["pure_dp_epsilon"].upper[0] == pytest.approx(2.5, rel=1e-12)


def test_counts_need_no_data_and_gaussian_histograms_have_the_euclidean_norm():
    both = fastpriv.assess(["a", "b"], statistic="histogram", relation="replace_one", sigma=[2.0], epsilon=[1.0])
    truth = normal_delta(mp.sqrt(2), 2, 1)
    assert truth <= both["dp_delta"].upper[0, 0] <= truth * (1 + mp.mpf("1e-14"))
    names = ("histogram", "count")
    single = [fastpriv.assess(["a"], statistic=name, sigma=[2.0], epsilon=[1.0]) for name in names]
    for report, text in zip(single, ("counts of cells that were stated before", "count of records"), strict=True):
        inside(report["dp_delta"], (0, 0), normal_delta(1, 2, 1))
        assert report.statistic.description == f"{text}; neighbours: one record there or not"
    inner = fastpriv.assess([1, 2], statistic="count", bounds=(1, 1), relation="replace_one", sigma=[2.0], epsilon=[1])
    assert inner.statistic.description == (
        "count of records, values from 1 to 1; neighbours: one record replaced by another"
    )
    assert inner["dp_delta"] == single[1]["dp_delta"]
    assert "stated before, values from 0 to 9;" in read_statistic("histogram", None, (0, 9), None).description


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"statistic": "median"}, "statistic must be one of mean, sum, count, histogram; got 'median'"),
        ({"statistic": "mean"}, "bounds must be given for a mean here; got None. State the least and the l"),
        ({"statistic": "sum"}, r"bounds must be given for a sum here.*--bounds 0 120.*release of their own"),
        ({"statistic": "count", "relation": "replace_one"}, "bounds must be given for a count here; got No"),
        ({"statistic": "mean", "bounds": (5, 0)}, "bounds must be two numbers, the lower first; got"),
        ({"statistic": "sum", "bounds": (5, 5)}, "bounds must be two numbers, the lower first; got"),
        ({"statistic": "mean", "bounds": (0, 1, 2)}, "bounds must be two numbers, the lower first; got"),
        ({"statistic": "mean", "bounds": (0, 1e151)}, "bounds must be numbers of at most 1e150; got 1e.151"),
        ({"statistic": "mean", "bounds": "age"}, "bounds must be"),
        ({"statistic": "mean", "bounds": (0, 1), "relation": "add_or_remove"},
         "relation must be one of replace_one; got 'add_or_remove'"),
        ({"statistic": "mean", "bounds": (0, 1), "mechanism": "rr"}, "mechanism must be one of gaussian, lapla"),
        ({"statistic": "mean", "bounds": (0, 1), "mechanism": ["gaussian", "laplace"]},
         "statistic must be of one column under one mechanism, without bins and sensitivity; got 1 columns, 2"),
        ({"statistic": "mean", "bounds": (0, 1), "sensitivity": 3.0}, "statistic must be of one column und"),
        ({"statistic": "histogram", "bins": 3}, "statistic must be of one column under one mechanism, with"),
        ({"statistic": "mean", "bounds": (0, 1), "level": [1]}, "level must be left out for a mechanism wit"),
        ({"statistic": "mean", "bounds": (0, 1), "mechanism": "laplace", "epsilon": [1]},
         "level must be given beside epsilon for a mechanism of a level"),
        ({"bounds": (0, 1)}, "bounds and relation must stand beside a statistic; got none. Pass statistic"),
        ({"relation": "replace_one"}, "bounds and relation must stand beside a statistic; got none"),
        ({"mechanism": "laplace"}, "mechanism must be one of gaussian, rr.*got 'laplace'"),
    ],
)
def test_what_does_not_fit_is_refused(options, text):
    with pytest.raises(DomainError, match=text):
        fastpriv.assess(AGES, **options)


@pytest.mark.parametrize("data", [[1.0, np.nan], ["a", "b"], [], None, Pmf([0.0, 1.0], [0.5, 0.5])])
def test_values_of_a_mean_are_finite_numbers(data):
    with pytest.raises((DomainError, ShapeError), match="data must "):
        fastpriv.assess(data, statistic="mean", bounds=(0, 1))


@pytest.mark.slow
def test_page_and_files_say_the_same_and_not_the_answer(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "people.csv").write_text("age\n" + "".join(f"{x:g}\n" for x in COLUMN))
    words = ["people.csv", "--statistic", "mean", "--bounds", "20", "70", "--sigma", "1,5,90", "--curve", "0.5,1,4"]
    assert main(["assess", *words, "--out", "out"]) == 0
    printed = capsys.readouterr().out
    page = (tmp_path / "out" / "assessment.html").read_text()
    said = json.loads((tmp_path / "out" / "assessment.json").read_text())
    report = fastpriv.assess(COLUMN, statistic="mean", bounds=(20, 70), sigma=[1, 5, 90], epsilon=[0.5, 1, 4],
                             name="people", source="people.csv")
    assert printed.startswith(report.summary())
    with open(tmp_path / "out" / "assessment.csv", newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert {row["column"] for row in rows} == {"mean of people"}
    for name, grid in report.quantities.items():
        own = [float(row["upper"]) for row in rows if row["quantity"] == name]
        assert own == grid.upper.ravel().tolist(), name
    shown = f"{report['noise_half_width'].upper[1]:.3g}"
    assert shown in printed
    assert shown in page
    for text in ("mean of 7 values, each clipped to 20 to 70; neighbours: one record replaced by another",
                 "Clipping to the bounds changed 2 values", "The share of the noise rests on the spread",
                 "Noise that a target needs", "In 95 of 100 releases the noise moves the mean by at most"):
        assert text in page, text
        assert text in " ".join(printed.split()) or "share" in text, text
    assert said["verdict"]["sentences"] == list(risk.statement(report).sentences)
    assert said["data"]["statistic"]["from_data"] == list(risk.statement(report).from_data)
    for content in (printed, page, json.dumps({key: said[key] for key in ("data", "mechanism", "verdict", "grid")})):
        assert "42.57" not in content  # the mean of the clipped values
        assert "43.14" not in content  # and of the values as they are
    assert (tmp_path / "out" / "assessment.png").exists()


@pytest.mark.slow
def test_commands_for_counts(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "jobs.csv").write_text("job\nnurse\nclerk\nnurse\n")
    words = ["assess", "jobs.csv", "--statistic", "histogram", "--mechanism", "laplace", "--epsilon", "0.5,1"]
    assert main([*words, "--quiet", "--curve", "0.1,1", "--out", "out", "--figure-format", "svg"]) == 0
    page = (tmp_path / "out" / "assessment.html").read_text()
    assert "Level that meets a target" in page
    assert "moves each count by at most" in page
    assert main(["assess", "jobs.csv", "--statistic", "mean", "--bounds", "0", "1"]) == 2
    assert "column must be numbers; got 'nurse' at row 1" in capsys.readouterr().err


def test_verdict_and_checkpoint(tmp_path):
    options = {"statistic": "sum", "bounds": (0, 120), "sigma": [400.0, 500.0, 600.0], "epsilon": [1.0]}
    report = fastpriv.assess(AGES, checkpoint=tmp_path, **options)
    assert fastpriv.assess(AGES, checkpoint=tmp_path, resume=True, **options) == report
    said = risk.statement(report, record="patient")
    assert said.sentences[0].startswith("Target: DP, epsilon = 1, delta = 1e-5. Choice: sigma = 500, the least private")
    assert said.sentences[1] == "In 95 of 100 releases the noise moves the sum by at most 980."
    alone = risk.statement(GaussianMechanism(500.0, 120.0), record="patient")
    assert said.sentences[2:] == (alone.sentences[0], alone.sentences[2])
    assert said.true_positive_rate == alone.true_positive_rate
    assert said.from_data == ("Clipping to the bounds changed 1 values.",)
    assert "The sum without noise is private: nothing here is computed from it." in said.assumed
    assert said.settings["prior"] == 0.01
