"""Every reader under files of every format that are damaged in systematic ways: results, or one sentence."""

import gzip
import io
import json
import signal
import time
import traceback
import warnings

import numpy as np
import pytest

import fastpriv as fp
from fastpriv import DomainError, sweep
from fastpriv.adapters.step_tables import read_steps
from fastpriv.base import files, validate
from fastpriv.base.errors import ShapeError
from fastpriv.base.store import ResultStore
from fastpriv.studies import auditing, membership
from fastpriv.studies.leakage.record_files import read_records
from fastpriv.sweeps.cells import BatchResults

MIXTURE = {"weights": [0.5, 0.25, 0.25], "means": [0.0, 1.0, 2.5], "sigmas": [1.0, 2.0, 0.5]}
MATRIX = [[0.5, 0.25, 0.25], [0.125, 0.125, 0.75]]
SPEC = b"""quantity = "gaussian_delta"
replicates = 2
[grid]
sigma = [1.0, 2.0]
epsilon = [0.5, 1]
"""
STEPS = b"""[[step]]
kind = "gaussian"
sigma = 2.0
count = 100

[[step]]
kind = "laplace"
scale = 10
"""
COLUMN = b"age,income\n36,100.5\n41,200.25\n28,50\n"
SCORES = b"score,member\n0.5,in\n0.25,out\n0.75,1\n"
PANEL = b"person,rs1,rs2,rs3\nAnn,0,1,1\nBob,1,0,0\nEve,1,1,0\n"
RECORDS = b"a,b,label\n0.5,1,cat\n0.25,2,dog\n0.75,3,cat\n"
SETTINGS = b"sigma,epsilon\n1.0,0.5\n2.0,1\n"
HEAD = "##fileformat=VCFv4.2\n##contig=<ID=1>\n##FORMAT=<ID=GT,Number=1,Type=String,Description=\"GT\">\n"
VCF = (HEAD + "\t".join(["#CHROM", "POS", "ID", "REF", "ALT", "QUAL", "FILTER", "INFO", "FORMAT", "Ann", "Bob"]) + "\n"
       + "".join(f"1\t{100 + i}\trs{i}\tA\tC\t.\t.\t.\tGT\t0|1\t1|1\n" for i in range(3))).encode()


def saved(array):
    stream = io.BytesIO()
    np.save(stream, array)
    return stream.getvalue()


def archive(**arrays):
    stream = io.BytesIO()
    np.savez(stream, **arrays)
    return stream.getvalue()


def parquet(**columns):
    arrow = pytest.importorskip("pyarrow")
    import pyarrow.parquet

    stream = io.BytesIO()
    pyarrow.parquet.write_table(arrow.table(columns), stream)
    return stream.getvalue()


def column(path):
    return fp.read_column(path, column="age")


def genotypes(path):
    return membership.read_panel(path, counted_allele="alt", coding="carrier", missing="as_zero")


def many_rows(content):
    head, _, rows = content.partition(b"\n")
    return head + b"\n" + rows * 40


def table_of_settings(path):
    return sweep("gaussian_delta", table=path)


TEXTS = {  # name of a file: its content, and who reads it
    "mixture.json": (json.dumps(MIXTURE).encode(), fp.distributions.read_mixture),
    "channel.json": (json.dumps({"channel": "Channel", "matrix": MATRIX}).encode(), fp.channels.read_channel),
    "response.json": (b'{"channel": "RandomizedResponse", "k": 10, "epsilon": 1.0}', fp.channels.read_channel),
    "channel.csv": (b"w0,w1\n0.5,0.5\n0.25,0.75\n", fp.channels.read_channel),
    "column.csv": (COLUMN, column),
    "scores.csv": (SCORES, auditing.read_scores),
    "panel.csv": (PANEL, membership.read_panel),
    "records.csv": (RECORDS, read_records),
    "steps.csv": (b"kind,sigma,scale,count\ngaussian,2.0,,100\nlaplace,,10,1\n", read_steps),
    "steps.toml": (STEPS, read_steps),
    "spec.toml": (SPEC, sweep),
    "settings.csv": (SETTINGS, table_of_settings),
    "calls.vcf": (VCF, genotypes),
}
PACKED = {
    "column.csv.gz": (gzip.compress(many_rows(COLUMN)), column),
    "scores.csv.gz": (gzip.compress(many_rows(SCORES)), auditing.read_scores),
    "panel.csv.gz": (gzip.compress(PANEL), membership.read_panel),
    "calls.vcf.gz": (gzip.compress(VCF), genotypes),
    "mixture.npz": (archive(**MIXTURE), fp.distributions.read_mixture),
    "channel.npz": (archive(matrix=np.array(MATRIX)), fp.channels.read_channel),
    "scores.npz": (archive(scores=[0.5, 0.25], membership=[True, False]), auditing.read_scores),
    "panel.npz": (archive(values=np.eye(3, dtype=np.uint8)), membership.read_panel),
    "records.npz": (archive(records=np.eye(3), labels=[0, 1, 1]), read_records),
    "channel.npy": (saved(np.array(MATRIX)), fp.channels.read_channel),
    "panel.npy": (saved(np.eye(3, dtype=np.uint8)), membership.read_panel),
    "likelihood.npy": (saved(np.log([0.25, 0.75])), fp.posterior),
    "column.parquet": (lambda: parquet(age=[1.0, 2.0, 3.5], name=["a", "b", "c"]), column),
    "channel.parquet": (lambda: parquet(w0=[0.5, 0.25], w1=[0.5, 0.75]), fp.channels.read_channel),
    "settings.parquet": (lambda: parquet(sigma=[1.0, 2.0], epsilon=[0.5, 1.0]), table_of_settings),
}


def cut_and_flipped(content, count, seed=0):
    """Copies that are cut, or have a few other bytes, or both; the empty one among them."""
    rng = np.random.default_rng(seed)
    yield b""
    for share in (0.1, 0.5, 0.9):
        yield content[: int(share * len(content))]
    yield content[:-1]
    for _ in range(count):
        damaged = np.frombuffer(content, dtype=np.uint8).copy()
        places = rng.integers(0, damaged.size, rng.integers(1, 4))
        damaged[places] = rng.integers(0, 256, places.size)
        yield damaged.tobytes()


def damaged_texts(content):
    """Copies of a text with what its grammar has no place for, or too much of what it has."""
    yield content.decode().replace("a", "\xe4").replace("e", "\xe9").encode("latin-1")
    yield b"\xff\xfe" + content.decode().encode("utf-16-le")
    yield content.replace(b"0", b"\0")
    yield content.replace(b"1", b"9" * 400)
    yield content.replace(b"1", b"9" * 5000)
    yield content.replace(b"0.5", b"1e999")
    yield content.replace(b"0.5", b"nan")
    yield content.replace(b",", b"\n")
    yield content.replace(b"\n", b" ")
    yield content.replace(b"\n", b"\n\n\"")
    yield content + content
    for left, right in ((b"[", b"]"), (b"{", b"}"), (b'{"a":', b"}"), (b"(", b")")):
        for depth in (70, 900, 100_000):
            yield left * depth + right * depth
            for number in (b"0.5", b"2.0", b"10"):
                if number in content and content[:1] in b"{[q":
                    yield content.replace(number, left * depth + right * depth, 1)
    yield b"a = " + b"[" * 50_000
    yield b"[" + b"a." * 5_000 + b"a]\nb = 1"
    yield b"a," * 50_000
    yield b'"' * 9_999
    yield b"\n" * 9_999
    yield b"9" * 200_000


def error_of(read, path):
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            read(path)
    except (DomainError, ShapeError, FileNotFoundError) as error:  # a specification may name another file
        return error


def judge(read, path, content):
    """Read a damaged file: whatever it answers, an error is one short sentence of the package."""
    path.write_bytes(content)
    error = error_of(read, path)
    if error is not None:
        text = str(error)
        assert " must " in text, text
        assert len(text) < 2000, (len(text), text[:500])
        assert "\n" not in text, text


@pytest.mark.few(3)
@pytest.mark.parametrize("name", TEXTS)
def test_texts(name, tmp_path):
    content, read = TEXTS[name]
    read_whole(read, tmp_path / name, content)
    for damaged in (*damaged_texts(content), *cut_and_flipped(content, 25)):
        judge(read, tmp_path / name, damaged)


@pytest.mark.few(4)
@pytest.mark.parametrize("name", PACKED)
def test_packed_files(name, tmp_path):
    content, read = PACKED[name]
    content = content() if callable(content) else content
    read_whole(read, tmp_path / name, content)
    for damaged in cut_and_flipped(content, 40):
        judge(read, tmp_path / name, damaged)
    if name.endswith("gz"):  # damage of what is packed
        for damaged in damaged_texts(gzip.decompress(content)):
            judge(read, tmp_path / name, gzip.compress(damaged, 1))


def read_whole(read, path, content):
    path.write_bytes(content)
    assert read(path) is not None


def test_rows_of_a_store_whose_digest_was_forged(tmp_path):
    """The digests agree, so that only the content can tell."""
    words = {"quantity": "gaussian_delta", "grid": {"sigma": [1.0, 2.0], "epsilon": [0.5, 1.0]}}
    sweep(**words, store=tmp_path / "whole")
    refused = 0
    with ResultStore.read(tmp_path / "whole") as store:
        ((key, payload),) = store.items()
        identity = store.identity
    for k, damaged in enumerate(cut_and_flipped(payload, 60)):
        path = tmp_path / str(k)
        with ResultStore.open(path, identity=identity) as store:
            store.put_many([(key, damaged)])
        error = error_of(lambda path: sweep(**words, store=path), path)
        assert error is None or "store must hold results that fastpriv wrote; got" in str(error), error
        refused += error is not None
    assert refused > 20
    with pytest.raises(DomainError, match="one cannot be read: error: unpack_from requires a buffer .*remove this one"):
        sweep(**words, store=tmp_path / "0")


def test_what_a_row_of_a_sweep_must_hold():
    def again(**change):
        results = BatchResults(np.zeros((2, 2), dtype=np.uint64))
        results.put(slice(None), [("x", 1.0, 1.0, 1.0, "", "")])
        results.fail(1, "wrong")
        vars(results).update(change)
        return BatchResults.unpack(results.outcome(2).payload)

    assert [*again().texts] == ["wrong"]
    for change in ({"texts": {3: 0}}, {"words": {(None, ""): 0}}):
        with pytest.raises(ValueError, match="names, texts and units must be texts"):
            again(**change)
    for change in ({"errors": np.array([-2, 0])}, {"errors": np.array([0, 1])}, {"labels": {"x": np.ones(2)}}):
        with pytest.raises(ValueError, match="codes must be those of texts and units in the head"):
            again(**change)
    with pytest.raises(ValueError, match="arrays must have an entry for each cell"):
        again(numbers={"x": np.ones((2, 2))})


def test_a_cell_of_a_table_of_steps_has_a_length(tmp_path):
    (tmp_path / "steps.csv").write_text("kind,sigma\ngaussian," + "9" * 200_000)
    with pytest.raises(DomainError, match="line 2 of .*steps.csv' must be a line of CSV; got one that is none: field"):
        read_steps(tmp_path / "steps.csv")


def test_forged_rows_of_the_store_of_a_posterior(tmp_path):
    def run(path):
        return fp.posterior(fp.channels.ShardedLikelihood(np.arange(5.0), shards=2), store=path)

    run(tmp_path / "whole")
    with ResultStore.read(tmp_path / "whole") as store:
        rows, identity = list(store.items()), store.identity
    assert rows
    with ResultStore.open(tmp_path / "forged", identity=identity) as store:
        store.put_many([(key, payload[:3]) for key, payload in rows])
    with pytest.raises(DomainError, match="must hold results that fastpriv wrote; got .*one cannot be read"):
        run(tmp_path / "forged")


@pytest.mark.parametrize("name", [name for name in TEXTS if name.endswith("csv") and not name.startswith("channel")])
def test_a_packed_line_without_an_end_is_not_unpacked(name, tmp_path, monkeypatch):
    content, read = TEXTS[name]
    if name in ("steps.csv", "settings.csv"):  # never unpacked
        return
    path = tmp_path / f"{name}.gz"
    path.write_bytes(gzip.compress(b"1," * 2**24, 9))
    assert path.stat().st_size < 2**17
    unpacked = []

    class Counted(gzip.GzipFile):
        def read1(self, size=-1):
            unpacked.append(super().read1(size))
            return unpacked[-1]

        def read(self, size=-1):
            unpacked.append(super().read(size))
            return unpacked[-1]

    monkeypatch.setattr(gzip, "GzipFile", Counted)
    with pytest.raises(DomainError, match="must have lines of at most 2,097,152 characters; got more in line 1 of"):
        read(path)
    assert sum(map(len, unpacked)) < 2**23
    path.write_bytes(gzip.compress(content))
    assert read(path) is not None


def test_lines_that_do_not_fit_into_memory_end_in_a_sentence(tmp_path, monkeypatch):
    path = tmp_path / "column.csv.gz"
    path.write_bytes(gzip.compress(b"age\n" + b"1\n" * 10_000))
    assert column(path).size == 10_000
    monkeypatch.setattr(files, "_CHECKED_CHARACTERS", 2**10)
    monkeypatch.setattr(validate, "_UNCHECKED_BYTES", 0)
    monkeypatch.setattr(validate, "_free_memory", lambda: 2**14)
    with pytest.raises(MemoryError, match="file must fit in memory; got a need of .*Keep fewer rows or columns of it"):
        column(path)


@pytest.mark.parametrize("text", ["[%s]", '{"weights": [%s]}', '{"channel": "Channel", "matrix": [[%s]]}'])
@pytest.mark.parametrize("number", ["0.5", "1"])
def test_json_of_many_numbers_hears_an_interrupt(text, number):
    """The signal arrives while the parser, which is compiled, reads the numbers."""
    content = text % ", ".join([number] * 300_000)
    before = signal.signal(signal.SIGVTALRM, signal.default_int_handler)
    try:
        start = time.process_time()
        assert files.parse_json(content) == json.loads(content)
        whole = time.process_time() - start
        signal.setitimer(signal.ITIMER_VIRTUAL, whole / 20)  # of this process alone, so that load does not matter
        with pytest.raises(KeyboardInterrupt) as error:
            files.parse_json(content)
        names = [frame.name for frame in traceback.extract_tb(error.value.__traceback__)]
        assert names[-1] == "<lambda>"  # of parse_float or parse_int
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0.0)
        signal.signal(signal.SIGVTALRM, before)


LONG_NAMES = {  # a pattern of the files of a posterior: what is said about it
    "{first:01000000000d}.npy": "out must be a name with the field {first}",
    "{first:.1000000000f}.npy": "out must be a name with the field {first}",
    "{first:{first}}.npy": "out must be a name with the field {first}",
    "9" * 5000 + "{first}.npy": "out must be a name of at most 4096 characters; got 5011. Take a shorter one.",
}


@pytest.mark.parametrize("out", LONG_NAMES, ids=range(4))
def test_names_of_many_characters_are_not_made(out):
    start = time.process_time()
    with pytest.raises(DomainError) as error:
        fp.posterior(fp.channels.ShardedLikelihood(np.arange(5.0), shards=2), out=out)
    assert str(error.value).startswith(LONG_NAMES[out])
    assert len(str(error.value)) < 300
    assert time.process_time() - start < 1.0
    with pytest.raises(DomainError, match="out must be a name of at most 4096 characters; got 10000"):
        fp.posterior(np.arange(5.0), out="9" * 9996 + ".npy")
    with pytest.raises(DomainError, match="must be a name of at most 4096 characters; got 10000"):
        fp.distributions.read_mixture("9" * 10_000)
