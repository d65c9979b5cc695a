"""A store gives back what was put into it or nothing, to one writer and any reader of the same identity."""

import gc
import os
import random
import shutil
import sqlite3
import stat
import subprocess
import sys
from pathlib import Path

import pytest

import fastpriv
from fastpriv import DomainError
from fastpriv.base.store import ResultStore

HOME = str(Path(fastpriv.__file__).parents[1])
IDENTITY = {"version": "1", "quantity": "f"}
RESULTS = {key: bytes([key % 251]) * (key % 7 + 1) for key in (0, 1, 5, 2**62, -3)}


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "results.db"
    with ResultStore.open(path, identity=IDENTITY) as store:
        store.put_many(RESULTS.items(), {"done": "5"})
    return path


def test_a_store_gives_back_what_was_put_in(path):
    with ResultStore.open(path, identity=IDENTITY) as store:
        assert dict(store.items()) == RESULTS
        assert store.keys() == sorted(RESULTS)
        assert store.get(5) == RESULTS[5]
        assert store.get(6) is None
        assert list(store.items(0, 5)) == [(key, RESULTS[key]) for key in (0, 1, 5)]
        assert store.notes() == {"done": "5"}
        store.put_many([(5, b"new")])
        assert store.get(5) == b"new"
    with ResultStore.read(path) as store:
        assert store.identity == IDENTITY
        assert store.get(5) == b"new"


def test_more_rows_than_are_read_at_once(tmp_path):
    with ResultStore.open(tmp_path / "many", identity=IDENTITY) as store:
        rows = [(key, str(key).encode()) for key in range(0, 1000, 3)]
        store.put_many(rows)
        assert list(store.items()) == rows
        assert list(store.items(64, 640)) == [row for row in rows if 64 <= row[0] <= 640]


def test_nothing_is_left_beside_a_store_that_is_closed(path):
    with ResultStore.read(path) as store:
        store.get(1)
    assert [p.name for p in path.parent.iterdir()] == [path.name]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    with ResultStore.open(path, identity=IDENTITY) as store:
        store.remove()
    assert not list(path.parent.iterdir())


def test_resume_false_empties_a_store_of_any_identity(path):
    other = {"version": "2", "quantity": "g"}
    with ResultStore.open(path, identity=other, resume=False) as store:
        assert store.keys() == []
        assert store.notes() == {}
    with ResultStore.open(path, identity=other) as store:
        assert store.identity == other


def test_a_store_of_another_identity_is_refused(path):
    before = path.read_bytes()
    for word, value in (("version", "2"), ("quantity", "g")):
        with pytest.raises(DomainError, match=rf"store must be one of the same {word}; got .* and not '{value}'"):
            ResultStore.open(path, identity=IDENTITY | {word: value})
    with pytest.raises(DomainError, match="store must be one of the same seed; got .*or pass resume=False to empty it"):
        ResultStore.open(path, identity=IDENTITY | {"seed": "1"})
    assert path.read_bytes() == before


OPEN = (
    "import sys; from fastpriv.base.store import ResultStore; "
    "s = ResultStore.open(sys.argv[1], identity={'a': 'b'}); "
)


@pytest.mark.slow
def test_a_store_has_one_writer_and_readers_beside_it(path):
    message = "store must have one writer; got .*which another run is writing. Wait for its end"
    with ResultStore.open(path, identity=IDENTITY) as store:
        with pytest.raises(DomainError, match=message):
            ResultStore.open(path, identity=IDENTITY)
        store.put_many([(9, b"nine")])
        with ResultStore.read(path) as reader:
            assert reader.get(9) == b"nine"
    ResultStore.open(path, identity=IDENTITY).close()
    other = path.parent / "other.db"
    code = OPEN + "print('open', flush=True); input()"
    environment = os.environ | {"PYTHONPATH": HOME}
    process = subprocess.Popen(
        [sys.executable, "-c", code, str(other)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment
    )
    assert process.stdout.readline() == b"open\n"
    with pytest.raises(DomainError, match=message):
        ResultStore.open(other, identity={"a": "b"})
    process.kill()
    process.communicate()
    with ResultStore.open(other, identity={"a": "b"}) as store:  # the lock ended with its process
        assert store.keys() == []


def change_row(change):
    def tamper(path):
        connection = sqlite3.connect(path)
        connection.execute(change)
        connection.commit()
        connection.close()

    return tamper


TAMPERING = {
    "one bit": change_row("update results set payload = cast(x'07060606060606' as blob) where key = 5"),
    "cut off": change_row("update results set payload = substr(payload, 1, 3) where key = 5"),
    "another key": change_row("update results set key = 6 where key = 5"),
    "another's payload": change_row("update results set payload = (select payload from results where key = 1), "
                                    "digest = (select digest from results where key = 1) where key = 5"),
    "text": change_row("update results set payload = 'abc' where key = 5"),
    "gone": change_row("delete from results where key = 5"),
    "no digest": change_row("update results set digest = x'' where key = 5"),
}


@pytest.mark.parametrize("how", TAMPERING)
def test_a_row_that_was_tampered_with_is_not_there_and_written_again(path, how):
    TAMPERING[how](path)
    with ResultStore.open(path, identity=IDENTITY) as store:
        assert store.get(5) is None
        assert store.get(6) is None
        assert dict(store.items()) == {key: payload for key, payload in RESULTS.items() if key != 5}
        store.put_many([(5, RESULTS[5])])
        assert store.get(5) == RESULTS[5]


def change_tables(path, old, new, statement):
    """Change the text of the tables, and then a row: what a damaged file may hold, and SQLite would not write."""
    tables = f"pragma writable_schema = 1; update sqlite_master set sql = replace(sql, '{old}', '{new}')"
    for script in (tables, statement):
        connection = sqlite3.connect(path)
        connection.executescript(script)
        connection.commit()
        connection.close()


def test_rows_without_a_payload_or_an_integer_key_are_not_there(path):
    change_tables(path, "payload blob not null", "payload blob", "update results set payload = null where key = 5")
    with ResultStore.open(path, identity=IDENTITY) as store:
        assert dict(store.items()) == {key: payload for key, payload in RESULTS.items() if key != 5}
    change_tables(path, "key integer primary key", "key", "update results set key = 0.5 where payload is null")
    with ResultStore.read(path) as store:
        assert dict(store.items()).keys() <= RESULTS.keys()


@pytest.mark.parametrize("statement", [
    "update identity set value = cast(x'ff' as text)",
    "drop table identity",
    "pragma writable_schema = 1; update sqlite_master set sql = cast(x'ff' as text)",
])
def test_damaged_texts_and_tables_are_a_sentence(path, statement):
    change_tables(path, "none", "none", statement)
    with pytest.raises(DomainError, match="store must be a whole file that fastpriv made; got .*Name another file"):
        ResultStore.read(path)


def test_a_row_of_a_store_of_another_identity_is_not_taken(path, tmp_path):
    shutil.copy(path, tmp_path / "copy")
    change_row("update identity set value = '2' where name = 'version'")(tmp_path / "copy")
    with ResultStore.open(tmp_path / "copy", identity=IDENTITY | {"version": "2"}) as store:
        assert list(store.items()) == []


@pytest.mark.parametrize("seed", range(12))
def test_a_damaged_file_is_refused_or_its_whole_rows_are_found(path, seed):
    draws, content = random.Random(seed), bytearray(path.read_bytes())
    for _ in range(40):
        content[draws.randrange(len(content))] ^= 1 << draws.randrange(8)
    path.write_bytes(content if seed % 3 else content[: draws.randrange(len(content))])
    try:
        with ResultStore.open(path, identity=IDENTITY) as store:
            found = dict(store.items())
    except (DomainError, OSError) as error:
        assert "store must be" in str(error)  # noqa: PT017
    else:
        assert found.items() <= RESULTS.items()


def test_what_is_no_store_is_refused(path, tmp_path):
    (tmp_path / "text").write_text("no database\n" * 100)
    with pytest.raises(DomainError, match="store must be a whole file that fastpriv made; got .*is not a database"):
        ResultStore.open(tmp_path / "text", identity=IDENTITY)
    assert (tmp_path / "text").read_text() == "no database\n" * 100
    connection = sqlite3.connect(tmp_path / "other")
    connection.execute("create table things (a)")
    connection.commit()
    connection.close()
    for opened in (lambda p: ResultStore.open(p, identity=IDENTITY, resume=False), ResultStore.read):
        with pytest.raises(DomainError, match="store must be a file that fastpriv made; got another database"):
            opened(tmp_path / "other")
    with pytest.raises(FileNotFoundError, match="store must be a file that fastpriv made; got none at"):
        ResultStore.read(tmp_path / "nothing")
    change_row("pragma user_version = 9")(path)
    with pytest.raises(DomainError, match="store must be of format 2; got format 9.*Read it with the version"):
        ResultStore.open(path, identity=IDENTITY)


def test_links_and_files_of_others_are_refused(path, tmp_path, monkeypatch):
    message = "store must be a plain file of the user's own; got a link or a directory: .*Remove it"
    (tmp_path / "link").symlink_to(path)
    (tmp_path / "folder").mkdir()
    (tmp_path / "side").write_bytes(b"")
    (tmp_path / "side-wal").symlink_to(path)
    for name in ("link", "folder", "side"):
        with pytest.raises(DomainError, match=message):
            ResultStore.open(tmp_path / name, identity=IDENTITY)
    (tmp_path / "locked-lock").symlink_to(path)
    with pytest.raises(DomainError, match="store must have no link in place of its lock; got .*Remove it"):
        ResultStore.open(tmp_path / "locked", identity=IDENTITY)
    real = os.lstat

    def another(name):
        status = list(real(name))
        status[stat.ST_UID] += 1
        return os.stat_result(status)

    monkeypatch.setattr("fastpriv.base.store.os.lstat", another)
    with pytest.raises(DomainError, match=r"store must be a plain file of the user's own; got one of user \d+"):
        ResultStore.open(path, identity=IDENTITY)


def test_the_lock_of_a_store_is_that_of_its_user_and_of_this_process_alone(path):
    """Nobody else may open it, whatever the umask; a program that is started inherits nothing; an old lock serves."""
    before = os.umask(0)
    try:
        with ResultStore.open(path, identity=IDENTITY):
            (lock,) = path.parent.glob("*-lock")
            held = [fd for fd in map(int, os.listdir("/dev/fd")) if _is_open(fd, lock)]
            assert stat.S_IMODE(lock.stat().st_mode) == 0o600
            assert held
            assert not any(os.get_inheritable(fd) for fd in held)
    finally:
        os.umask(before)
    lock.write_bytes(b"")  # of a writer that was killed
    with ResultStore.open(path, identity=IDENTITY):
        pass


def _is_open(descriptor, path):
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except OSError:
        return False


def test_a_store_that_cannot_be_made_is_a_sentence(tmp_path):
    with pytest.raises(OSError, match="path must be a file that can be written; got .*Make its directory first"):
        ResultStore.open(tmp_path / "no" / "store", identity=IDENTITY)


def test_a_closed_store_is_no_riddle(path):
    store = ResultStore.open(path, identity=IDENTITY)
    store.close()
    store.close()
    with pytest.raises(OSError, match="store must be a file that can be written; got .*closed database"):
        store.keys()


FULL = """
import resource, sys
from fastpriv.base.store import ResultStore
resource.setrlimit(resource.RLIMIT_FSIZE, (400_000, 400_000))
with ResultStore.open(sys.argv[1], identity={"a": "b"}) as store:
    for key in range(1000):
        try:
            store.put_many([(key, bytes(10_000))])
        except OSError as error:
            print(key, error)
            break
"""


@pytest.mark.slow
def test_a_full_disk_loses_nothing_that_was_committed(tmp_path):
    path = tmp_path / "store"
    done = subprocess.run(
        [sys.executable, "-c", FULL, str(path)], capture_output=True, text=True, env=os.environ | {"PYTHONPATH": HOME}
    )
    assert "store must be on a disk with space for the results; got" in done.stdout, done
    assert "what is finished is kept" in done.stdout
    count = int(done.stdout.split()[0])
    assert count > 10
    with ResultStore.open(path, identity={"a": "b"}) as store:
        assert store.keys() == list(range(count))
        store.put_many([(count, b"more")])
        assert len(list(store.items())) == count + 1


def test_a_temporary_store_holds_what_is_put_in():
    store = ResultStore.temporary(IDENTITY)
    store.put_many(RESULTS.items())
    assert dict(store.items()) == RESULTS
    store.close()


def test_a_temporary_store_is_closed_when_nobody_has_it():
    store = ResultStore.temporary(IDENTITY)
    connection = store._connection
    del store
    gc.collect()
    with pytest.raises(sqlite3.ProgrammingError, match="closed"):
        connection.execute("select 1")
