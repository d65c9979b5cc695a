"""What is on disk is checked before it is taken: blocks that were tampered with are computed again, and a run that is
killed at any moment ends, in the end, with the bits of one that was not."""

import os
import random
import shutil
import signal
import sqlite3
import stat
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import fastpriv
from fastpriv import Channel, DomainError, Pmf
from fastpriv.studies.assessment.checkpoint import Checkpoint, open_store
from fastpriv.studies.assessment.quantities import QuantityGrid

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
    return Checkpoint(open_store(parent, settings or ("gaussian", np.array([1.0, 2.0])), resume=resume))


@pytest.fixture
def store(tmp_path):
    found = opened(tmp_path, resume=False)
    for rows in ROWS:
        found.save(rows, block(rows))
    return found


def changed(store, statement):
    """Change the file of a store behind its back."""
    path = store.store.path
    store.store.close()
    connection = sqlite3.connect(path)
    connection.execute(statement)
    connection.commit()
    connection.close()
    return opened(path.parent)


def test_a_block_is_what_was_kept(store):
    for rows in ROWS:
        found = store.load(rows)
        assert list(found) == list(block(rows))
        for name, want in block(rows).items():
            for part in ("value", "lower", "upper"):
                np.testing.assert_array_equal(getattr(found[name], part), getattr(want, part))
            assert (found[name].kind, found[name].method) == (want.kind, want.method)


def test_blocks_are_private(store):
    assert {stat.S_IMODE(p.stat().st_mode) for p in store.store.path.parent.iterdir()} == {0o600}


TAMPERING = {
    "another's block": "update results set (payload, digest) = "
                       "(select payload, digest from results where key > 9 limit 1)",
    "one byte": "update results set payload = substr(payload, 1, 20) || x'00' || substr(payload, 22)",
    "cut off": "update results set payload = substr(payload, 1, length(payload) - 8)",
    "longer": "update results set payload = payload || zeroblob(8)",
    "empty": "update results set payload = x''",
    "gone": "delete from results",
    "no bytes": "update results set payload = 7",
}


@pytest.mark.parametrize("how", TAMPERING)
def test_what_was_tampered_with_is_not_taken_and_written_again(store, how):
    store = changed(store, TAMPERING[how] + " where key = 2")
    assert store.load(ROWS[0]) is None
    assert store.load(ROWS[2]) is not None
    store.save(ROWS[0], block(ROWS[0]))
    assert store.load(ROWS[0]) is not None


PAYLOADS = {
    "no line": b"abc", "no JSON": b"{\n", "a list": b"[]\n", "more numbers": b"{}\n" + bytes(8), "no numbers":
    b'{"a": [[2], ["exact", "exact"], ["", ""]]}\n', "another shape": b'{"a": [[2, 2], ["exact"], [""]]}\n' + bytes(96),
    "half a number": b"{}\n" + bytes(3), "no shape": b'{"a": 3}\n',
}


@pytest.mark.parametrize("payload", PAYLOADS)
def test_a_block_of_another_form_is_not_taken(store, payload):
    store.store.put_many([(2, PAYLOADS[payload])])
    assert store.load(ROWS[0]) is None


@pytest.mark.parametrize("resume", [True, False])
def test_a_damaged_file_is_begun_again(store, resume):
    path = store.store.path
    store.store.close()
    path.write_bytes(b"damaged" * 4000)
    again = opened(path.parent, resume=resume)
    assert again.load(ROWS[0]) is None
    again.save(ROWS[0], block(ROWS[0]))
    assert again.load(ROWS[0]) is not None


def test_a_link_in_place_of_the_file_is_refused(store, tmp_path):
    path = store.store.path
    store.store.close()
    path.rename(tmp_path / "elsewhere")
    path.symlink_to(tmp_path / "elsewhere")
    for resume in (True, False):
        with pytest.raises(DomainError, match="checkpoint must be a plain file of the user's own; got a link or a dir"):
            opened(tmp_path, resume=resume)


def test_blocks_of_other_settings_or_an_earlier_run_are_not_taken(tmp_path):
    one, two = np.array([1.0]), np.array([2.0])
    kept = opened(tmp_path, "gaussian", one, two, resume=False)
    kept.save(ROWS[0], block(ROWS[0]))
    kept.store.close()
    again = opened(tmp_path, "gaussian", one, two)
    assert again.load(ROWS[0]) is not None
    again.store.close()
    for other in (("laplace", one, two), ("gaussian", two, one), ("gaussian", one), ("gaussian", np.array([1.0, 2.0])),
                  ("gauss", "ian", one, two), ("gaussian", one.astype(np.float32), two)):
        assert opened(tmp_path, *other).load(ROWS[0]) is None
    assert opened(tmp_path, "gaussian", one, two, resume=False).load(ROWS[0]) is None


def test_of_two_runs_of_one_kind_one_is_refused(store, tmp_path):
    with pytest.raises(DomainError, match="checkpoint must have one writer; got .*which another run is writing"):
        opened(tmp_path)
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
        found += any(path.name.startswith(".blocks-") for path in Path(cwd).rglob("*"))
        for p in Path(cwd).rglob("*"):  # nothing half-written under its name
            assert not p.is_file() or p.name not in kept or p.read_bytes() == kept[p.name]
    subprocess.run([*command, *resumed], cwd=cwd, env=HERE, check=True, capture_output=True)
    assert {p.name: p.read_bytes() for p in Path(cwd).rglob("*") if p.is_file() and p.name in kept} == kept
    return found


ASSESS = (
    sys.executable, "-m", "fastpriv", "assess", "--epsilon", "0.01..10:60", "--out", "report",
    "--figure-format", "none", "--format", "csv", "--quiet",
)


@pytest.mark.slow
def test_assess_killed_at_random_moments_ends_with_the_same_bits(tmp_path):
    people = tmp_path / "people.csv"
    people.write_text("age\n31\n40\n40\n58\n")
    command = [*ASSESS, "--sigma", "1..1000:60"]
    (tmp_path / "run").mkdir()
    assert assert_same_bits_after_kills(command, tmp_path / "run", 12, ["--resume"], random.Random(12)) > 0
    assert not list(tmp_path.rglob(".blocks-*"))


@pytest.mark.slow
def test_posterior_killed_at_random_moments_writes_a_whole_file_or_none(tmp_path):
    source = tmp_path / "likelihood.npy"
    np.save(source, -0.5 * (np.arange(30_000_000) % 1013 / 101.0 - 3.0) ** 2)
    (tmp_path / "run").mkdir()
    command = [sys.executable, "-m", "fastpriv", "posterior", str(source), "--out", "out.npy", "--quiet"]
    assert_same_bits_after_kills(command, tmp_path / "run", 12, [], random.Random(12))
