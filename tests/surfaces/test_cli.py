"""The command line end to end: what it prints and writes, exit codes, one-line errors, kills."""

import argparse
import contextlib
import csv
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import fastpriv
from fastpriv import DomainError
from fastpriv.base.store import ResultStore
from fastpriv.cli.main import main, program_parser

HOME = str(Path(fastpriv.__file__).parents[1])
HERE = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, (HOME, os.environ.get("PYTHONPATH"))))}
SMALL = ("--sigma", "10,100", "--epsilon", "0.1..10:5")


def run(*arguments, cwd, **words):
    """The command in a process of its own."""
    return subprocess.run(
        [sys.executable, "-m", "fastpriv", *map(str, arguments)], cwd=cwd, text=True, capture_output=True,
        check=False, env=HERE, **words,
    )


@pytest.fixture
def inside(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_default_run_tabulates_the_ages(inside, capsys):
    assert main(["assess", *SMALL]) == 0
    said = capsys.readouterr()
    assert said.err == ""
    assert "What does one noisy release of 'age' leak?" in said.out
    assert "32,561 records, 73 values from 17 to 90" in said.out
    assert "Noise that a target needs" in said.out
    assert sorted(os.listdir(inside / "fastpriv-report")) == [
        "assessment.csv", "assessment.html", "assessment.json", "assessment.parquet", "assessment.png",
    ]
    rows = list(csv.DictReader((inside / "fastpriv-report" / "assessment.csv").read_text().splitlines()))
    assert all(float(r["lower"]) <= float(r["value"]) <= float(r["upper"]) for r in rows)


@pytest.mark.slow
def test_a_file_of_ones_own(inside, capsys):
    (inside / "people.csv").write_text("name,age\nAda,36\nAlan,41\nEmmy,53\n")
    words = ("people.csv", "--column", "age", *SMALL, "--out", "here", "--format", "csv", "--figure-format", "svg")
    assert main(["assess", *words]) == 0
    said = capsys.readouterr()
    assert "people.csv: 3 records" in said.out
    assert "Written: here/assessment.csv, here/assessment.svg" in said.out
    assert sorted(os.listdir("here")) == ["assessment.csv", "assessment.svg"]


def test_json_goes_to_the_screen_and_nothing_to_the_disk(inside, capsys):
    assert main(["assess", "--json", *SMALL, "--column", "education-num", "--bins", "exact"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["data"]["name"] == "education-num"
    assert os.listdir(inside) == []


def _commands():
    (group,) = (one for one in program_parser()._actions if isinstance(one, argparse._SubParsersAction))
    return sorted(group.choices)


@pytest.mark.parametrize("command", [None, *_commands()])
def test_options_have_no_abbreviations(command, inside, capsys):
    words = [] if command is None else [command]
    for option in ("--hel", "--vers", "--quie", "--q", "--jso", "--fig", "--ou"):
        with pytest.raises(SystemExit) as ended:  # --hel would print the help and end with 0
            main([*words, option])
        assert ended.value.code == 2, option
        said = capsys.readouterr()
        assert said.out == ""
        assert said.err.startswith("fastpriv: error: ")
    assert os.listdir(inside) == []


def test_an_abbreviation_is_no_option_and_no_file(inside, capsys):
    with pytest.raises(SystemExit):
        main(["membership", "--q", "0.01", "--releases", "20", "--figure-format", "none"])
    assert "unrecognized arguments: --q" in capsys.readouterr().err


def test_quiet_says_nothing(inside, capsys):
    assert main(["assess", "--quiet", *SMALL, "--format", "none", "--figure-format", "none", "--bins", "8"]) == 0
    assert capsys.readouterr() == ("", "")
    assert os.listdir("fastpriv-report") == []


def test_info_and_version(capsys):
    assert main(["info"]) == 0
    assert "instruction set" in capsys.readouterr().out
    assert main(["info", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["fastpriv"] == fastpriv.__version__
    with pytest.raises(SystemExit) as done:
        main(["--version"])
    assert done.value.code == 0
    assert capsys.readouterr().out == f"fastpriv {fastpriv.__version__}\n"


BAD = [
    (["--sigma", "nan"], "sigma must be positive and finite; got nan"),
    (["--sigma", "inf"], "sigma must be positive and finite; got inf"),
    (["--sigma", "-1"], "sigma must be positive and finite; got -1.0"),
    (["--sigma", "0"], "sigma must be positive and finite; got 0.0"),
    (["--epsilon", "-1"], "epsilon must be at least 0 and finite; got -1.0"),
    (["--epsilon", "much"], "epsilon must be at least 0 and finite; got 'much'"),
    (["--sigma", "1..9:1000000", "--epsilon", "0:1:1000000"], "a grid of at most 5,000,000 cells; got 1,000,000 x"),
    (["--sigma", "1:2:1000000000000"], "a grid of at most 5,000,000 cells"),
    (["--bins", "few"], "--bins must be a whole number or exact; got 'few'"),
    (["--bins", "auto"], "--bins must be a whole number or exact; got 'auto'. Leave it out to release the values"),
    (["--bins", "0"], "bins must be an integer of at least 2"),
    (["--mechanism", "none"], "mechanism must be one of gaussian, rr, oue"),
    (["--sensitivity", "wide"], "argument --sensitivity: invalid float value: 'wide'"),
    (["--sensitivity", "1"], "sensitivity must be finite and at least the range of the values"),
    (["--format", "xls"], "--format must be one of csv, parquet, json, html, none; got 'xls'"),
    (["--column", "sex"], "education, occupation, native-country; got 'sex'"),
    (["--n-jobs", "0"], "n_jobs must be a non-zero integer or None; got 0"),
    (["--out", "taken"], "path must be a directory that can be written; got 'taken': File exists. Name a directory"),
    (["none.csv"], "file must be an existing CSV or Parquet file; got 'none.csv'"),
    (["empty.csv"], "file must have at least one record; got the empty file"),
    (["header.csv"], "column must have at least one number; got none"),
    (["text.csv"], "column must be numbers; got 'old' at row 2 (1 of 2 entries)"),
    (["gap.csv"], "column must have no missing values; got 1 of 3 rows without a number, the first at row 2"),
    (["one.csv"], "data must have at least two different values; got 3.0 throughout"),
    (["ragged.csv", "--column", "a"], "line 3 must be of 2 cells"),
    (["--figure-format", "bmp"], "argument --figure-format: invalid choice"),
    (["--figure", "svg"], "unrecognized arguments: --figure. Did you mean --figure-format?"),
    (["--out", "a/report.html"], "--out must be a directory, because this command writes several files; got "
                                 "'a/report.html'. Write --out a/report."),
    (["--no-such-option"], "unrecognized arguments"),
]


@pytest.mark.few(22)
@pytest.mark.parametrize(("arguments", "message"), BAD)
def test_bad_input_is_one_line_and_exit_code_2(inside, capsys, arguments, message):
    for name, text in {
        "empty.csv": "", "header.csv": "age\n", "text.csv": "age\n3\nold\n", "gap.csv": "age\n3\n\n4\n",
        "one.csv": "age\n3\n3\n", "ragged.csv": "a,b\n1,2\n3\n", "taken": "a file",
    }.items():
        (inside / name).write_text(text)
    try:
        code = main(["assess", *arguments])
    except SystemExit as stop:
        code = stop.code
    said = capsys.readouterr()
    assert code == 2
    assert said.out == ""
    assert said.err.startswith("fastpriv: error: ")
    assert said.err.count("\n") == 1
    assert message in said.err
    if arguments[0] != "--out":
        assert not any("assessment" in name for _, _, names in os.walk(inside) for name in names)


@pytest.mark.slow
def test_bad_input_in_a_process_shows_no_traceback(inside):
    done = run("assess", "--sigma", "0", cwd=inside)
    assert (done.returncode, done.stdout) == (2, "")
    assert "Traceback" not in done.stderr
    done = run(cwd=inside)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr


@pytest.mark.skipif(os.geteuid() == 0, reason="root writes everywhere")
def test_a_directory_without_the_right_to_write(inside, capsys):
    (inside / "closed").mkdir(mode=0o500)
    assert main(["assess", *SMALL, "--out", "closed/report"]) == 2
    assert "got 'closed/report': Permission denied. Name a path where you may" in capsys.readouterr().err


def test_too_little_memory_is_a_clear_error(inside, capsys, monkeypatch):
    def no_memory(*arguments, **words):
        raise MemoryError

    monkeypatch.setattr("fastpriv.studies.assessment.assess.assess", no_memory)
    assert main(["assess"]) == 2
    assert "the grid must fit into memory; got less memory than it needs" in capsys.readouterr().err


@pytest.mark.slow
def test_a_closed_pipe_is_quiet(inside):
    command = f"{sys.executable} -m fastpriv assess --json {' '.join(SMALL)} --sigma 1..100:50 | head -c 100"
    done = subprocess.run(
        ["bash", "-c", command], cwd=inside, capture_output=True, text=True, check=False, env=HERE
    )
    assert len(done.stdout) == 100
    assert done.stderr == ""


def rows_of_store(path):
    with contextlib.suppress(DomainError), ResultStore.read(path) as store:
        return len(list(store.items()))
    return 0


@pytest.mark.slow
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_killed_run_leaves_no_half_written_file_and_can_go_on(inside, how):
    long = ("assess", "--sigma", "1..1000:400", "--epsilon", "0.01..10:200", "--out", "report", "--figure-format",
            "none")
    process = subprocess.Popen(
        [sys.executable, "-m", "fastpriv", *long], cwd=inside, env=HERE, text=True, stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    report = inside / "report"
    while not any(map(rows_of_store, report.glob(".blocks-" + "?" * 16))):
        assert process.poll() is None, process.communicate()
        time.sleep(0.02)
    process.send_signal(how)
    _, said = process.communicate()
    assert process.returncode == (130 if how == signal.SIGINT else -how)
    assert "Traceback" not in said
    if how == signal.SIGINT:
        assert "interrupted; finished blocks are kept" in said
    assert not [name for name in os.listdir(report) if not name.startswith(".blocks-")]
    (kept,) = report.glob(".blocks-" + "?" * 16)
    before = rows_of_store(kept)
    assert before > 0
