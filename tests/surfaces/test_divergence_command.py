"""``fastpriv divergence`` and the files of mixtures: what is printed and written, one-line errors, interruption."""

import csv
import io
import json
import os
import signal
import subprocess
import sys
import time
import warnings
import zipfile
from pathlib import Path

import numpy as np
import pyarrow.parquet as parquet
import pytest

import fastpriv
from fastpriv import GaussianMixture
from fastpriv.base.errors import DomainError, SamplingWarning
from fastpriv.base.estimate import Estimate
from fastpriv.cli import main
from fastpriv.cli.divergence_table import COLUMNS, QUANTITIES, DivergenceTable
from fastpriv.distributions import read_mixture, write_mixture
from fastpriv.sampling import replicates

HOME = str(Path(fastpriv.__file__).parents[1])
HERE = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, (HOME, os.environ.get("PYTHONPATH"))))}
ON_LINE = GaussianMixture([0.25, 0.75], [0.0, 1.0], 1.0)
NORMAL = GaussianMixture.single(0.0, 1.0)
P = GaussianMixture([0.5, 0.5], [[0, 0], [1, 2]], [[1.0, 2.0], [2.0, 1.0]])
Q = GaussianMixture([0.5, 0.5], [[1, 0], [0, 2]], covariances=[[[1.0, 0.5], [0.5, 2.0]], [[2.0, 0.0], [0.0, 1.0]]])
SHAPES = {
    "line": ON_LINE, "diagonal": P, "full": Q, "isotropic": GaussianMixture([0.1, 0.9], [[0, 1, 2], [3, 4, 5]], [1, 2]),
    "shared": GaussianMixture([0.1, 0.2, 0.7], np.eye(3) / 3, covariances=np.eye(3) + 0.1),
    "one component": GaussianMixture.single([0.1, 0.2], covariance=[[2.0, 1.0], [1.0, 2.0]]),
}


@pytest.fixture
def inside(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, law in {"a.json": ON_LINE, "b.npz": NORMAL, "p.npz": P, "q.json": Q}.items():
        write_mixture(name, law)
    return tmp_path


@pytest.mark.parametrize("ending", ["npz", "json"])
@pytest.mark.parametrize("law", SHAPES.values(), ids=SHAPES)
def test_a_mixture_comes_back_bit_by_bit(tmp_path, law, ending):
    write_mixture(tmp_path / f"law.{ending}", law)
    assert read_mixture(tmp_path / f"law.{ending}") == law
    assert os.listdir(tmp_path) == [f"law.{ending}"]


def test_a_file_made_without_fastpriv_is_read_whatever_its_name(tmp_path):
    np.savez_compressed(tmp_path / "law.npz", weights=[0.25, 0.75], means=[0, 1], sigmas=1)
    (tmp_path / "law.npz").rename(tmp_path / "law.json")
    assert read_mixture(tmp_path / "law.json") == ON_LINE
    (tmp_path / "law").write_text('\ufeff{"weights": [1], "means": [[0, 0]], "covariances": [[2, 1], [1, 2]]}')
    assert read_mixture(tmp_path / "law").form == "full"


def test_writing_refuses_other_endings_and_objects(tmp_path):
    with pytest.raises(DomainError, match=r"path must be a name that ends in .npz or .json; got"):
        write_mixture(tmp_path / "law.txt", ON_LINE)
    with pytest.raises(DomainError, match="mixture must be a GaussianMixture; got 3"):
        write_mixture(tmp_path / "law.npz", 3)
    assert os.listdir(tmp_path) == []


def archive(**arrays):
    stream = io.BytesIO()
    np.savez(stream, **arrays)
    return stream.getvalue()


def odd_archive():
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive_:
        archive_.writestr("weights.npy", b"\x93NUMPY\x01\x00\x76\x00{'descr': '<f8', 'fortran_order': False, 'shape': ")
    return stream.getvalue()


WHOLE = archive(weights=[1.0], means=[0.0], sigmas=[1.0])
BAD_FILES = {
    "empty": (b"", "which is neither: Expecting value"),
    "text": (b"weights = 1", "must be a NumPy archive or JSON in UTF-8; got 'bad', which is neither"),
    "bytes": (b"\x93NUMPY\xff\xfe", "which is neither: 'utf-8' codec"),
    "list": (b"[1, 2]", "must hold an object with the keys weights, means, sigmas; got 'bad' with [1, 2]"),
    "deep": (b"[" * 100_000, "which is neither: "),
    "no keys": (b"{}", "must hold the key weights; got 'bad' with no keys"),
    "no means": (b'{"weights": [1], "sigmas": [1]}', "must hold the key means; got 'bad' with the keys weights, si"),
    "no sigmas": (b'{"weights": [1], "means": [1]}', "must hold the key sigmas or covariances; got 'bad'"),
    "both": (
        b'{"weights": [1], "means": [[1, 1]], "sigmas": [1], "covariances": [[1, 0], [0, 1]]}',
        "must hold a Gaussian mixture; got 'bad', in which sigmas must be given, or else covariances, and not both",
    ),
    "misspelt": (b'{"weights": [1], "means": [1], "sigma": [1]}', "must hold no keys but weights, means, sigmas"),
    "twice": (b'{"weights": [1], "weights": [1], "means": [1]}', "got 'bad' with the key 'weights' twice"),
    "strings": (b'{"weights": ["1"], "means": [1], "sigmas": [1]}', "in which weights must be probabilities"),
    "null": (b'{"weights": [1], "means": null, "sigmas": [1]}', "in which means must be finite"),
    "nan": (b'{"weights": [1], "means": [NaN], "sigmas": [1]}', "in which means must be finite and at most 1e300"),
    "ragged": (b'{"weights": [0.5, 0.5], "means": [[1], [1, 2]], "sigmas": [1]}', "in which means must be finite"),
    "nested": (b'{"weights": {"a": 1}, "means": [1], "sigmas": [1]}', "must hold no keys but"),
    "lengths": (b'{"weights": [1], "means": [1, 2], "sigmas": [1]}', "in which weights, means and sigmas must have"),
    "archived nan": (archive(weights=[1.0], means=[np.nan], sigmas=[1.0]), "in which means must be finite"),
    "archived shape": (archive(weights=[1.0], means=np.zeros((1, 2)), sigmas=[1.0, 2.0]), "in which sigmas must be a"),
    "indefinite": (
        archive(weights=[1.0], means=np.zeros((1, 2)), covariances=[[1.0, 2.0], [2.0, 1.0]]),
        "in which covariances must be positive definite",
    ),
    "pickled": (
        archive(weights=[1.0], means=np.array([None], dtype=object), sigmas=[1.0]),
        "got means that cannot be read: the entries must be numbers; got objects that are pickled",
    ),
    "unknown array": (archive(weights=[1.0], labels=["a"]), "with the key 'labels'. Rename or remove it."),
    "truncated": (WHOLE[:-30], "got 'bad', in which the archive must be whole; got the list of keys that cannot be"),
    "flipped": (WHOLE[:170] + b"\x55" + WHOLE[171:], "got weights that cannot be read"),
    "odd header": (odd_archive(), "got weights that cannot be read"),
}


@pytest.mark.parametrize(("content", "message"), BAD_FILES.values(), ids=BAD_FILES)
def test_a_bad_file_is_one_line_that_names_file_and_key(inside, capsys, content, message):
    Path("bad").write_bytes(content)
    assert main(["divergence", "kl", "a.json", "bad"]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.count("\n") == 1
    assert said.err.startswith("fastpriv: error: file must ")
    assert message in said.err


BAD = [
    (["kl", "a.json", "none.npz"], "file must be an existing .npz or .json file; got 'none.npz'"),
    (["kl", "a.json", "."], "file must be an existing .npz or .json file; got '.'"),
    (["kl", "a.json"], "Q must be given for kl; got none"),
    (["entropy", "a.json", "b.npz"], "Q must be left out for entropy; got 'b.npz'"),
    (["tv", "a.json", "b.npz"], "quantity must be one of kl, jensen-shannon"),
    (["kl", "a.json", "q.json"], "q must have the dimension of p, 1; got 2"),
    (["kl", "a.json", "b.npz", "--epsilon", "1"], "--epsilon must be left out for kl; got it. It belongs to hockey"),
    (["total-variation", "a.json", "b.npz", "--unit", "bits"],
     "--unit must be left out for total-variation; got it. It belongs to kl, jensen-shannon, renyi, entropy, label-"),
    (["kl", "a.json", "b.npz", "--unit", "bans"], "argument --unit: invalid choice: 'bans'"),
    (["renyi", "a.json", "b.npz", "--both"], "--both must be left out for renyi"),
    (["kl", "p.npz", "q.json", "--certified"], "certified must be False where nothing reduces the pair"),
    (["hockey-stick", "a.json", "b.npz", "--epsilon", "-1"], "epsilon must be at least 0 and finite; got -1.0"),
    (["hockey-stick", "a.json", "b.npz", "--epsilon", "0:9:10000000"], "a grid of at most 100,000 points; got 10,000,"),
    (["renyi", "a.json", "b.npz", "--order", "-2"], "order must be positive; got -2.0"),
    (["kl", "p.npz", "q.json", "--seed", "-1"], "--seed must be a whole number of at least 0; got -1"),
    (["kl", "p.npz", "q.json", "--max-samples", "1.5"], "max_samples must be an integer of at least 8"),
    (["kl", "p.npz", "q.json", "--confidence", "95"], "confidence must be between 0 and 1"),
    (["kl", "p.npz", "q.json", "--method", "fast"], "method must be 'auto' or name a distribution"),
    (["kl", "p.npz", "q.json", "--n-jobs", "0"], "n_jobs must be a non-zero integer or None; got 0"),
    (["kl", "p.npz", "q.json", "--rtol", "small"], "argument --rtol: invalid float value"),
    (["kl", "p.npz", "q.json", "--out", "table.xls"], "--out must end in .parquet or .csv; got 'table.xls'"),
    (["kl", "p.npz", "q.json", "--out", "held.csv"], "path must be a file that can be written; got 'held.csv'"),
    (["kl", "p.npz", "q.json", "--out", "a.json/table.csv"], "can be written; got 'a.json/table.csv'"),
]


@pytest.mark.parametrize(("arguments", "message"), BAD)
def test_bad_input_is_one_line_and_exit_code_2(inside, capsys, arguments, message):
    Path("held.csv").mkdir()
    try:
        code = main(["divergence", *arguments])
    except SystemExit as stop:
        code = stop.code
    said = capsys.readouterr()
    assert (code, said.out, said.err.count("\n")) == (2, "", 1)
    assert said.err.startswith("fastpriv: error: ")
    assert message in said.err


def test_parquet_without_pyarrow_is_refused_before_the_work(inside, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    assert main(["divergence", "kl", "a.json", "b.npz", "--out", "t.parquet"]) == 2
    assert "pyarrow must be installed to write Parquet" in capsys.readouterr().err


def table(capsys, *arguments):
    assert main(["divergence", *arguments, "--json"]) == 0
    said = capsys.readouterr()
    assert said.err == ""
    return json.loads(said.out)["table"]


@pytest.mark.parametrize("quantity", QUANTITIES)
def test_every_quantity_is_that_of_the_library(inside, capsys, quantity):
    files = ["p.npz"] if "Q" not in QUANTITIES[quantity][1] else ["p.npz", "q.json"]
    (row,) = table(capsys, quantity, *files, "--seed", "3", "--rtol", "0.02", "--n-jobs", "2")
    called = {"kl": "kl_divergence", "renyi": "renyi_divergence"}.get(quantity, quantity.replace("-", "_"))
    called += "_divergence" if "hockey" in quantity else ""
    want = getattr(fastpriv.divergences, called)(*[P, Q][: len(files)], rng=3, rtol=0.02)
    got = [row[name] for name in ("value", "lower", "upper", "kind", "unit", "method", "confidence", "samples")]
    number = [float(np.reshape(x, ())) for x in (want.value, want.lower, want.upper)]
    got[:3] = map(float, got[:3])
    assert got == [*number, want.kind, want.unit, want.method, want.confidence, want.cost.get("samples")]
    assert row["stopped"] == want.cost.get("stopped")


def test_amounts_of_information_in_bits(inside, capsys):
    for quantity, files in (("renyi", ["a.json", "b.npz"]), ("entropy", ["a.json"])):
        (nats,), (bits,) = (table(capsys, quantity, *files, *words) for words in ([], ["--unit", "bits"]))
        assert (nats["unit"], bits["unit"]) == ("nats", "bits")
        assert bits["value"] == pytest.approx(nats["value"] / np.log(2), rel=1e-14)
        assert bits["lower"] < bits["value"] < bits["upper"]


def test_directions_and_epsilons_are_rows_of_csv_and_parquet_alike(inside, capsys):
    for name in ("t.csv", "t.parquet"):
        words = ("--epsilon", "0,0.5..1:2", "--both", "--rtol", "0.05", "--seed", "1", "--quiet")
        assert main(["divergence", "hockey-stick", "p.npz", "q.json", *words, "--out", name]) == 0
    assert capsys.readouterr() == ("", "")
    rows = parquet.read_table("t.parquet").to_pylist()
    assert tuple(rows[0]) == COLUMNS
    assert [(row["direction"], row["epsilon"]) for row in rows] == [
        (way, epsilon) for way in ("P||Q", "Q||P") for epsilon in (0.0, 0.5, 1.0)
    ]
    with open("t.csv", newline="") as stream:
        text = list(csv.DictReader(stream))
    assert [{k: "" if v is None else str(v) for k, v in row.items()} for row in rows] == text


def test_the_table_a_person_reads(inside, capsys):
    words = ("--confidence", "0.99", "--rtol", "0.02", "--seed", "1")
    assert main(["divergence", "kl", "p.npz", "q.json", *words, "--both"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "kl: P = p.npz (2 components), Q = q.json (2 components), 2 dimensions"
    assert lines[2].split() == ["direction", "value", "lower", "upper"]
    assert [line.split()[0] for line in lines[3:5]] == ["P||Q", "Q||P"]
    words = dict(line.split(maxsplit=1) for line in lines[6:])
    assert words.pop("samples").replace(",", "").isdecimal()
    assert words == {
        "kind": "statistical, 99 % confidence", "unit": "nats", "method": words["method"],
        "stopped": "the target was met",
    }


def test_what_is_shown_is_rounded_outward(inside, capsys):
    assert main(["divergence", "kl", "a.json", "b.npz"]) == 0
    value, lower, upper = map(float, capsys.readouterr().out.splitlines()[3].split())
    exact = fastpriv.kl_divergence(ON_LINE, NORMAL)
    assert lower <= exact.lower <= exact.upper <= upper
    assert lower <= value <= upper <= lower + 2e-12


def test_an_infinite_answer_is_text_in_json(inside, capsys):
    write_mixture("wide.json", GaussianMixture.single(0.0, 2.0))
    (row,) = table(capsys, "renyi", "wide.json", "b.npz", "--order", "3")
    assert (row["value"], row["order"], row["direction"]) == ("inf", 3.0, "P||Q")
    assert main(["divergence", "renyi", "wide.json", "b.npz", "--order", "3"]) == 0
    assert capsys.readouterr().out.splitlines()[3].split() == ["3", "inf", "inf", "inf"]


def test_a_warning_is_one_line(inside, capsys, monkeypatch):
    def warned(*arguments, **words):
        warnings.warn("the tail must be\nlight", SamplingWarning, stacklevel=2)
        return exact(P)

    exact = fastpriv.divergences.label_information
    monkeypatch.setattr("fastpriv.divergences.label_information", warned)
    assert main(["divergence", "label-information", "p.npz"]) == 0
    said = capsys.readouterr()
    assert said.err == "fastpriv: warning: the tail must be light\n"
    assert "statistical" in said.out


def test_several_reasons_to_stop_are_all_said():
    cost = {"samples": 5000, "stopped": "target; interrupted"}
    numbers = np.array([0.1, 0.2])
    found = Estimate(numbers, numbers, numbers, kind="certified", unit="nats", method="any", cost=cost)
    compared = DivergenceTable("kl", ("p", "q"), (P, Q), {"both": True}, found)
    assert compared.summary().endswith("samples  5,000\nstopped  the target was met; it was interrupted")


def test_too_little_memory_is_a_clear_error(inside, capsys, monkeypatch):
    cases = {"mixtures and samples must fit into memory": (), "error: x must fit in memory": ("x must fit in memory",)}
    for shown, message in cases.items():

        def no_memory(*arguments, message=message, **words):
            raise MemoryError(*message)

        monkeypatch.setattr("fastpriv.divergences.kl_divergence", no_memory)
        assert main(["divergence", "kl", "a.json", "b.npz"]) == 2
        assert shown in capsys.readouterr().err


@pytest.mark.slow
def test_an_interrupted_run_prints_and_writes_what_was_reached(inside, capsys, monkeypatch):
    words = ("--rtol", "1e-9", "--max-samples", "1e13", "--out", "t.csv", "--json")
    sampled, summed = [], replicates.Segments.summed

    def interrupting(self, index):
        sampled.append(index)
        if len(sampled) == 15:
            os.kill(os.getpid(), signal.SIGINT)
        return summed(self, index)

    monkeypatch.setattr(replicates.Segments, "summed", interrupting)
    assert main(["divergence", "kl", "p.npz", "q.json", *words]) == 130
    out, said = capsys.readouterr()
    (row,) = json.loads(out)["table"]
    assert row["stopped"] == "interrupted"
    assert row["lower"] < row["upper"] < row["lower"] + 0.1
    assert said.startswith("fastpriv: warning: the run was interrupted after ")
    assert said.count("\n") == 1
    assert Path("t.csv").read_text().count("interrupted") == 1


@pytest.mark.parametrize("late", [0.0, pytest.param(0.2, marks=pytest.mark.slow)])
def test_an_interrupt_inside_a_finalizer_is_not_lost(inside, late):
    script = (
        "import os, signal, sys, threading, time\n"
        "from fastpriv.cli import info, main\n"
        "start = threading.Timer.start\n"
        "def start_late(self):  # on a busy machine the second interrupt comes before the hook is left\n"
        "    start(self)\n"
        "    threading.Timer.start = start\n"
        f"    time.sleep({late})\n"
        "threading.Timer.start = start_late\n"
        "class Closing:\n"
        "    def __del__(self):\n"
        "        os.kill(os.getpid(), signal.SIGINT)\n"
        "        try:\n"
        "            time.sleep(0.1)\n"
        "        except KeyboardInterrupt as error:  # compiled modules print what they drop\n"
        "            sys.excepthook(KeyboardInterrupt, error, None)\n"
        "            raise\n"
        "def read(asked):\n"
        "    opened = Closing()\n"
        "    del opened\n"
        "    time.sleep(60)\n"
        "info.run = read\n"
        "sys.argv = ['fastpriv', 'info']\n"
        "sys.exit(main())\n"
    )
    command = [sys.executable, "-c", script]
    run = subprocess.run(command, cwd=inside, env=HERE, text=True, capture_output=True, timeout=50)
    assert run.returncode == 130, run.stderr
    assert run.stderr == "fastpriv: error: interrupted; nothing was written.\n"


@pytest.mark.slow
def test_a_process_that_is_interrupted_ends_with_130_and_no_traceback(inside):
    words = ("divergence", "kl", "p.npz", "q.json", "--rtol", "0")
    command = [sys.executable, "-m", "fastpriv", *words]
    process = subprocess.Popen(command, cwd=inside, env=HERE, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    while b"kernels" not in Path(f"/proc/{process.pid}/maps").read_bytes() and process.poll() is None:
        time.sleep(0.02)
    time.sleep(1.0)  # sampling by now, or still loading where the machine is busy: both end alike
    process.send_signal(signal.SIGINT)
    _, said = process.communicate()
    assert process.returncode == 130, said
    assert "Traceback" not in said
    assert "interrupted" in said
