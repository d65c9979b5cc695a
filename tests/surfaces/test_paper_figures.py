"""The figures of the paper: numbers against reference values, tables, pictures, the command."""

import csv
import json
import math
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import fastpriv
from fastpriv import figures
from fastpriv.base.errors import BackendMissingError, DomainError
from fastpriv.cli import main

HOME = str(Path(fastpriv.__file__).parents[1])
HERE = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, (HOME, os.environ.get("PYTHONPATH"))))}
NAMES = ("figure1", "figure2", "figure3", "figure4")


@pytest.fixture(scope="module")
def paper():
    return figures.paper()


@pytest.fixture(scope="module")
def saved(paper, tmp_path_factory):
    """The directory with all files, and their paths as ``save`` returns them."""
    directory = tmp_path_factory.mktemp("figures")
    return directory, paper.save(directory, figure="svg")


@pytest.fixture(scope="module")
def table(paper):
    """(figure, curve, parameter...) -> row, as it stands in the CSV."""
    rows = {}
    for figure in paper:
        for row in figure.rows():
            cells = dict(zip(figure.columns(), row, strict=True))
            at = cells.get("mu_bits"), cells.get("dimension"), cells.get("epsilon_nats") or cells.get("sigma_squared")
            rows[(cells["figure"], cells["curve"], *at)] = cells
    return rows


# figure, curve, mu, d, epsilon or sigma^2: the number, to the digits given (by mpmath, 40 digits and more)
REFERENCE = {
    ("figure1", "ldp_delta_achievable", 0.5, None, 1.0): 7.064809082651937746771752163752e-1,
    ("figure1", "ldp_delta_achievable", 0.1, None, 1.0): 2.014832104692586995637592732055e-1,
    ("figure1", "ldp_delta_achievable", 0.01, None, 1.0): 2.275039304922965710975691026987e-2,
    ("figure1", "ldp_delta_achievable", 0.1, None, 2.0): 1.782852115374627045615224993022e-1,
    ("figure1", "saturation", 0.5, None, None): 6.964556290035857795267327783559e-1,
    ("figure1", "saturation", 0.1, None, None): 1.775033471839464915736713954673e-1,
    ("figure1", "saturation", 0.01, None, None): 1.872980279267876560871330968954e-2,
    ("figure2", "ci_lmip_from_ldp", None, 1.0, 1.0): 2.0 / math.log(2.0),
    ("figure2", "ci_lmip_from_ldp", None, 10.0, 200.0): 0.1 / math.log(2.0),
    ("figure2", "ci_lmip_optimal", None, 1.0, 1.0): 0.336830820346831612 / math.log(2.0),
    ("figure2", "two_inputs", None, 1.0, 1.0): 0.336830820346831612 / math.log(2.0),
    ("figure3", "lip_delta_as_published", 0.1, None, 1.0): 7.154127212772819182088253654249e-2,
    ("figure3", "lip_delta_as_published", 0.01, None, 2.0): 6.911579172154882661629619415102e-3,
    ("figure3", "lip_delta_gaussian", 0.1, None, 0.1): 2.918000203034989418963945287e-1,
    ("figure3", "lip_delta_gaussian", 0.01, None, 0.01): 9.986781942925426126814843491e-2,
    ("figure3", "lip_delta_tight", 0.1, None, 10.0): 0.9888052730564989680819476,
    ("figure3", "saturation", 0.1, None, None): 1.0 - 2.0**-0.1,
    ("figure3", "sigma", 0.1, None, None): 1.16618639010826510130566857565732607,
    ("figure3", "sigma", 0.01, None, None): 3.80621415468606556514172653350328838,
    ("figure3", "crossing", 0.1, None, None): 1.215459701528967708,
    ("figure3", "crossing", 0.01, None, None): 0.378241917037849932,
}
DIGITS = {"ci_lmip_optimal": 1e-10, "two_inputs": 1e-10, "crossing": 1e-11}


@pytest.mark.slow
@pytest.mark.parametrize("key", REFERENCE, ids=lambda key: "-".join(map(str, filter(None, key))))
def test_reference_numbers(table, key):
    row, want = table[key], REFERENCE[key]
    tolerance = DIGITS.get(key[1], 1e-13)
    assert row["value"] == pytest.approx(want, rel=tolerance), row
    assert row["lower"] * (1 - tolerance) <= want <= row["upper"] * (1 + tolerance), row


@pytest.mark.slow
def test_every_number_lies_between_its_bounds_and_no_guarantee_is_heuristic(paper):
    for figure in paper:
        for row in figure.rows():
            cells = dict(zip(figure.columns(), row, strict=True))
            assert cells["lower"] <= cells["value"] <= cells["upper"], cells
            assert cells["kind"] in ("exact", "certified"), cells
            assert cells["unit"] in ("bits", "nats", "probability", "1"), cells
            assert cells["method"], cells


@pytest.mark.slow
def test_the_printed_guarantee_is_broken_up_to_the_crossing_and_the_right_ones_hold(paper):
    figure = paper["figure3"]
    for mu in (0.1, 0.01):
        of = {name: figure.curve(f"lip_delta_{name}", mu_bits=mu).estimate
              for name in ("gaussian", "as_published", "tight", "pointwise")}
        epsilon = figure.curve("lip_delta_gaussian", mu_bits=mu).axes["epsilon_nats"]
        crossing = figure.curve("crossing", mu_bits=mu).estimate
        assert (of["gaussian"].lower > of["as_published"].upper).tolist() == (epsilon < crossing.value).tolist()
        assert np.all(of["gaussian"].upper <= of["tight"].upper)
        assert np.all(of["gaussian"].upper <= of["pointwise"].upper)


@pytest.mark.slow
def test_the_worst_atom_is_the_rarest(paper):
    points = np.arange(-10, 11) / 10.0
    weights = np.exp(-2.0 * points**2) / np.sum(np.exp(-2.0 * points**2))
    for mu in (0.1, 0.01):
        tight = paper["figure3"].curve("lip_delta_tight", mu_bits=mu)
        epsilon = tight.axes["epsilon_nats"][:, None]
        every = fastpriv.conversions.lip_delta_from_cd_lmip(mu, epsilon, weights, unit="bits")
        assert np.max(every.value, axis=1) == pytest.approx(tight.estimate.value, rel=1e-12)


@pytest.mark.slow
def test_the_gap_of_figure_2_is_a_ratio_that_tends_to_four(paper):
    for dimension in (1, 10):
        ratio = paper["figure2"].curve("ratio", dimension=dimension).estimate
        assert np.all(np.diff(ratio.value) < 0)
        assert 4.0 < ratio.lower[-1] < ratio.upper[-1] < 4.02


@pytest.mark.slow
def test_the_guarantees_of_figure_4_are_loose_and_right(paper):
    figure = paper["figure4"]
    assert figure.curve("ratio_at_tenth").estimate.value == pytest.approx(10.8697790305764, rel=1e-9)
    optimum, both, bound = (
        figure.curve(f"cd_lmip_{name}").estimate for name in ("optimal", "both_directions", "from_lip")
    )
    assert np.all(optimum.upper <= both.upper)
    assert np.all(both.lower <= bound.upper)


@pytest.mark.slow
def test_files_are_whole_and_the_table_is_tidy(paper, saved):
    directory, written = saved
    assert sorted(path.name for path in written) == sorted(os.listdir(directory))
    assert {path.name for path in written} == {f"{n}.{k}" for n in NAMES for k in ("csv", "svg")}
    for figure in paper:
        rows = list(csv.DictReader((directory / f"{figure.name}.csv").read_text().splitlines()))
        assert tuple(rows[0]) == figure.columns()
        assert len(rows) == sum(1 for _ in figure.rows())
        for text, row in zip(rows, figure.rows(), strict=True):
            assert [float(text[name]) for name in ("value", "lower", "upper")] == list(row[-6:-3])
        assert (directory / f"{figure.name}.svg").read_bytes().startswith(b"<?xml")


@pytest.mark.slow
def test_the_summary_says_what_is_wrong(paper):
    text = paper.summary()
    assert all(name in text for name in NAMES)
    assert "In print:" in text
    assert max(map(len, text.splitlines())) <= 118


@pytest.mark.parametrize("figure", NAMES)
@pytest.mark.slow
def test_panels_take_and_return_an_ax(paper, figure):
    from matplotlib.figure import Figure

    ax = Figure().add_subplot()
    assert figures.paper_panel(paper[figure], 0, ax) is ax
    assert figures.paper_panel(paper[figure]) is not ax
    assert ax.get_xscale() == ax.get_yscale() == "log"
    assert "$" in ax.get_xlabel()
    assert re.search("bits|probability", ax.get_ylabel())
    assert ax.get_title(loc="left")


@pytest.mark.slow
@pytest.mark.parametrize("figure", NAMES)
def test_text_stays_inside_the_picture_and_off_other_text(paper, figure):
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    from fastpriv.studies.papers.paper_panels import figure_of_panels

    sheet = figure_of_panels(paper[figure])
    FigureCanvasAgg(sheet).draw()
    for ax in sheet.axes:
        box = ax.get_tightbbox()
        assert sheet.bbox.x0 <= box.x0 < box.x1 <= sheet.bbox.x1
        assert sheet.bbox.y0 <= box.y0 < box.y1 <= sheet.bbox.y1
        texts = [text.get_window_extent() for text in ax.texts if text.get_text()]
        texts += [ax.get_legend().get_window_extent()] if ax.get_legend() else []
        for i, one in enumerate(texts):
            assert not any(one.overlaps(other) for other in texts[:i]), [text.get_text() for text in ax.texts]


@pytest.mark.parametrize("name", ["figure5", "0", "", "Figure 3", 7, None])
def test_a_wrong_name_is_named(name):
    with pytest.raises(DomainError, match="name must be one of all, figure1, figure2, figure3, figure4; got"):
        figures.paper(name)


@pytest.mark.slow
def test_one_figure_by_number_or_name(paper):
    assert [one.name for one in figures.paper("2")] == [one.name for one in figures.paper(2)] == ["figure2"]
    with pytest.raises(DomainError, match="name must be one of figure2; got 'figure3'"):
        figures.paper("2")["figure3"]
    with pytest.raises(KeyError, match="crossing"):
        paper["figure1"].curve("crossing")


@pytest.mark.slow
def test_progress_is_told(paper):
    seen = []
    figures.paper("figure1", progress=lambda done, total: seen.append((done, total)))
    assert seen == [(1, 1)]


@pytest.mark.slow
def test_numbers_need_no_matplotlib_but_pictures_do(paper, tmp_path, monkeypatch):
    for module in ("matplotlib", "matplotlib.figure"):
        monkeypatch.setitem(sys.modules, module, None)
    assert list(figures.paper("figure2")["figure2"].rows())
    assert len(paper.save(tmp_path / "bare", figure=None)) == 4
    for draw in (lambda: figures.paper_panel(paper["figure1"]), lambda: paper.save(tmp_path)):
        with pytest.raises(BackendMissingError, match=r"matplotlib must be installed to draw.*fastpriv\[figures\]"):
            draw()


@pytest.mark.slow
def test_the_command_makes_one_figure(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["figures", "2"]) == 0
    said = capsys.readouterr()
    assert "figure2  What LDP promises about LMIP" in said.out
    assert "Written: fastpriv-figures/figure2.csv, fastpriv-figures/figure2.png" in said.out
    assert sorted(os.listdir("fastpriv-figures")) == ["figure2.csv", "figure2.png"]
    assert main(["figures", "figure1", "--out", "here", "--figure-format", "none", "--quiet"]) == 0
    assert capsys.readouterr() == ("", "")
    assert sorted(os.listdir("here")) == ["figure1.csv"]


def test_json_goes_to_the_screen_and_nothing_to_the_disk(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["figures", "3", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    (figure,) = document["figures"]
    assert (document["fastpriv"], figure["name"]) == (fastpriv.__version__, "figure3")
    assert {row["curve"] for row in figure["table"]} == set(figure["curves"])
    assert {"curve", "mu_bits", "value", "lower", "upper", "kind", "unit"} <= set(figure["table"][0])
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["figure9"], "name must be one of all, figure1, figure2, figure3, figure4; got 'figure9'"),
        (["3", "--figure-format", "bmp"], "argument --figure-format: invalid choice"),
        (["1", "2"], "unrecognized arguments: 2"),
        (["1", "--out", "taken"], "path must be a directory that can be written; got 'taken': File exists"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(tmp_path, monkeypatch, capsys, arguments, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "taken").write_text("a file")
    try:
        code = main(["figures", *arguments])
    except SystemExit as stop:
        code = stop.code
    said = capsys.readouterr()
    assert (code, said.out) == (2, "")
    assert said.err.startswith("fastpriv: error: ")
    assert said.err.count("\n") == 1
    assert message in said.err
    assert os.listdir(tmp_path) == ["taken"]


def test_a_place_that_cannot_be_written_is_found_before_the_work(tmp_path, monkeypatch, capsys):
    def never(name):
        raise AssertionError(name)

    monkeypatch.setattr("fastpriv.studies.papers.paper_report.compute_figure", never)
    (tmp_path / "taken").write_text("a file")
    assert main(["figures", "--quiet", "--out", str(tmp_path / "taken")]) == 2
    assert "path must be a directory that can be written; got" in capsys.readouterr().err
    assert main(["figures", "figure9", "--out", str(tmp_path / "new")]) == 2
    assert os.listdir(tmp_path) == ["taken"]


@pytest.mark.slow
def test_an_interruption_leaves_whole_files_only(tmp_path):
    process = subprocess.Popen(
        [sys.executable, "-m", "fastpriv", "figures", "--out", "here"], cwd=tmp_path, env=HERE, text=True,
        stderr=subprocess.PIPE, stdout=subprocess.PIPE,
    )
    while not list((tmp_path / "here").glob("*.csv")):
        assert process.poll() is None, process.communicate()
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    said = process.communicate()
    assert process.returncode == 130, said
    assert said[1] == "fastpriv: error: interrupted; files that are there are whole. Run the same command again.\n"
    names = os.listdir(tmp_path / "here")
    assert not [name for name in names if name.startswith(".")]
    for name in names:
        if name.endswith(".csv"):
            assert (tmp_path / "here" / name).read_text().endswith("\n")


@pytest.mark.slow
def test_an_interruption_inside_exec_ends_with_130_too(tmp_path):
    code = (
        "import sys, fastpriv.cli as cli, fastpriv.studies.papers.paper_report as work; "
        "work.compute_figure = lambda name: exec('raise KeyboardInterrupt'); "
        "sys.exit(cli.main(['figures', 'figure1', '--quiet', '--out', 'here']))"
    )
    (tmp_path / "run.py").write_text(code)
    ended = subprocess.run([sys.executable, "-m", "run"], cwd=tmp_path, env=HERE, capture_output=True, text=True)
    assert (ended.returncode, ended.stdout) == (130, ""), ended
    assert ended.stderr.startswith("fastpriv: error: interrupted; ")


@pytest.mark.slow
def test_the_whole_run_writes_eight_files(tmp_path):
    subprocess.run([sys.executable, "-m", "fastpriv", "figures", "all"], cwd=tmp_path, env=HERE, check=True)
    assert len(os.listdir(tmp_path / "fastpriv-figures")) == 8
