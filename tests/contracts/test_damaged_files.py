"""Damaged .npy files and archives: every reader ends with one sentence that names the file and the remedy."""

import io
import struct
import warnings
import zipfile

import numpy as np
import pytest

import fastpriv as fp
from fastpriv import Channel, DomainError, cli, posterior
from fastpriv.base.errors import ShapeError
from fastpriv.channels import read_channel, write_channel
from fastpriv.distributions import read_mixture, write_mixture

HEADS = {  # what the head says: what is said about it
    "{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000000000000,), }": "must hold all entries that its hea",
    "{'descr': '<f8', 'fortran_order': False, 'shape': (-2,), }": "the shape must have no negative lengths; got",
    "{'descr': '<f8', 'fortran_order': False, 'shape': (2, ": "the head must be one that NumPy writes; got",
    "{'descr': '|O', 'fortran_order': False, 'shape': (2,), }": "the entries must be numbers; got objects that are pic",
    "{'descr': '<f8', 'shape': (2,), }": "the head must be one that NumPy writes; got",
    "{'descr': 'x9', 'fortran_order': False, 'shape': (2,), }": "the head must be one that NumPy writes; got",
    "{'descr': '<f8', 'fortran_order': False, 'shape': (2L,), }": None,  # as Python 2 wrote it
    "{'descr': '<U0', 'fortran_order': False, 'shape': (2,), }": "the entries must be numbers; got entries of no bytes",
    "import os": "the head must be one that NumPy writes; got",
    "((((" * 2000: "the head must be one that NumPy writes; got",
    "{'descr': '<f8', 'fortran_order': False, 'shape': (2.5,), }": "the head must be one that NumPy writes; got",
    "\x00\xff{": "the head must be one that NumPy writes; got",
}


TWO = np.log([0.25, 0.75]).tobytes()


def npy(head, data=TWO, version=(1, 0)):
    text = head.encode("latin1")
    text += b" " * (-(len(text) + 11) % 64) + b"\n"
    length = struct.pack("<H" if version == (1, 0) else "<I", len(text))
    return b"\x93NUMPY" + bytes(version) + length + text + data


def packed(**members):
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for name, content in members.items():
            archive.writestr(name + ".npy", content)
    return stream.getvalue()


def saved(array):
    stream = io.BytesIO()
    np.save(stream, array)
    return stream.getvalue()


@pytest.mark.parametrize("head", HEADS)
def test_heads(head, tmp_path):
    said = HEADS[head]
    path = tmp_path / "a.npy"
    path.write_bytes(npy(head))
    mixture = tmp_path / "m.npz"
    mixture.write_bytes(packed(weights=npy(head, np.array([0.5, 0.5]).tobytes()), means=saved([0.0, 1.0]),
                               sigmas=saved([1.0, 1.0])))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        if said is None:
            assert posterior(path).map_index == 1
            assert read_mixture(mixture).weights.tolist() == [0.5, 0.5]
            return
        for read in (posterior, lambda path: fp.channels.DenseLikelihood(path).size):
            with pytest.raises(DomainError, match=rf"likelihood must be a .npy file; got .*a.npy.*{said}.*numpy.save"):
                read(path)
        with pytest.raises(DomainError, match=rf"file must hold a channel; got .*a\.npy.*{said}.*write_channel"):
            read_channel(path)
        said = f"whole NumPy archive.*m.npz.*got weights that cannot be read: .*{said}.*write_mixture"
        with pytest.raises(DomainError, match=said):
            read_mixture(mixture)


@pytest.mark.parametrize("head", [head for head in HEADS if HEADS[head] is not None])
def test_heads_on_standard_input(head, monkeypatch, capsys):
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(npy(head))))
    assert cli.main(["posterior", "-"]) == 2
    text = capsys.readouterr().err
    assert "standard input must be a whole .npy file; got one in which" in text
    assert HEADS[head] in text
    assert "numpy.save" in text


def test_versions(tmp_path):
    path = tmp_path / "a.npy"
    whole = "{'descr': '<f8', 'fortran_order': False, 'shape': (2,), }"
    for version in ((2, 0), (3, 0)):
        path.write_bytes(npy(whole, version=version))
        assert posterior(path).map_index == 1
    path.write_bytes(npy(whole, version=(9, 9)))
    with pytest.raises(DomainError, match=r"the version must be 1\.0, 2\.0 or 3\.0; got 9\.9"):
        posterior(path)
    path.write_bytes(b"no numbers")
    with pytest.raises(DomainError, match="the head must be one that NumPy writes; got ValueError: the magic string"):
        read_channel(path)
    path.write_bytes(b"")
    with pytest.raises(DomainError, match="the head must be one that NumPy writes; got ValueError: EOF"):
        posterior(path)
    np.save(path, np.zeros((2, 2), dtype="f4,i4"))
    with pytest.raises(DomainError, match="file must hold a channel; got .*matrix must be numbers"):
        read_channel(path)


def test_archives(tmp_path):
    path = tmp_path / "q.npz"
    whole = saved(np.full((2, 2), 0.5))
    path.write_bytes(packed(matrix=whole))
    assert read_channel(path) == Channel([[0.5, 0.5], [0.5, 0.5]])
    for content, said in [
        (packed(matrix=whole[:-1]), "got matrix that cannot be read: the file must hold all entries"),
        (packed(matrix=whole)[:-30], "the archive must be whole; got the list of keys that cannot be read: BadZipFile"),
        (packed(matrix=whole).replace(b"\x00\x00\xe0\x3f", b"\x00\x00\xe0\x3e"),
         "matrix that cannot be read: .*BadZipFile: Bad CRC-32"),
        (packed(matrix=whole, other=whole), "the keys must be matrix or log_matrix"),
        (b"PK", "the list of keys that cannot be read: BadZipFile"),
    ]:
        path.write_bytes(content)
        with pytest.raises(DomainError, match=f"file must hold a channel; got .*q.npz.*{said}.*write_channel"):
            read_channel(path)
    forged = bytearray(packed(matrix=whole))
    at = forged.index(b"PK\x01\x02")
    for field in (at + 20, at + 24):  # both sizes in the list of keys: 3 GB
        forged[field : field + 4] = struct.pack("<I", 3 * 10**9)
    path.write_bytes(bytes(forged))
    with pytest.raises(DomainError, match="its size must be a possible one; got 3000000000 bytes packed in 3000000000"):
        read_channel(path)
    short = whole.replace(b"(2, 2), ", b"(3, 2), ")
    forged = bytearray(packed(matrix=short))
    at = forged.index(b"PK\x01\x02")
    forged[at + 24 : at + 28] = struct.pack("<I", len(short) + 16)
    path.write_bytes(bytes(forged))
    with pytest.raises(DomainError, match="the numbers must follow the head; got 32 bytes"):
        read_channel(path)


@pytest.mark.parametrize("seed", range(3))
def test_bytes_at_random_end_in_a_sentence_or_in_numbers(seed, tmp_path):
    """Each reader under 40 files with a few bytes of their heads and lists changed."""
    rng = np.random.default_rng(seed)
    rows, mixture = Channel([[0.5, 0.5], [0.25, 0.75]]), fp.GaussianMixture([0.5, 0.5], [0.0, 1.0], 1.0)
    np.save(tmp_path / "l.npy", np.log([0.5, 0.25]))
    for name in ("q.npy", "q.npz"):
        write_channel(tmp_path / name, rows)
    write_mixture(tmp_path / "m.npz", mixture)
    for name, read in (("l.npy", posterior), ("q.npy", read_channel), ("q.npz", read_channel), ("m.npz", read_mixture)):
        whole = np.frombuffer((tmp_path / name).read_bytes(), dtype=np.uint8)
        damaged = tmp_path / f"damaged-{name}"
        for _ in range(40):
            content = whole.copy()
            places = rng.integers(0, content.size if name.endswith("z") else 128, rng.integers(1, 4))
            content[places] = rng.integers(0, 256, places.size)
            damaged.write_bytes(content[: None if rng.random() < 0.8 else rng.integers(0, content.size)].tobytes())
            try:
                read(damaged)
            except (DomainError, ShapeError) as fault:
                text = str(fault)
                assert damaged.name in text or text.startswith("likelihood must be"), text  # numbers that are none
