"""Channels to files and back, and what is said of files that hold none."""

import json
import mmap
import sys

import numpy as np
import pytest
from scipy.sparse import csr_array

from contracts.test_channels import ALL
from fastpriv import Channel, DomainError, RandomizedResponse
from fastpriv.channels import SparseChannel, read_channel, write_channel
from fastpriv.errors import BackendMissingError
from fastpriv.mechanisms import UnaryEncoding

DENSE = [one for one in ALL if isinstance(one, Channel)]


@pytest.mark.parametrize("channel", ALL, ids=lambda c: repr(c)[:40])
def test_round_trips(channel, tmp_path):
    endings = [".npz"] if isinstance(channel, SparseChannel) else [".json"]
    if isinstance(channel, Channel):
        endings += [".npz", ".parquet"] + ([".npy"] if not channel.log else [])
        endings += [".csv"] if channel.cells.dtype == np.float64 else []
    for ending in endings:
        path = tmp_path / f"q{ending}"
        write_channel(path, channel)
        write_channel(path, channel)
        assert read_channel(path) == channel, ending
    assert sorted(p.suffix for p in tmp_path.iterdir()) == sorted(endings)


def test_what_a_person_writes(tmp_path):
    path = tmp_path / "q.json"
    for text, want in (
        ({"channel": "RandomizedResponse", "k": 5, "epsilon": 1}, RandomizedResponse(5, 1.0)),
        ({"channel": "UnaryEncoding", "k": 5, "p": 0.5, "q": 0.25}, UnaryEncoding(5, p=0.5, q=0.25)),
        ({"channel": "UnaryEncoding", "k": 5, "epsilon": 2.0}, UnaryEncoding(5, 2.0)),
        ({"channel": "Channel", "matrix": [[1.0, 0.0], [0.5, 0.5]]}, Channel([[1.0, 0.0], [0.5, 0.5]])),
        ({"channel": "ProductChannel", "factors": [{"channel": "RandomizedResponse", "k": 2, "epsilon": 1}],
          "powers": [200]}, RandomizedResponse(2, 1).power(200)),
    ):
        path.write_text(json.dumps(text))
        assert read_channel(path) == want
    table = tmp_path / "q.csv"
    table.write_text("0,1\n0.5,0.5\n")
    assert read_channel(table) == Channel([[0.0, 1.0], [0.5, 0.5]])
    table.write_text("yes,no\n0.25,0.75\n\n")
    assert read_channel(table) == Channel([[0.25, 0.75]])


def test_a_matrix_file_is_mapped(tmp_path):
    write_channel(tmp_path / "q.npy", DENSE[1])
    found = read_channel(tmp_path / "q.npy")
    base = found.cells
    while isinstance(base.base, np.ndarray):
        base = base.base
    assert isinstance(base.base, mmap.mmap)
    assert found.cells.dtype == np.float32


def test_refusals_name_the_file(tmp_path):
    def refused(name, content, match):
        path = tmp_path / name
        path.write_bytes(content)
        with pytest.raises(DomainError, match=match) as fault:
            read_channel(path)
        assert name in str(fault.value)

    refused("a.csv", b"0.5,0.5\n0.5,x\n", "line 2 must be numbers, as many as in the rows before; got 'x'")
    refused("b.csv", b"0.5,0.5\n1.0\n", "1 cells where the rows before have 2")
    refused("c.csv", b"a,b\n", "at least one row of numbers separated by commas; got none after the names 'a,b'")
    refused("c1.csv", b"0.5;0.5\n", "got none after the names '0.5;0.5'")
    refused("c2.csv", b"", "at least one row of numbers separated by commas; got none")
    refused("d.csv", b"0.5,0.5\n0.5,0.6\n", "each row of matrix must sum to 1 within 1e-09; got a sum of 1.1 at row 1")
    refused("e.npy", b"nothing", "file must hold a channel")
    refused("f.npz", b"PK nothing", "file must hold a channel")
    refused("g.json", b"{", "file must hold a channel")
    refused("h.json", b"[1]", "the object must have the key channel, one of RandomizedResponse")
    refused("i.json", b'{"channel": "RandomizedResponse", "n": 3}', "the keys of RandomizedResponse must be k, epsilon")
    refused("j.json", b'{"channel": "RandomizedResponse", "k": 3, "epsilon": -1}', "epsilon must be at least 0")
    refused("k.json", b'{"channel": "RandomizedResponse", "k": 3}', "of RandomizedResponse must be k, epsilon; got")
    refused("k1.json", b'{"channel": ["a"]}', "the object must have the key channel")
    refused("k2.json", b'{"channel": "Channel", "matrix": [[1.0]], "dtype": "object"}', "dtype must be one of float64")
    refused("k3.json", b'{"channel": "ProductChannel", "factors": 3}', "factors must be a list of channels; got 3")
    refused("k4.json", b'{"channel": "UnaryEncoding", "epsilon": 3}', "the keys of UnaryEncoding must be k, logit_p")
    refused("k5.json", b'{"channel": "UnaryEncoding", "k": 3, "logit_p": 1.0, "logit_q": -1.0, "epsilon": 7.0}',
            r"epsilon must be logit_p - logit_q, 2.0; got 7.0. Give k and epsilon")
    refused("k6.json", b'{"channel": "UnaryEncoding", "k": "x", "logit_p": 1, "logit_q": -1, "epsilon": 2}',
            "k must be an integer")
    refused("l.parquet", b"PAR1 nothing", "file must be a whole Parquet file")
    np.savez(tmp_path / "m.npz", other=np.eye(2))
    with pytest.raises(DomainError, match=r"the keys must be matrix or log_matrix, .*m|m.npz"):
        read_channel(tmp_path / "m.npz")
    np.save(tmp_path / "n.npy", np.array([{}], dtype=object))
    with pytest.raises(DomainError, match="pickled|object"):
        read_channel(tmp_path / "n.npy")
    whole = tmp_path / "o.npy"
    np.save(whole, np.full((100, 2), 0.5))
    whole.write_bytes(whole.read_bytes()[:-50])
    with pytest.raises(DomainError, match="file must hold a channel"):
        read_channel(whole)
    np.savez(tmp_path / "p.npz", matrix=np.full((100, 2), 0.5))
    (tmp_path / "p.npz").write_bytes((tmp_path / "p.npz").read_bytes()[:-50])
    with pytest.raises(DomainError, match="the archive must be whole"):
        read_channel(tmp_path / "p.npz")


@pytest.mark.parametrize(
    ("bent", "text"),
    [
        ({"indices": [0, 1, 10**6]}, "indices must be integers from 0 to 1; got 1000000 at index 2"),
        ({"indices": [0, -1, 1]}, "indices must be integers from 0 to 1; got -1 at index 1"),
        ({"indices": [0, 0.5, 1]}, "indices must be integers from 0 to 1; got 0.5 at index 1"),
        ({"indptr": [0, 2.5, 3]}, "indptr must be integers from 0 to 3; got 2.5 at index 1"),
        ({"shape": [2, 2.5]}, "shape must be integers from 1 to .*; got 2.5"),
        ({"shape": [2, 2, 2]}, "shape must be two integers; got"),
        ({"shape": [3, 2]}, "data, indices and indptr must be those of a sparse matrix in rows; got shapes"),
        ({"indptr": [0, 3, 2]}, "exceptions must be a whole sparse matrix; got one in which|index pointer"),
        ({"indptr": [0, 2, 300]}, "file must hold a channel"),
        ({"data": [0.5, 0.5, 1j]}, "exceptions must be real numbers; got complex128 cells"),
        ({"shape": [-2, 2]}, "file must hold a channel"),
    ],
)
def test_sparse_files_that_lead_out_of_their_arrays_are_refused(tmp_path, bent, text):
    whole = {"data": [0.5, 0.5, 1.0], "indices": [0, 1, 1], "indptr": [0, 2, 3], "shape": [2, 2],
             "background": [[0.0]]}
    path = tmp_path / "q.npz"
    np.savez(path, **whole)
    assert read_channel(path).shape == (2, 2)
    np.savez(path, **(whole | bent))
    with pytest.raises(DomainError, match=text):
        read_channel(path)


@pytest.mark.parametrize(("first", "cell"), [
    ("O.5,0.5", "O.5"), ("0.5,0.5.", "0.5."), ("0.5;0.5,0.5", "0.5;0.5"), ("0,5;0,5", "5;0"), (",0.5", ""),
    ("yes,1", "yes"), ("\n0.5,o.5", "o.5"),
])
def test_a_first_row_of_names_holds_no_number(tmp_path, first, cell):
    path = tmp_path / "q.csv"
    path.write_text(f"{first}\n0.25,0.75\n1,0\n")
    message = f"must be numbers throughout, or names and none of them a number; got {cell!r} among numbers"
    with pytest.raises(DomainError, match=f"got '.*q.csv', in which line [12] {message}"):
        read_channel(path)
    path.write_text("\n\nyes,no\n0.25,0.75\n1,0\n")
    assert read_channel(path) == Channel([[0.25, 0.75], [1.0, 0.0]])
    path.write_text("yes,no\nalso,names\n0.25,0.75\n")
    with pytest.raises(DomainError, match="line 2 must be numbers, as many as in the rows before; got 'also'"):
        read_channel(path)


def test_indices_of_sparse_matrices_are_whole():
    bent = csr_array(np.eye(2))
    bent.indices = np.array([0.0, 0.5])
    with pytest.raises(DomainError, match="indices of exceptions must be integers from .*; got 0.5 at index 1"):
        SparseChannel(bent)
    hidden = csr_array(np.eye(2))
    hidden.data = np.ma.array([1.0, 1.0], mask=[False, True])
    with pytest.raises(DomainError, match="exceptions must have no missing values; got a masked entry at index 1"):
        SparseChannel(hidden)


def test_numbers_in_json_are_numbers(tmp_path):
    path = tmp_path / "q.json"
    for cells in ('[["0.5", "0.5"]]', "[[0.5, null]]", "[[1], [0.5, 0.5]]"):
        path.write_text(f'{{"channel": "Channel", "matrix": {cells}}}')
        with pytest.raises(DomainError, match="file must hold a channel; got .*q.json.*matrix must"):
            read_channel(path)


def test_paths_and_endings(tmp_path):
    with pytest.raises(DomainError, match=r"path must be a name that ends in \.npy"):
        read_channel(tmp_path / "q.txt")
    with pytest.raises(FileNotFoundError, match="file must be an existing channel file"):
        read_channel(tmp_path / "q.csv")
    (tmp_path / "d.csv").mkdir()
    with pytest.raises(IsADirectoryError, match="file must be an existing channel file"):
        read_channel(tmp_path / "d.csv")
    for ending, channel in ((".csv", RandomizedResponse(3, 1.0)), (".npy", DENSE[2]), (".npy", ALL[3])):
        with pytest.raises(DomainError, match="channel must be one that a .* file can hold"):
            write_channel(tmp_path / f"q{ending}", channel)
    with pytest.raises(DomainError, match="channel must be one that JSON can hold"):
        write_channel(tmp_path / "q.json", SparseChannel(csr_array(np.eye(2))))
    with pytest.raises(DomainError, match="channel must be a AnyChannel"):
        write_channel(tmp_path / "q.json", np.eye(2))
    assert list(tmp_path.iterdir()) == [tmp_path / "d.csv"]


def test_parquet_columns_are_numbers(tmp_path, monkeypatch):
    import pyarrow
    import pyarrow.parquet

    pyarrow.parquet.write_table(pyarrow.table({"a": ["x"], "b": [1.0]}), tmp_path / "q.parquet")
    with pytest.raises(DomainError, match="every column must be numbers without gaps; got 'a' of type string"):
        read_channel(tmp_path / "q.parquet")
    pyarrow.parquet.write_table(pyarrow.table({}), tmp_path / "r.parquet")
    with pytest.raises(DomainError, match="the table must have at least one column"):
        read_channel(tmp_path / "r.parquet")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(BackendMissingError, match="pyarrow must be installed to read Parquet"):
        read_channel(tmp_path / "q.parquet")
