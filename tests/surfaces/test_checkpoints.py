"""What is on disk is checked before it is taken: blocks that were tampered with are computed again, and a run that is
killed at any moment ends, in the end, with the bits of one that was not."""

import hashlib
import json
import os
import random
import shutil
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import fastpriv
from fastpriv import Channel, DomainError, Pmf
from fastpriv.assessment import checkpoint
from fastpriv.assessment.checkpoint import Checkpoint
from fastpriv.assessment.quantities import QuantityGrid

HOME = str(Path(fastpriv.__file__).parents[1])
HERE = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, (HOME, os.environ.get("PYTHONPATH"))))}
ROWS = (slice(0, 2), slice(2, 4), slice(4, 5))


def surface(start, count):
    value = np.arange(start, start + count) / 7.0
    return QuantityGrid(value, value - 0.01, value + 0.01, ("certified",) * count, ("a method",) * count)


def block(rows):
    count = rows.stop - rows.start
    curve = np.arange(3 * count, dtype=float).reshape(count, 3) + rows.start
    return {
        "mutual_information": surface(rows.start, count),
        "lip_delta": QuantityGrid(curve, curve, np.full_like(curve, np.inf), ("exact",) * count, ("",) * count),
    }


def opened(parent, *settings, resume=True):
    return Checkpoint.open(parent, settings or ("gaussian", np.array([1.0, 2.0])), resume=resume)


@pytest.fixture
def store(tmp_path):
    found = opened(tmp_path, resume=False)
    for rows in ROWS:
        found.save(rows, block(rows))
    return opened(tmp_path)


def path(store, rows=ROWS[0]):
    return store.directory / f"{rows.start}-{rows.stop}.block"


def rewritten(store, change, rows=ROWS[0]):
    """A block whose digest is right, but whose head is another."""
    head, _, numbers = path(store, rows).read_bytes()[64:].partition(b"\n")
    content = json.dumps(change(json.loads(head))).encode() + b"\n" + numbers
    path(store, rows).write_bytes(hashlib.sha256(content).hexdigest().encode() + content)


def test_a_block_is_what_was_kept(store):
    for rows in ROWS:
        found = store.load(rows)
        assert list(found) == list(block(rows))
        for name, want in block(rows).items():
            for part in ("value", "lower", "upper"):
                np.testing.assert_array_equal(getattr(found[name], part), getattr(want, part))
            assert (found[name].kind, found[name].method) == (want.kind, want.method)


def test_blocks_and_their_directory_are_private(store):
    assert stat.S_IMODE(store.directory.stat().st_mode) == 0o700
    assert {stat.S_IMODE(p.stat().st_mode) for p in store.directory.iterdir()} == {0o600}
    store.directory.chmod(0o777)
    assert store.load(ROWS[0]) is not None
    assert stat.S_IMODE(store.directory.stat().st_mode) == 0o700


def owned_by_another(monkeypatch, which):
    """What the checks see of every file or directory, once the checkpoint is open."""
    real = os.fstat

    def other(descriptor):
        about = list(real(descriptor))
        about[stat.ST_UID] += which(about[stat.ST_MODE])
        return os.stat_result(about)

    monkeypatch.setattr(checkpoint.os, "fstat", other)


def zeroed_bounds(store):
    text = bytearray(path(store).read_bytes())
    text[-16:] = bytes(16)
    path(store).write_bytes(text)


def swapped(store):
    for a, b in ((ROWS[0], "x"), (ROWS[1], path(store, ROWS[0]).name), ("x", path(store, ROWS[1]).name)):
        (store.directory / (a if a == "x" else path(store, a).name)).rename(store.directory / b)


def flipped(store):
    text = bytearray(path(store).read_bytes())
    text[random.randrange(len(text))] ^= 1 << random.randrange(8)
    path(store).write_bytes(text)


def other_link(store, target):
    path(store).unlink()
    path(store).symlink_to(target)


TAMPERING = {
    "zeroed bounds": zeroed_bounds,
    "swapped": swapped,
    "one bit": flipped,
    "cut off": lambda store: path(store).write_bytes(path(store).read_bytes()[:-8]),
    "longer": lambda store: path(store).write_bytes(path(store).read_bytes() + bytes(8)),
    "empty": lambda store: path(store).write_bytes(b""),
    "gone": lambda store: path(store).unlink(),
    "not a block": lambda store: path(store).write_bytes(b"\x00damaged\n" * 50),
    "a link to itself": lambda store: other_link(store, path(store).name),
    "a link to another block": lambda store: other_link(store, path(store, ROWS[1])),
    "a link to nothing": lambda store: other_link(store, "/nowhere/at/all"),
    "a device": lambda store: other_link(store, "/dev/zero"),
    "a directory": lambda store: (path(store).unlink(), path(store).mkdir()),
    "a pipe": lambda store: (path(store).unlink(), os.mkfifo(path(store))),
    "another quantity": lambda store: path(store).write_bytes(path(store).read_bytes().replace(b"lip_d", b"ldp_d")),
    "a quantity less": lambda store: rewritten(store, lambda head: [*head[:4], {"lip_delta": head[4]["lip_delta"]}]),
    "another version": lambda store: rewritten(store, lambda head: ["0.0.1", *head[1:]]),
    "other settings": lambda store: rewritten(store, lambda head: [head[0], "0" * 64, *head[2:]]),
    "other rows": lambda store: rewritten(store, lambda head: [*head[:2], 2, 4, head[4]]),
}  # fmt: skip


@pytest.mark.parametrize("how", TAMPERING)
def test_what_was_tampered_with_is_not_taken_and_written_again(store, how):
    TAMPERING[how](store)
    assert store.load(ROWS[0]) is None
    assert store.load(ROWS[2]) is not None
    store.save(ROWS[0], block(ROWS[0]))
    assert how == "a directory" or store.load(ROWS[0]) is not None
    assert not [p for p in store.directory.iterdir() if p.suffix == ".part"]


def test_a_linked_block_of_the_same_content_is_not_taken(store, tmp_path):
    path(store).rename(tmp_path / "elsewhere")
    path(store).symlink_to(tmp_path / "elsewhere")
    assert store.load(ROWS[0]) is None


def test_a_block_of_another_owner_is_not_taken(store, monkeypatch):
    owned_by_another(monkeypatch, stat.S_ISREG)
    assert store.load(ROWS[0]) is None


def test_blocks_of_other_settings_or_an_earlier_run_are_not_taken(tmp_path):
    one, two = np.array([1.0]), np.array([2.0])
    kept = opened(tmp_path, "gaussian", one, two, resume=False)
    kept.save(ROWS[0], block(ROWS[0]))
    assert opened(tmp_path, "gaussian", one, two).load(ROWS[0]) is not None
    for other in (("laplace", one, two), ("gaussian", two, one), ("gaussian", one), ("gaussian", np.array([1.0, 2.0])),
                  ("gauss", "ian", one, two), ("gaussian", one.astype(np.float32), two)):  # fmt: skip
        assert opened(tmp_path, *other).load(ROWS[0]) is None
    assert opened(tmp_path, "gaussian", one, two, resume=False).load(ROWS[0]) is None


def test_a_directory_that_is_a_link_or_of_another_user_is_refused(store, tmp_path, monkeypatch):
    shutil.move(store.directory, tmp_path / "moved")
    store.directory.symlink_to(tmp_path / "moved")
    message = r"checkpoint must be a directory whose blocks are the user's own; got a link, or a file: .*Remove it"
    with pytest.raises(DomainError, match=message):
        opened(tmp_path)
    with pytest.raises(DomainError, match=message):
        opened(tmp_path, resume=False)
    with pytest.raises(DomainError, match=message):
        store.save(ROWS[0], block(ROWS[0]))
    assert store.load(ROWS[0]) is None
    store.directory.unlink()
    shutil.move(tmp_path / "moved", store.directory)
    owned_by_another(monkeypatch, stat.S_ISDIR)
    with pytest.raises(DomainError, match=r"whose blocks are the user's own; got one of user \d+: .*or name another"):
        opened(tmp_path)


def test_two_runs_of_one_kind_do_not_end_each_other(store):
    store.remove()
    assert store.load(ROWS[0]) is None
    store.save(ROWS[0], block(ROWS[0]))
    assert store.load(ROWS[0]) is not None


def test_channels_that_print_alike_have_blocks_of_their_own(tmp_path):
    law, words = Pmf([0, 1], [0.5, 0.5]), {"epsilon": [0.1], "checkpoint": tmp_path}

    def stop(done, total):
        raise KeyboardInterrupt

    for chance in (0.9, 0.6):
        with pytest.raises(KeyboardInterrupt):
            fastpriv.assess(law, mechanism=Channel([[chance, 1 - chance], [0.1, 0.9]]), progress=stop, **words)
    assert len(list(tmp_path.glob(".blocks-*"))) == 2
    again = fastpriv.assess(law, mechanism=Channel([[0.9, 0.1], [0.1, 0.9]]), resume=True, **words)
    fresh = fastpriv.assess(law, mechanism=Channel([[0.9, 0.1], [0.1, 0.9]]), epsilon=[0.1])
    assert again["mutual_information"].value == fresh["mutual_information"].value


def assert_same_bits_after_kills(command, cwd, times, resumed, generator):
    """Run it to its end, killed this often on the way; how often a kill left something to go on from."""
    begin = time.monotonic()
    subprocess.run(command, cwd=cwd, env=HERE, check=True, capture_output=True)
    whole, found = time.monotonic() - begin, 0
    kept = {p.name: p.read_bytes() for p in Path(cwd).rglob("*") if p.is_file()}
    for name in os.listdir(cwd):
        shutil.rmtree(Path(cwd) / name) if (Path(cwd) / name).is_dir() else (Path(cwd) / name).unlink()
    done = 0
    while done < times:
        process = subprocess.Popen([*command, *resumed], cwd=cwd, env=HERE, stdout=subprocess.DEVNULL)
        time.sleep(generator.uniform(0.2, 0.9) * whole)
        process.send_signal(signal.SIGKILL)
        if process.wait() == 0:  # it was quicker: from the beginning
            shown = {p.name: p.read_bytes() for p in Path(cwd).rglob("*") if p.is_file()}
            assert shown == kept
            for p in Path(cwd).rglob("*"):
                p.unlink() if p.is_file() else None
            continue
        done += 1
        found += any(Path(cwd).rglob("*.block"))
        for p in Path(cwd).rglob("*"):  # nothing half-written under its name
            assert not p.is_file() or p.name not in kept or p.read_bytes() == kept[p.name]
    subprocess.run([*command, *resumed], cwd=cwd, env=HERE, check=True, capture_output=True)
    assert {p.name: p.read_bytes() for p in Path(cwd).rglob("*") if p.is_file() and p.name in kept} == kept
    return found


ASSESS = (
    sys.executable, "-m", "fastpriv", "assess", "--epsilon", "0.01..10:60", "--out", "report",
    "--figure", "none", "--format", "csv", "--quiet",
)  # fmt: skip


@pytest.mark.parametrize("times", [2, pytest.param(50, marks=pytest.mark.slow)])
def test_assess_killed_at_random_moments_ends_with_the_same_bits(tmp_path, times):
    people = tmp_path / "people.csv"
    people.write_text("age\n31\n40\n40\n58\n")
    command = [*ASSESS, "--sigma", "1..9:5", str(people)] if times < 10 else [*ASSESS, "--sigma", "1..1000:60"]
    (tmp_path / "run").mkdir()
    found = assert_same_bits_after_kills(command, tmp_path / "run", times, ["--resume"], random.Random(times))
    assert times < 10 or found > 0
    assert not list(tmp_path.rglob(".blocks-*"))


@pytest.mark.parametrize("times", [2, pytest.param(50, marks=pytest.mark.slow)])
def test_posterior_killed_at_random_moments_writes_a_whole_file_or_none(tmp_path, times):
    size = 200_000 if times < 10 else 30_000_000
    source = tmp_path / "likelihood.npy"
    np.save(source, -0.5 * (np.arange(size) % 1013 / 101.0 - 3.0) ** 2)
    (tmp_path / "run").mkdir()
    command = [sys.executable, "-m", "fastpriv", "posterior", str(source), "--out", "out.npy", "--quiet"]
    assert_same_bits_after_kills(command, tmp_path / "run", times, [], random.Random(times))
