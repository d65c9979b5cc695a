"""Files appear whole or not at all."""

import os
import signal
import subprocess
import sys

import pytest

from fastpriv.base import files


@pytest.fixture(params=["nameless", "hidden"])
def either_way(request, monkeypatch):
    if request.param == "hidden":
        monkeypatch.setattr(files, "_open_nameless", lambda directory, rights: None)


@pytest.mark.usefixtures("either_way")
class TestWrittenWhole:
    def test_a_file_appears_at_the_end(self, tmp_path):
        path = tmp_path / "a.txt"
        with files.atomic_write(path) as stream:
            stream.write(b"whole")
            assert not path.exists()
        assert path.read_bytes() == b"whole"
        assert os.listdir(tmp_path) == ["a.txt"]
        assert path.stat().st_mode & 0o777 == 0o666 & ~umask()

    def test_an_old_file_stays_when_writing_fails(self, tmp_path):
        path = tmp_path / "a.txt"
        path.write_bytes(b"old")

        def stopped():
            with files.atomic_write(path) as stream:
                stream.write(b"half")
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            stopped()
        assert path.read_bytes() == b"old"
        assert os.listdir(tmp_path) == ["a.txt"]

    def test_an_old_file_is_replaced(self, tmp_path):
        path = tmp_path / "a.txt"
        path.write_bytes(b"old")
        with files.atomic_write(path) as stream:
            stream.write(b"new")
        assert path.read_bytes() == b"new"

    def test_no_directory_is_an_error(self, tmp_path):
        with pytest.raises(FileNotFoundError), files.atomic_write(tmp_path / "none" / "a.txt"):
            pass


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_a_kill_while_writing_leaves_nothing_half_written(tmp_path, how):
    code = """
import sys, time
from fastpriv.base.files import atomic_write
with atomic_write(sys.argv[1]) as stream:
    stream.write(b"half" * 100000)
    stream.flush()
    print("writing", flush=True)
    time.sleep(60)
"""
    run = subprocess.Popen([sys.executable, "-c", code, str(tmp_path / "a.csv")], stdout=subprocess.PIPE)
    with run:
        run.stdout.readline()
        run.send_signal(how)
    assert not [name for name in os.listdir(tmp_path) if not name.startswith(".")]
    if sys.platform == "linux" and files._open_nameless(tmp_path, 0o600) is not None:
        assert os.listdir(tmp_path) == []


def test_a_writable_directory_is_made_and_left_empty(tmp_path):
    made = files.writable_directory(tmp_path / "a" / "b")
    assert os.listdir(made) == []
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError):
        files.writable_directory(tmp_path / "file")


def umask():
    mask = os.umask(0)
    os.umask(mask)
    return mask
