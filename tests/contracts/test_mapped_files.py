"""What is mapped into memory is read from the file that is mapped; a file that is cut is an error and no signal."""

import os
import pickle
import subprocess
import sys
import textwrap

import numpy as np
import pytest

from fastpriv import Channel, DomainError, GaussianMixture, channel_capacity, posterior
from fastpriv.base.files import FileArray, memory_mapped_file
from fastpriv.channels import read_channel
from fastpriv.channels.base import _unpickled_channel
from fastpriv.channels.vector_sources import source_of

# Logarithms between 0 and 1 are rare outside of these tests, and warned of.
pytestmark = pytest.mark.filterwarnings("ignore:.*must hold natural logarithms:UserWarning")

LOGS = np.log(np.arange(1.0, 2001.0) / 2000.0)
OTHER = LOGS[::-1].copy()
ROWS = np.stack([np.linspace(0.1, 0.9, 50), 1.0 - np.linspace(0.1, 0.9, 50)], axis=1)


def replaced(path, array):
    """Another file under the same name, as most programs save."""
    np.save(path.with_suffix(".new.npy"), array)
    os.replace(path.with_suffix(".new.npy"), path)


@pytest.mark.parametrize("how", ["untouched", "replaced", "renamed", "removed"])
@pytest.mark.parametrize("mode", ["r", "r+", "c"])
def test_the_map_is_read_whatever_its_name_stands_for(tmp_path, how, mode):
    for name, array in (("l.npy", LOGS), ("q.npy", ROWS)):
        np.save(tmp_path / name, array)
    logs, rows = (np.load(tmp_path / name, mmap_mode=mode) for name in ("l.npy", "q.npy"))
    for name, other in (("l.npy", OTHER), ("q.npy", ROWS[::-1])):
        if how == "replaced":
            replaced(tmp_path / name, other)
        elif how == "renamed":
            os.rename(tmp_path / name, tmp_path / f"old-{name}")
        elif how == "removed":
            os.remove(tmp_path / name)
    assert (memory_mapped_file("x", logs) is not None) == (how == "untouched" and mode != "c")
    for part in (slice(None), slice(7, None), slice(3, 1500), slice(0, None, 3), slice(None, None, -1)):
        found, meant = posterior(logs[part]), posterior(LOGS[part].copy())
        assert (found.map_index, found.entropy.value) == (meant.map_index, meant.entropy.value), part
        assert found.map_index == np.argmax(LOGS[part])
        channel = Channel(rows[part])
        assert channel == Channel(ROWS[part])
        assert np.array_equal(channel.matrix(), ROWS[part])
        assert np.array_equal(channel.column(1), np.log(ROWS[part][:, 1]))
    for inside in (pickle.loads(pickle.dumps(Channel(rows))), pickle.loads(pickle.dumps(source_of("x", rows[:, 0])))):
        mine = inside.rows()[:, 0] if isinstance(inside, Channel) else inside.take(0, 50)
        assert np.array_equal(mine, ROWS[:, 0])


@pytest.mark.parametrize("kind", ["<f4", ">f8", "<i4", "<f2"])
@pytest.mark.parametrize("order", ["C", "F"])
def test_other_types_and_orders(tmp_path, kind, order):
    given = np.zeros((40, 40)) + np.eye(40)
    np.save(tmp_path / "q.npy", np.asarray(given, dtype=kind, order=order))
    mapped = np.load(tmp_path / "q.npy", mmap_mode="r")
    replaced(tmp_path / "q.npy", given[::-1])
    assert np.array_equal(Channel(mapped).matrix(), given)
    assert np.array_equal(Channel(mapped[::-1]).matrix(), given[::-1])
    assert posterior(mapped[3]).map_index == 3
    assert posterior(mapped[:, 5]).map_index == 5
    np.save(tmp_path / "p.npy", np.asarray(given, dtype=kind, order=order))
    assert np.array_equal(read_channel(tmp_path / "p.npy").matrix(), given)


def test_offsets(tmp_path):
    raw = np.concatenate([OTHER, LOGS])
    raw.tofile(tmp_path / "raw")
    mapped = np.memmap(tmp_path / "raw", dtype=np.float64, mode="r", offset=OTHER.nbytes)
    assert isinstance(memory_mapped_file("x", mapped[11:17]), FileArray)
    assert np.array_equal(memory_mapped_file("x", mapped[11:17]).take(0, 6), LOGS[11:17])
    assert posterior(mapped).entropy.value == posterior(LOGS).entropy.value
    (OTHER + 1.0).tofile(tmp_path / "other")
    os.replace(tmp_path / "other", tmp_path / "raw")
    assert memory_mapped_file("x", mapped) is None
    assert posterior(mapped).entropy.value == posterior(LOGS).entropy.value


def test_the_output_is_not_the_file_that_is_read(tmp_path):
    np.save(tmp_path / "l.npy", LOGS)
    mapped = np.load(tmp_path / "l.npy", mmap_mode="r+")
    for likelihood in (mapped, np.load(tmp_path / "l.npy", mmap_mode="r"), tmp_path / "l.npy"):
        with pytest.raises(DomainError, match="out must be memory of its own; got that of the likelihood or prior"):
            posterior(likelihood, out=mapped)
    assert np.array_equal(mapped, LOGS)
    np.save(tmp_path / "p.npy", LOGS)
    out = np.load(tmp_path / "p.npy", mmap_mode="r+")
    posterior(mapped, out=out)
    assert abs(out.sum() - 1.0) < 1e-13


def test_what_is_worked_on_for_long_is_no_map(tmp_path):
    stack = np.eye(3) + np.array([[[0.1]], [[0.2]]])
    np.save(tmp_path / "s.npy", stack)
    np.save(tmp_path / "q.npy", ROWS)
    mapped, rows = (np.load(tmp_path / name, mmap_mode="r") for name in ("s.npy", "q.npy"))
    mixture = GaussianMixture([0.5, 0.5], np.zeros((2, 3)), covariances=mapped)
    found = channel_capacity(rows)
    os.truncate(tmp_path / "s.npy", 0)
    os.truncate(tmp_path / "q.npy", 0)
    assert np.array_equal(mixture.covariances, stack)
    assert found.capacity.value == channel_capacity(ROWS).capacity.value
    with pytest.raises(DomainError, match="channel must be a file that stays as it is while it is read; got .* cut to"):
        channel_capacity(rows)


def test_wide_rows_are_read_entry_by_entry(tmp_path, monkeypatch):
    np.save(tmp_path / "q.npy", ROWS)
    monkeypatch.setattr("fastpriv.channels.base._ENTRYWISE_OUTPUTS", 1)
    found = read_channel(tmp_path / "q.npy")
    assert np.array_equal(found.column(0), np.log(ROWS[:, 0]))


def test_another_process_reads_the_same_file_or_none(tmp_path):
    path = tmp_path / "l.npy"
    np.save(path, LOGS)
    np.save(tmp_path / "q.npy", ROWS)
    sent = pickle.dumps(source_of("likelihood", np.load(path, mmap_mode="r")))
    assert np.array_equal(pickle.loads(sent).take(5, 9), LOGS[5:9])
    replaced(path, OTHER)
    with pytest.raises(DomainError, match="stays as it is while it is read; got .*, and another was found under its"):
        pickle.loads(sent)
    channel = read_channel(tmp_path / "q.npy")
    _, (_, log, state) = channel.__reduce__()
    again = np.load(tmp_path / "q.npy", mmap_mode="r")
    assert _unpickled_channel(np.asarray(again), log, state) == channel
    replaced(tmp_path / "q.npy", ROWS[::-1])
    with pytest.raises(DomainError, match="matrix must be a file that stays as it is .* and another was found under"):
        _unpickled_channel(np.asarray(np.load(tmp_path / "q.npy", mmap_mode="r")), log, state)


def in_a_process_of_its_own(code, folder):
    """What it prints; a signal, such as that of a page that is gone, is a failure."""
    head = """
        import os, numpy as np, fastpriv
        from fastpriv import Channel, DomainError, notions, posterior
        from fastpriv.channels import read_channel
        def cut(done, total):
            os.truncate(path, 4096)
        def said(call):
            np.save("a.npy", array)
            try:
                call()
            except DomainError as fault:
                print(str(fault))
            else:
                print("nothing was said")
        path = "a.npy"
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(head) + textwrap.dedent(code)], cwd=folder, text=True,
                          capture_output=True, check=False)
    assert done.returncode == 0, f"exit code {done.returncode}: {done.stderr[-2000:]}"
    return done.stdout.splitlines()


@pytest.mark.slow
def test_a_file_that_is_cut_under_its_map_is_said(tmp_path):
    lines = in_a_process_of_its_own(
        """
        array = np.zeros(9 * 2**18)
        said(lambda: posterior(np.load(path, mmap_mode="r"), progress=cut))
        said(lambda: posterior(path, progress=cut, n_jobs=2))
        said(lambda: posterior(np.load(path, mmap_mode="r+"), progress=cut))
        def renamed():
            global path
            mapped = np.load(path, mmap_mode="r")
            os.rename(path, "b.npy")
            path = "b.npy"
            posterior(mapped, progress=cut)
        said(renamed)
        path = "a.npy"
        array = np.full((2**15, 2), 0.5)
        for make in (lambda: read_channel(path), lambda: Channel(np.load(path, mmap_mode="r")),
                     lambda: Channel(np.load(path, mmap_mode="c"))):
            def look():
                channel = make()
                cut(0, 0)
                notions.summary(None, channel)
            said(look)
            def column():
                channel = make()
                cut(0, 0)
                channel.column(0)
            said(column)
            def equal():
                channel, other = make(), make()
                cut(0, 0)
                channel == other
            said(equal)
        def strided():
            mapped = np.load(path, mmap_mode="r")
            cut(0, 0)
            Channel(mapped[:, ::-1])
        said(strided)
        def mixture():
            mapped = np.load(path, mmap_mode="r")
            cut(0, 0)
            fastpriv.GaussianMixture(mapped[:, 0], mapped[:, 1], 1.0)
        said(mixture)
        """,
        tmp_path,
    )
    assert len(lines) == 15
    for line in lines:
        assert "must be a file" in line, line
        assert "got the end of" in line or "which was cut to 4096 bytes of" in line or "was written to" in line, line
        assert "Write it anew" in line or "Run again" in line, line


@pytest.mark.slow
def test_no_moment_at_which_a_file_is_cut_ends_the_process(tmp_path):
    lines = in_a_process_of_its_own(
        """
        import threading, time
        array = np.zeros(12 * 2**18)
        for i in range(150):
            def call():
                mapped = np.load(path, mmap_mode="r")
                late = threading.Timer(0.0004 * i, cut, (0, 0))
                late.start()
                try:
                    posterior(mapped, n_jobs=2)
                    Channel(mapped.reshape(-1, 1))
                finally:
                    late.join()
            said(call)
        """,
        tmp_path,
    )
    assert len(lines) == 150
    assert sum("must be a file" in line for line in lines) > 20
