"""What stops a writer is said in one sentence with the path and the remedy, and nothing half-written is left."""

import errno
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import fastpriv
from fastpriv import Channel, DomainError, GaussianMixture, notions, posterior
from fastpriv.base import files
from fastpriv.base.table import write_table
from fastpriv.channels import IndexLikelihood, write_channel
from fastpriv.cli.divergence_table import compute_table
from fastpriv.distributions import write_mixture

MATRIX = np.array([[0.5, 0.5], [0.1, 0.9]])


@pytest.fixture(scope="module")
def report():
    return fastpriv.assess([31.0, 40.0, 40.0, 58.0], sigma=[5.0], epsilon=[1.0])


@pytest.fixture(scope="module")
def comparison():
    return compute_table("kl", [("p", GaussianMixture.single(0.0, 1.0)), ("q", GaussianMixture.single(1.0, 1.0))], {})


WRITERS = {
    "csv": ("a.csv", lambda path, report, _: report.to_csv(path)),
    "json": ("a.json", lambda path, report, _: report.to_json(path)),
    "parquet": ("a.parquet", lambda path, report, _: report.to_parquet(path)),
    "png": ("a.png", lambda path, report, _: report.to_figure(path)),
    "svg": ("a.svg", lambda path, report, _: report.to_figure(path)),
    "comparison, csv": ("b.csv", lambda path, _, comparison: write_table(comparison, path)),
    "comparison, parquet": ("b.parquet", lambda path, _, comparison: write_table(comparison, path)),
    "channel, csv": ("c.csv", lambda path, *_: write_channel(path, Channel(MATRIX))),
    "channel, npy": ("c.npy", lambda path, *_: write_channel(path, Channel(MATRIX))),
    "channel, npz": ("c.npz", lambda path, *_: write_channel(path, Channel(MATRIX))),
    "channel, json": ("c.json", lambda path, *_: write_channel(path, fastpriv.RandomizedResponse(3, 1.0))),
    "channel, parquet": ("c.parquet", lambda path, *_: write_channel(path, Channel(MATRIX))),
    "mixture, npz": ("d.npz", lambda path, *_: write_mixture(path, GaussianMixture.single(0.0, 1.0))),
    "mixture, json": ("d.json", lambda path, *_: write_mixture(path, GaussianMixture.single(0.0, 1.0))),
    "posterior": ("e.npy", lambda path, *_: posterior(np.log([0.5, 0.25]), out=path)),
    "posterior of an index": (
        "f.npy", lambda path, *_: posterior(IndexLikelihood(lambda i: np.zeros(len(i)), 10), out=path),
    ),
    "posteriors of a channel": ("g.npy", lambda path, *_: notions.summary(None, MATRIX, posteriors=path)),
}


@pytest.fixture(params=WRITERS)
def written(request, tmp_path, report, comparison):
    name, write = WRITERS[request.param]
    if "parquet" in name:
        pytest.importorskip("pyarrow")
    if name.endswith(("png", "svg")):
        pytest.importorskip("matplotlib")
    return tmp_path / name, lambda path: write(path, report, comparison)


def with_faults(faults):
    """The first of these faults for every writer, the others for one."""
    each = [(one, faults[0]) for one in WRITERS] + [("channel, csv", fault) for fault in faults[1:]]
    return pytest.mark.parametrize(
        ("written", "code", "remedy"), [(one, *fault) for one, fault in each], indirect=["written"],
        ids=[f"{one}-{errno.errorcode[fault[0]]}" for one, fault in each],
    )


@pytest.mark.few(7)
@with_faults(
    [
        (errno.ENOSPC, "No space left on device. Free space there, or name a path on another disk"),
        (errno.EFBIG, r"File too large. Raise the limit on the size of files \(ulimit -f\)"),
        (errno.EIO, "Input/output error. Check the path and its disk"),
    ],
)
def test_a_fault_while_writing_names_path_and_remedy(written, monkeypatch, code, remedy):
    path, write = written

    def full(*_):
        raise OSError(code, os.strerror(code))

    class Full(files._TargetFile):
        def write(self, data):
            with files.explain_write_errors(self._target):
                full()

    monkeypatch.setattr(files, "_TargetFile", Full)
    monkeypatch.setattr(os, "pwrite", full)
    path.write_bytes(b"before")
    with pytest.raises(OSError, match=rf"^path must be a file that can be written; got '{path}': {remedy}") as caught:
        write(path)
    assert caught.value.errno == code
    assert path.read_bytes() == b"before"
    assert os.listdir(path.parent) == [path.name]


@pytest.mark.few(13)
def test_bad_places_are_named(written):
    path, write = written
    if not path.name.startswith("b."):  # which makes the directory
        with pytest.raises(FileNotFoundError, match=f"got '{path.parent}/no/{path.name}': No such file or directory"):
            write(path.parent / "no" / path.name)
    (path.parent / "file").write_text("kept")
    with pytest.raises(NotADirectoryError, match="Not a directory. Name a path without a file in place of a"):
        write(path.parent / "file" / "in" / path.name)
    path.mkdir()
    with pytest.raises((OSError, DomainError), match="Is a directory. Name a file in that|name of a file; got the dir"):
        write(path)
    assert sorted(os.listdir(path.parent)) == sorted(["file", path.name])


@with_faults(
    [
        (errno.EACCES, "Permission denied. Name a path where you may write, or have its owner let you"),
        (errno.EROFS, "Read-only file system. Name a path on a disk that is not read-only"),
        (errno.EDQUOT, "Disk quota exceeded. Free space there"),
    ],
)
def test_a_directory_that_takes_no_file_is_named(written, monkeypatch, code, remedy):
    path, write = written
    real = os.open

    def closed(name, flags, *more, **words):
        if flags & os.O_RDWR and str(path.parent) in str(name):
            raise OSError(code, os.strerror(code), str(name))
        return real(name, flags, *more, **words)

    monkeypatch.setattr(files.os, "open", closed)
    with pytest.raises(OSError, match=f"got '{path}': {remedy}") as caught:
        write(path)
    assert (caught.value.errno, type(caught.value)) == (code, type(OSError(code, "")))


def test_devices_and_protected_files_stay_what_they_are(tmp_path, monkeypatch):
    os.mkfifo(tmp_path / "pipe.csv")
    with pytest.raises(OSError, match="got '.*pipe.csv': Invalid argument. Name a plain file, or one that does not"):
        fastpriv.channels.write_channel(tmp_path / "pipe.csv", Channel(MATRIX))
    (tmp_path / "a.csv").write_text("kept")
    (tmp_path / "a.csv").chmod(0o444)
    monkeypatch.setattr(os, "access", lambda *_: False)  # root may write everywhere
    with pytest.raises(PermissionError, match=r"got '.*a.csv': Permission denied\. Name a path where you may"):
        fastpriv.channels.write_channel(tmp_path / "a.csv", Channel(MATRIX))
    assert (tmp_path / "a.csv").read_text() == "kept"
    with pytest.raises(OSError, match="File name too long. Take a shorter name"):
        fastpriv.channels.write_channel(tmp_path / ("a" * 300 + ".csv"), Channel(MATRIX))


def test_faults_of_what_is_read_are_not_told_of_what_is_written(tmp_path):
    def torn():
        with files.atomic_write(tmp_path / "a.npy"):
            raise OSError(errno.EIO, "Input/output error", "the likelihood")

    with pytest.raises(OSError, match="the likelihood") as caught:
        torn()
    assert caught.value.filename == "the likelihood"
    assert os.listdir(tmp_path) == []


def test_a_directory_for_files_says_what_is_wrong_with_it(report, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(FileExistsError, match="path must be a directory that can be written; got '.*/file': File exi"):
        report.save(tmp_path / "file")
    with pytest.raises(NotADirectoryError, match="path must be a directory that can be written; got '.*/file/in'"):
        fastpriv.assess([1.0, 2.0], sigma=[1.0], epsilon=[1.0], checkpoint=tmp_path / "file" / "in")


LIMITED = """
import resource, sys
resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))
from fastpriv.cli import main
sys.exit(main(sys.argv[1:]))
"""


@pytest.mark.parametrize("command", ["assess", "posterior"])
@pytest.mark.slow
def test_a_limit_on_files_stops_the_command_with_a_sentence(tmp_path, command):
    np.save(tmp_path / "l.npy", np.zeros(10_000))
    words = {
        "assess": ["assess", "p.csv", "--epsilon", "0.1..1:99", "--figure-format", "none", "--format", "csv",
                   "--out", "r"],
        "posterior": ["posterior", "l.npy", "--out", "p.npy"],
    }[command]
    (tmp_path / "p.csv").write_text("31\n40\n58\n")
    home = os.pathsep.join(filter(None, (str(Path(fastpriv.__file__).parents[1]), os.environ.get("PYTHONPATH"))))
    done = subprocess.run(
        [sys.executable, "-c", LIMITED, *words], cwd=tmp_path, text=True,
        capture_output=True, check=False, env=os.environ | {"PYTHONPATH": home},
    )
    assert done.returncode == 2
    if command == "assess":  # its blocks are written before its table
        assert "error: checkpoint must be on a disk with space for the results; got 'r/.blocks-" in done.stderr
        assert done.stderr.count("\n") == 1
    else:
        assert done.stderr == (
            "fastpriv: error: path must be a file that can be written; got 'p.npy': File too large. Raise the limit on "
            "the size of files (ulimit -f), or write less.\n"
        )
    found = {p.name for p in tmp_path.rglob("*") if p.is_file()}
    assert {name for name in found if not name.startswith(".blocks-")} == {"l.npy", "p.csv"}


@pytest.mark.slow
def test_a_full_screen_is_a_sentence(tmp_path):
    home = os.pathsep.join(filter(None, (str(Path(fastpriv.__file__).parents[1]), os.environ.get("PYTHONPATH"))))
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "fastpriv", "info"], stdout=full, stderr=subprocess.PIPE, text=True, check=False,
            env=os.environ | {"PYTHONPATH": home}, cwd=tmp_path,
        )
    assert done.returncode == 2
    assert done.stderr == (
        "fastpriv: error: standard output must be writable; got: No space left on device. Free space there, or write "
        "elsewhere.\n"
    )
