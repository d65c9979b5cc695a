"""``assess``: the table repeats the notions, grids and bins are read, files are complete, runs can go on."""

import csv
import json
import math
import sqlite3
import sys

import numpy as np
import pytest

import fastpriv
from fastpriv import DomainError, Pmf, calibration, notions
from fastpriv.base import grids
from fastpriv.base.numerics import rounded_up
from fastpriv.errors import BackendMissingError, ShapeError
from fastpriv.mechanisms.gaussian import GaussianMechanism
from fastpriv.studies.assessment import assess, quantities
from fastpriv.studies.assessment.families import Requirement
from fastpriv.studies.assessment.result import COLUMNS

NAMES = [f"assessment.{kind}" for kind in ("csv", "parquet", "json", "png", "html")]
DATA = [31.0, 40.0, 40.0, 58.0]
SIGMA, EPSILON = [5.0, 20.0, 1e4], [0.0, 0.5, 1.0, 40.0]
NOISE = {
    "ldp_delta", "log_ldp_delta", "ldp_epsilon", "pure_ldp_epsilon", "lip_delta", "log_lip_delta", "mutual_information",
    "abp_max", "abp_mean", "mbp_xi", "bayes_vulnerability",
}


@pytest.fixture(scope="module")
def report():
    return fastpriv.assess(DATA, sigma=SIGMA, epsilon=EPSILON, name="age", source="test")


def test_the_table_repeats_the_notions(report):
    prior = Pmf.from_data(DATA)
    for i, sigma in enumerate(SIGMA):
        mechanism = GaussianMechanism(sigma, 27.0)
        for name, want in (
            ("ldp_delta", mechanism.delta(EPSILON)), ("log_ldp_delta", mechanism.log_delta(EPSILON)),
            ("lip_delta", notions.lip_delta(prior, mechanism, EPSILON)),
            ("log_lip_delta", notions.log_lip_delta(prior, mechanism, EPSILON)),
        ):
            for part in ("value", "lower", "upper"):
                np.testing.assert_array_equal(getattr(report[name], part)[i], getattr(want, part))
        want = notions.cd_lmip(prior, mechanism)
        assert report["mutual_information"].upper[i] == want.upper
        assert report["ldp_epsilon"].value[i] == mechanism.epsilon(1e-5).value


def test_every_quantity_has_its_row_and_shape(report):
    assert set(report.quantities) == NOISE <= set(quantities.QUANTITIES)
    for name in NOISE:
        quantity = quantities.QUANTITIES[name]
        assert report[name].shape == ((3, 4) if quantity.curve else (3,))
        assert report[name].unit == quantity.unit
    with pytest.raises(DomainError, match="quantity must be one of ldp_delta, .*; got 'nothing'"):
        report["nothing"]


def test_more_noise_leaks_less(report):
    for name in ("mutual_information", "abp_max", "abp_mean", "ldp_epsilon", "bayes_vulnerability"):
        assert (np.diff(report[name].value) < 0).all(), name
    for name in ("ldp_delta", "lip_delta", "log_lip_delta"):
        value = report[name].value
        assert (value[1:] <= value[:-1]).all(), name
        assert (value[:, 1:] <= value[:, :-1]).all(), name
    assert (report["lip_delta"].value <= report["ldp_delta"].upper).all()


def test_required_noise_meets_its_target_and_no_less_does(report):
    prior = Pmf.from_data(DATA)
    sigma = {need.target: need.setting for need in report.requirements}
    for target, bound, quantity in (
        ("at most 0.1 bit on average", 0.1, lambda m: notions.cd_lmip(prior, m).to("bits")),
        ("LIP, epsilon = 1, delta = 1e-5", 1e-5, lambda m: notions.lip_delta(prior, m, 1.0)),
        ("LDP, epsilon = 1, delta = 1e-5", 1e-5, lambda m: m.delta(1.0)),
    ):
        assert quantity(GaussianMechanism(sigma[target], 27.0)).upper <= bound
        assert quantity(GaussianMechanism(sigma[target] * (1 - 1e-5), 27.0)).value > bound


def test_required_noise_is_that_of_calibration(report):
    prior = Pmf.from_data(DATA)
    sigma = {need.target: need.setting for need in report.requirements}
    assert sigma["at most 0.1 bit on average"] == calibration.sigma_from_cd_lmip(0.1, prior, unit="bits").upper
    assert sigma["LIP, epsilon = 1, delta = 1e-5"] == calibration.sigma_from_lip(1.0, 1e-5, prior).upper
    assert sigma["LDP, epsilon = 1, delta = 1e-5"] == calibration.sigma_from_ldp(1.0, 1e-5, 27.0).upper


def test_the_number_of_jobs_and_blocks_changes_no_bit(report):
    twin = fastpriv.assess(DATA, sigma=SIGMA, epsilon=EPSILON, n_jobs=2)
    for name, surface in report.quantities.items():
        assert surface.value.tobytes() == twin.quantities[name].value.tobytes(), name
        assert surface.method == twin.quantities[name].method


@pytest.mark.parametrize(
    ("text", "points"),
    [
        ("2", [2]), ("5,1,2", [1, 2, 5]), ("1:3:5", [1, 1.5, 2, 2.5, 3]), ("1..100:3", [1, 10, 100]),
        ("1..100:3, 7", [1, 7, 10, 100]), ("1,1,1", [1]), ("0.1..0.3:1", [0.1]),
    ],
)
def test_grids_are_read(text, points):
    made = grids.parse_grid("sigma", text, "positive", lambda x: x > 0, "Pass more.")
    np.testing.assert_allclose(made.build(), points, rtol=1e-15)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "sigma must be positive; got ''. Pass numbers"), ("1,x", "sigma must be positive; got 'x'"),
        ("-1", "sigma must be positive; got -1.0. Pass more"), ("nan", "got nan"), ("0:1:5", "got 0.0"),
        ("1:2:0", "sigma must have a whole number of points, 1 or more; got '0' in '1:2:0'"),
        ("1:2:1.5", "must have a whole number of points"), ("1:2", "sigma must be positive; got ''"),
    ],
)
def test_faults_in_grids_are_named(text, message):
    with pytest.raises(DomainError, match=message):
        grids.parse_grid("sigma", text, "positive", lambda x: x > 0, "Pass more.")
    with pytest.raises(DomainError, match="epsilon must be positive to be spaced by equal ratios; got '0..1:5'"):
        grids.parse_grid("epsilon", "0..1:5", "at least 0", lambda x: x >= 0, "Pass more.")


def test_the_default_grids_are_round_and_increasing():
    assert assess.default_sigma(13.6).tolist()[:4] == [1.5, 2.0, 3.0, 5.0]
    for scale in (1e-6, 0.1, 1.0, 1e9):
        sigma = assess.default_sigma(scale)
        assert sigma[0] >= 0.08 * scale
        assert sigma[-1] >= 80 * scale
    epsilon = assess.default_epsilon()
    assert {0.01, 0.1, 1.0, 10.0, 100.0} <= set(epsilon.tolist())


@pytest.mark.parametrize(
    ("words", "error", "message"),
    [
        ({"sigma": 0}, DomainError, r"sigma must be positive and finite; got 0.0.*such as 1,10,100"),
        ({"sigma": -2.0}, DomainError, "sigma must be positive and finite; got -2.0"),
        ({"sigma": [1, math.nan]}, DomainError, r"sigma must be positive and finite; got nan at index 1 \(1 of 2"),
        ({"sigma": math.inf}, DomainError, "sigma must be positive and finite; got inf"),
        ({"sigma": []}, ShapeError, "sigma must have at least one entry"),
        ({"epsilon": [-1.0]}, DomainError, "epsilon must be at least 0 and finite; got -1.0 at index 0"),
        ({"epsilon": math.nan}, DomainError, "epsilon must be at least 0 and finite; got nan"),
        ({"mechanism": "none"}, DomainError, "mechanism must be one of gaussian, rr, oue, sue, .*; got 'none'"),
        ({"bins": "few"}, DomainError, "bins must be an integer of at least 2 and at most 2147483648; got 'few'"),
        ({"bins": "auto"}, DomainError, "bins must be an integer or None; got 'auto'. Nothing is rounded unasked any"),
        ({"bins": 1}, DomainError, "bins must be an integer of at least 2 and at most 2147483648; got 1"),
        ({"mechanism": "rr", "sensitivity": 50.0}, DomainError, "sensitivity must be left out for a mechanism without"),
        ({"sensitivity": 3.0}, DomainError, "sensitivity must be finite and at least the range of the values, 27.0"),
        ({"sigma": "1..2:1000000", "epsilon": "0:1:1000000"}, DomainError,
         "sigma x epsilon must be a grid of at most 5,000,000 cells; got .* = 1,000,000,000,000. Take fewer points"),
        ({"n_jobs": 0}, DomainError, "n_jobs must be a non-zero integer or None; got 0"),
        ({"checkpoint": ".", "resume": 1}, DomainError, "resume must be True or False; got 1"),
    ],
)
def test_faults_in_settings_are_named(words, error, message):
    with pytest.raises(error, match=message):
        fastpriv.assess(DATA, **words)


@pytest.mark.parametrize(
    ("data", "error", "message"),
    [
        ([], ShapeError, "data must have at least one entry"),
        ([1.0, math.nan], DomainError, r"data must be finite numbers; got nan at index 1 \(1 of 2 entries\). Remove"),
        ([1.0, math.inf], DomainError, "data must be finite numbers; got inf at index 1"),
        (["old", "young"], DomainError, "data must be numbers that doubles hold, for this mechanism; got 'old'. Ch"),
        ([3.0, 3.0], DomainError, "data must have at least two different values; got 3.0 throughout"),
    ],
)
def test_faults_in_data_are_named(data, error, message):
    with pytest.raises(error, match=message):
        fastpriv.assess(data, sigma=1, epsilon=1)


def test_many_values_are_released_as_they_are(monkeypatch):
    monkeypatch.setattr("fastpriv.studies.assessment.assess.required_parameters",
                        lambda *_: (Requirement("any", 0.0, "exact"),))  # others take seconds
    data = np.random.default_rng(0).lognormal(2.0, 1.5, 600)
    found = fastpriv.assess(data, sigma=0.3, epsilon=1.0)
    assert (found.bins, found.rounding, found.prior) == (None, None, Pmf.from_data(data))
    assert found.unrounded is found.prior
    assert found.sensitivity >= np.ptp(data)
    assert found["mutual_information"].to("bits").lower[0] > 4.92  # of 256 bins: at most 3.81
    assert "of 9.23 bits" in found.summary()
    assert "600 values from" in found.summary()
    assert "rounded to the centres" not in found.summary()
    assert found.settings()["data"] | {"values": 600, "bins": None} == found.settings()["data"]


@pytest.mark.slow
def test_required_noise_is_for_the_values_as_they_are():
    data = np.random.default_rng(0).lognormal(2.0, 1.5, 600)
    prior = Pmf.from_data(data)
    need = {one.target: one.setting for one in fastpriv.assess(data, sigma=1.0, epsilon=1.0).requirements}
    assert need["at most 0.1 bit on average"] == calibration.sigma_from_cd_lmip(0.1, prior, unit="bits").upper
    assert need["LIP, epsilon = 1, delta = 1e-5"] == calibration.sigma_from_lip(1.0, 1e-5, prior).upper
    assert need["LDP, epsilon = 1, delta = 1e-5"] >= calibration.sigma_from_ldp(1.0, 1e-5, np.ptp(data)).lower


def test_bins_are_a_step_of_the_mechanism_and_said_so_everywhere(tmp_path):
    data = [0.0, 1.0, 2.5, 999_999.0]
    found = fastpriv.assess(data, sigma=[1e5], epsilon=[1.0], bins=4)
    assert found.prior == Pmf.from_data(data, bins=4)
    assert found.sensitivity == 999_999.0
    assert found["ldp_delta"].value[0, 0] == GaussianMechanism(1e5, 999_999.0).delta(1.0).value
    text = found.summary()
    assert "rounding   values are rounded to the centres of 2 of 4 bins before the release" in text
    assert "4 values from 0 to 999999, mean 2.5e+05" in text
    assert "of 2 bits" in text
    assert found.settings()["mechanism"]["rounding"] == found.rounding
    assert found.settings()["data"] | {"values": 4, "bins": 4, "largest": 999_999.0} == found.settings()["data"]
    found.to_csv(tmp_path / "a.csv")
    assert (tmp_path / "a.csv").read_text().splitlines()[1].startswith('value,"gaussian, 4 bins",ldp_delta,100000.0')
    law = fastpriv.assess(Pmf(data, [0.25] * 4), sigma=[1e5], epsilon=[1.0], bins=4)
    assert law.prior == found.prior
    assert (law.records, len(law.unrounded)) == (0, 4)


def test_bins_narrower_than_doubles_are_one():
    found = fastpriv.assess([1e16, 1e16 + 2, 1e16 + 4], sigma=1, epsilon=1, bins=100)
    assert len(found.prior) == len(np.unique(found.prior.values)) == 3


@pytest.mark.slow
@pytest.mark.parametrize("mechanism", ["gaussian", "rr", "geometric", "exponential"])
def test_a_million_distinct_values_pass_the_door(mechanism, monkeypatch):
    def fast_quantities(secret, mechanism, epsilon):  # the others have tests of their own
        return {"ldp_delta": mechanism.delta(epsilon), "mutual_information": notions.cd_lmip(secret.prior, mechanism)}

    monkeypatch.setattr(quantities, "_gaussian_quantities", fast_quantities)
    monkeypatch.setattr("fastpriv.studies.assessment.assess.required_parameters", lambda *_: ())
    words = {"sigma": [1e5]} if mechanism == "gaussian" else {"level": [1.0]}
    data = np.arange(1_000_000.0)
    if mechanism == "exponential":
        with pytest.raises(MemoryError, match="data must fit in memory; .*Pass bins, to release rounded values"):
            fastpriv.assess(data, mechanism=mechanism, epsilon=[1.0], **words)
        return
    found = fastpriv.assess(data, mechanism=mechanism, epsilon=[1.0], **words)
    assert len(found.prior) == 1_000_000
    assert found.bins is None


def test_a_law_can_be_given_instead_of_data():
    law = Pmf([0.0, 1.0], [0.5, 0.5])
    found = fastpriv.assess(law, sigma=1, epsilon=1, sensitivity=2.0)
    assert found.records == 0
    assert found["ldp_delta"].value[0, 0] == GaussianMechanism(1.0, 2.0).delta(1.0).value


@pytest.mark.slow
def test_files_hold_the_whole_table(report, tmp_path):
    paths = report.save(tmp_path / "out")
    assert [p.name for p in paths] == NAMES
    rows = list(csv.DictReader((tmp_path / "out" / "assessment.csv").read_text().splitlines()))
    document = json.loads((tmp_path / "out" / "assessment.json").read_text(), parse_constant=pytest.fail)
    table = pytest.importorskip("pyarrow.parquet").read_table(tmp_path / "out" / "assessment.parquet").to_pylist()
    curves = sum(quantities.QUANTITIES[name].curve for name in NOISE)
    assert len(rows) == len(table) == len(document["table"]) == 3 * (4 * curves + len(NOISE) - curves)
    assert list(rows[0]) == list(table[0]) == list(document["table"][0]) == list(COLUMNS)
    for text, arrow, plain, want in zip(rows, table, document["table"], report.rows(), strict=True):
        assert (text["quantity"], arrow["method"], plain["unit"]) == (want[2], want[11], want[10])
        for name, number in zip(COLUMNS[3:9], want[3:9], strict=True):
            if number is None:
                assert (text[name], arrow[name], plain[name]) == ("", None, None)
            else:
                assert float(text[name]) == arrow[name] == float(plain[name]) == number
    assert document["data"]["records"] == 4
    assert document["mechanism"]["sensitivity"] == 27.0


def test_pandas_gets_the_tidy_table(report):
    pandas = pytest.importorskip("pandas")
    frame = report.to_frame()
    assert isinstance(frame, pandas.DataFrame)
    assert list(frame.columns) == list(COLUMNS)
    assert frame["epsilon"].isna().sum() == 3 * sum(not quantities.QUANTITIES[name].curve for name in NOISE)


def test_missing_packages_are_named(report, tmp_path, monkeypatch):
    for module in ("pandas", "pyarrow", "matplotlib.figure"):
        monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(BackendMissingError, match="to_frame needs pandas. Install it with: pip install pandas"):
        report.to_frame()
    with pytest.raises(BackendMissingError, match=r"pyarrow must be installed to write Parquet.*fastpriv\[table\]"):
        report.to_parquet(tmp_path / "a.parquet")
    with pytest.raises(BackendMissingError, match=r"matplotlib must be installed to draw.*fastpriv\[figures\]"):
        report.plot()
    with pytest.raises(DomainError, match="formats must be one of csv, parquet, json, html; got 'xls'"):
        report.save(tmp_path, formats=("xls",))
    with pytest.raises(DomainError, match="ran must be a dict of texts; got 'fastpriv assess'"):
        report.save(tmp_path, ran="fastpriv assess")


def test_the_summary_rounds_up_and_is_a_page_wide(report):
    text = report.summary()
    assert "'age'" in text
    assert "4 records, 3 values from 31 to 58" in text
    assert max(map(len, text.splitlines())) <= 118
    assert repr(report) == "<Assessment of age: 3 sigmas x 4 epsilons, gaussian>"


@pytest.mark.parametrize(
    ("number", "text"),
    [(0.0, "0"), (0.1234, "0.124"), (0.12, "0.12"), (0.9999, "1"), (1.23e-7, "1.23e-07"), (1.2301e-7, "1.24e-07"),
     (math.inf, "inf")],
)
def test_rounding_up(number, text):
    assert rounded_up(number) == text
    assert float(text) >= number


def test_a_stopped_run_goes_on_where_it_stopped(report, tmp_path, monkeypatch):
    def stop_after_two(done, total):
        if done == 2:
            raise KeyboardInterrupt

    words = {"sigma": SIGMA, "epsilon": EPSILON, "checkpoint": tmp_path}
    with pytest.raises(KeyboardInterrupt):
        fastpriv.assess(DATA, progress=stop_after_two, **words)
    (kept,) = tmp_path.iterdir()
    connection = sqlite3.connect(kept)
    assert connection.execute("select count(*) from results").fetchone() == (2,)
    connection.execute("update results set payload = x'00' where key = (select max(key) from results)")
    connection.commit()
    connection.close()
    block, computed = assess._Case.block, []
    monkeypatch.setattr(assess._Case, "block", lambda case, rows: (computed.append(rows), block(case, rows))[1])
    again = fastpriv.assess(DATA, resume=True, **words)
    assert computed == [slice(1, 2), slice(2, 3)]
    for name, surface in report.quantities.items():
        assert surface.value.tobytes() == again.quantities[name].value.tobytes(), name
        assert (surface.kind, surface.method) == (again.quantities[name].kind, again.quantities[name].method)
    assert not list(tmp_path.iterdir())


def test_the_range_is_rounded_up():
    low, high = 1.0 + 2.0**-52, 2.0**53
    found = fastpriv.assess(Pmf([low, high], [0.5, 0.5]), sigma=1e16, epsilon=1)
    assert found.sensitivity >= high - low
    assert fastpriv.assess(Pmf([-1.0, 1e-17], [0.5, 0.5]), sigma=1, epsilon=1).sensitivity == 1.0 + 2.0**-52


FROM_DATA = "computed from the private data, no bound known beforehand; pass sensitivity to state one"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("data", "words", "source"),
    [([31, 40, 58], {}, "data"), ([31, 40, 58], {"sensitivity": 100.0}, "given"),
     (Pmf([0.0, 1.0], [0.5, 0.5]), {}, "distribution"),
     ([31, 40, 58], {"mechanism": "geometric", "level": [1.0]}, "data"),
     ([31, 40, 58], {"mechanism": "laplace-discrete", "level": [1.0], "sensitivity": 90}, "given"),
     ([31, 40, 58], {"mechanism": "rr", "level": [1.0]}, "none")],
)
def test_a_range_of_the_private_data_is_called_one(data, words, source, tmp_path):
    report = fastpriv.assess(data, **({} if "level" in words else {"sigma": [10.0]}), epsilon=[1.0], **words)
    assert report.sensitivity_source == source
    report.to_html(tmp_path / "page.html")
    shown = (report.summary(), (tmp_path / "page.html").read_text())
    assert [FROM_DATA in text for text in shown] == [source == "data"] * 2
    assert ("private data" in report.settings()["mechanism"].get("sensitivity_source", "")) == (source == "data")
    figure = report.plot() if pytest.importorskip("matplotlib") else None
    subtitle = " ".join(text.get_text() for text in figure.texts)
    assert ("data range" in subtitle) == (source == "data" and "level" not in words)


@pytest.mark.slow
def test_the_range_of_a_comparison_is_called_one_too(tmp_path):
    report = fastpriv.assess({"age": [31, 40, 58]}, mechanism=["rr", "geometric"], level=[1.0], epsilon=[1.0])
    assert f"range      27, {FROM_DATA}" in report.summary()
    report.to_html(tmp_path / "page.html")
    assert FROM_DATA in (tmp_path / "page.html").read_text()
    known = fastpriv.assess([31, 40, 58], mechanism=["rr", "geometric"], level=[1.0], epsilon=[1.0], sensitivity=50)
    assert FROM_DATA not in known.summary()
