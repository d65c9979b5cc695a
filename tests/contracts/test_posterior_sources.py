"""Where likelihoods and priors of a posterior come from, and what is said about bad ones."""

import os
import pickle
import sys
import tracemalloc

import numpy as np
import pytest

import fastpriv
from fastpriv import DomainError, posterior
from fastpriv.channels import DenseLikelihood
from fastpriv.channels.vector_sources import BLOCK
from fastpriv.errors import BackendMissingError, ShapeError

SIZE = 2 * BLOCK + 4321
NAMES = ("log_evidence", "entropy", "kl", "js", "max_log_ratio", "min_log_ratio", "vulnerability")


@pytest.fixture(scope="module")
def numbers():
    generator = np.random.default_rng(8)
    prior = generator.random(SIZE)
    return generator.standard_normal(SIZE), prior / prior.sum()


@pytest.fixture(scope="module")
def expected(numbers):
    return posterior(*numbers)


def pieces(array, size):
    return lambda: (array[i : i + size] for i in range(0, array.size, size))


def check_same(found, other, names=NAMES):
    for name in names:
        assert getattr(found, name).to_dict() == getattr(other, name).to_dict(), name
    assert (found.map_index, found.ties, found.size) == (other.map_index, other.ties, other.size)
    assert np.array_equal(found.top.indices, other.top.indices)
    assert np.array_equal(found.top.probabilities, other.top.probabilities)


@pytest.fixture(scope="module")
def files(numbers, tmp_path_factory):
    folder = tmp_path_factory.mktemp("numbers")
    np.save(folder / "logs.npy", numbers[0])
    np.save(folder / "p.npy", numbers[1])
    return folder


def test_the_same_bits_for_any_number_of_threads(numbers, expected):
    for n_jobs in (1, 2, 3, -1):
        check_same(posterior(*numbers, n_jobs=n_jobs), expected)


ANYWHERE = (
    "file", "path", "memmap", "part of a memmap", "copy on write", "function", "mixed", "strided", "big endian",
)


@pytest.mark.parametrize("kind", ANYWHERE)
def test_the_same_bits_from_anywhere(numbers, expected, files, kind):
    logs, p = numbers
    likelihood, prior = {
        "file": (files / "logs.npy", files / "p.npy"),
        "path": (str(files / "logs.npy"), p),
        "memmap": (np.load(files / "logs.npy", mmap_mode="r"), p),
        "part of a memmap": (np.memmap(files / "logs.npy", dtype=float, offset=120)[1:][:SIZE], p),
        "copy on write": (np.load(files / "logs.npy", mmap_mode="c"), p),
        "function": (pieces(logs, 10007), pieces(p, 300_000)),
        "mixed": (files / "logs.npy", pieces(p, BLOCK)),
        "strided": (np.repeat(logs, 2)[::2], np.asfortranarray(p)),
        "big endian": (logs.astype(">f8"), p),
    }[kind]
    check_same(posterior(likelihood, prior, n_jobs=2), expected)


def test_parquet(numbers, expected, tmp_path, monkeypatch):
    arrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "numbers.parquet"
    parquet.write_table(arrow.table({"logs": numbers[0], "p": numbers[1]}), path, row_group_size=70_000)
    check_same(posterior((path, "logs"), (path, "p"), n_jobs=2), expected)
    alone = tmp_path / "alone.parquet"
    parquet.write_table(arrow.table({"logs": [0.0, -1.0, None]}), alone)
    with pytest.raises(DomainError, match="must have no missing entries; got one at index 2, in block 0"):
        posterior(alone)
    with pytest.raises(DomainError, match="must name a column of .*; got 'x'. Pass .* with one of logs, p"):
        posterior((path, "x"))
    with pytest.raises(DomainError, match="must name a column"):
        posterior(path)
    broken = tmp_path / "broken.parquet"
    broken.write_bytes(path.read_bytes()[:100_000])
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, "pyarrow", None)
        with pytest.raises(BackendMissingError, match="pyarrow must be installed to read Parquet; got none"):
            posterior(alone)
    with pytest.raises(DomainError, match="must be a Parquet file that can be read; got .*block 0 fails"):
        posterior((broken, "logs"))
    parquet.write_table(arrow.table({"logs": ["a", "b"]}), broken)
    with pytest.raises(DomainError, match="must be made of floats"):
        posterior(broken)


def test_other_numbers(numbers):
    logs = numbers[0][:1000]
    for kind in (np.float16, np.int8, np.int64, np.uint32, bool):
        given = (logs * 3).astype(kind)
        check_same(posterior(given), posterior(given.astype(float)))
    check_same(posterior(logs.tolist()), posterior(logs))
    with pytest.raises(DomainError, match="floats of at most 64 bits or of integers; got complex128"):
        posterior(logs.astype(complex))
    with pytest.raises(DomainError, match="floats of at most 64 bits"):
        posterior(np.array(["a"]))


def test_an_iterator_is_read_once(numbers, expected):
    logs, p = numbers
    found = posterior(pieces(logs, 1000)(), p, n_jobs=2)
    assert (found.js, found.kl, found.abp) == (None, None, None)
    assert (found.map_index, found.size) == (expected.map_index, SIZE)
    assert found.entropy.value == expected.entropy.value
    assert abs(found.log_evidence.value - expected.log_evidence.value) < 1e-14
    assert found.to_dict()["js"] is None
    assert "js" not in set(found.to_frame()["quantity"])
    with pytest.raises(DomainError, match="must be asked of likelihoods that can be read again; got a posterior of"):
        found.probabilities(0, 1)
    alone = posterior(pieces(logs, 1000)())
    assert alone.kl.lower <= posterior(logs).kl.value <= alone.kl.upper
    assert alone.kl.width < 1e-11
    with pytest.raises(DomainError, match="out must be None for what can be read only once"):
        posterior(pieces(logs, 1000)(), out=np.empty(SIZE))


def test_a_function_may_fill_one_array_again_and_again(numbers):
    logs = numbers[0]

    def chunks():
        room = np.empty(10_000)
        for i in range(0, SIZE, 10_000):
            part = logs[i : i + 10_000]
            room[: part.size] = part
            yield room[: part.size]

    check_same(posterior(chunks, n_jobs=2), posterior(logs))


def test_all_probabilities(numbers, expected, files, tmp_path):
    logs, p = numbers
    out = np.empty(SIZE)
    check_same(posterior(logs, p, out=out, n_jobs=2), expected)
    assert abs(out.sum() - 1) < 1e-13
    assert out.argmax() == expected.map_index
    posterior(files / "logs.npy", pieces(p, 999), out=tmp_path / "after.npy", n_jobs=2)
    assert np.array_equal(np.load(tmp_path / "after.npy"), out)
    assert os.listdir(tmp_path) == ["after.npy"]
    found = posterior(pieces(logs, 12_345), p)
    for start, stop in ((0, 3), (BLOCK - 2, BLOCK + 2), (SIZE - 1, SIZE), (5, 5), (0, SIZE)):
        assert np.array_equal(found.probabilities(start, stop), out[start:stop])
        assert np.array_equal(expected.probabilities(start, stop), out[start:stop])
    with pytest.raises(DomainError, match="start and stop must be in order, from 0 to"):
        found.probabilities(3, 2)
    for bad in (np.empty(SIZE, dtype=np.float32), np.empty((SIZE, 2))[:, 0], [0.0]):
        with pytest.raises(DomainError, match="out must be a contiguous array of float64"):
            posterior(logs, p, out=bad)
    with pytest.raises(DomainError, match=r"out must be a \.npy file; got 'x.csv'"):
        posterior(logs, p, out="x.csv")
    with pytest.raises(ShapeError, match="out must be of shape"):
        posterior(logs, p, out=np.empty(3))
    room = logs.copy()
    for given in ((room, p), (logs, room)):
        with pytest.raises(DomainError, match="out must be memory of its own; got that of the likelihood or prior"):
            posterior(*given, out=room)


def test_a_posterior_is_pickled_without_its_likelihoods(expected, files):
    found = pickle.loads(pickle.dumps(posterior(files / "logs.npy", files / "p.npy")))
    check_same(found, expected)
    with pytest.raises(DomainError, match="or one that was pickled"):
        found.probabilities()
    with pytest.raises(AttributeError):
        found.ties = 3


def test_top(numbers):
    logs = np.round(numbers[0], 1)
    for top in (0, 1, 1000):
        order = np.lexsort((np.arange(SIZE), -logs))[:top]
        found = posterior(logs, top=top, n_jobs=2)
        assert np.array_equal(found.top.indices, order)
        assert found.ties == np.sum(logs == logs.max())
    assert posterior(logs[:3], top=100).top.indices.size == 3
    order = np.lexsort((np.arange(SIZE), -np.sort(logs)))[:3]
    assert np.array_equal(posterior(np.sort(logs), top=3).top.indices, order)


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_bad_numbers_are_named_with_their_block(numbers, n_jobs):
    logs, p = (x.copy() for x in numbers)
    place = BLOCK + 77
    for value in (np.nan, np.inf):
        logs[place] = value
        message = rf"likelihood must be log likelihoods, .*; got {value} at index {place}, in block 1 \(1 of"
        for given in (logs, pieces(logs, 5000)):
            with pytest.raises(DomainError, match=message):
                posterior(given, n_jobs=n_jobs)
        with pytest.raises(DomainError, match=message):
            posterior(logs, p, n_jobs=n_jobs)
        with pytest.raises(DomainError, match=f"likelihood must be likelihoods, not negative and finite; got {value}"):
            posterior(np.abs(logs), log=False, n_jobs=n_jobs)
    logs = numbers[0]
    for value in (np.nan, -0.25, np.inf):
        p[place] = value
        with pytest.raises(DomainError, match=f"prior must be probabilities .*; got {value} at index {place}"):
            posterior(logs, p, n_jobs=n_jobs)
    p[place] = np.inf
    with pytest.raises(DomainError, match="log_prior must be logarithms of probabilities; got inf at index"):
        posterior(logs, log_prior=np.where(p == np.inf, np.inf, -12.0), n_jobs=n_jobs)


def test_priors_that_do_not_sum_to_one(numbers):
    logs, p = numbers
    for factor in (1 + 2e-9, 0.5):
        with pytest.raises(DomainError, match="prior must sum to 1 within 1e-09; got a sum of"):
            posterior(logs, p * factor)
        with pytest.raises(DomainError, match="log_prior must sum to 1 within"):
            posterior(logs, log_prior=np.log(p * factor))
    with pytest.raises(DomainError, match="prior must sum to 1 within 2e-06"):
        posterior(logs, (p * (1 + 1e-5)).astype(np.float32))
    with pytest.raises(DomainError, match="prior and log_prior must not both be given"):
        posterior(logs, p, log_prior=np.log(p))


def test_shapes(numbers):
    logs, p = numbers
    for given in (p[:-1], pieces(p[:-1], 1000), pieces(p[:BLOCK], 1000)):
        with pytest.raises(ShapeError, match="prior must have one entry for each secret"):
            posterior(logs, given)
    with pytest.raises(ShapeError, match="likelihood must have at least one secret; got none"):
        posterior(np.empty(0))
    with pytest.raises(ShapeError, match="likelihood must have at least one secret; got none"):
        posterior(iter([]))
    with pytest.raises(ShapeError, match=r"likelihood must be one-dimensional; got shape \(2, 3\)"):
        posterior(np.zeros((2, 3)))
    with pytest.raises(ShapeError, match="likelihood must be one-dimensional"):
        posterior(iter([np.zeros((2, 3))]))


def test_what_cannot_happen():
    with pytest.raises(DomainError, match="likelihood must be positive for some secret of positive prior; got zero"):
        posterior([-np.inf] * 5)
    with pytest.raises(DomainError, match="got zero for all 2"):
        posterior([-np.inf, 0.0], [1.0, 0.0])
    with pytest.raises(DomainError, match="got zero for all 2"):
        posterior([0.0, 0.0], [1.0, 0.0], log=False)


def test_files_that_are_none(tmp_path):
    with pytest.raises(FileNotFoundError, match="likelihood must be an existing file"):
        posterior(tmp_path / "none.npy")
    with pytest.raises(IsADirectoryError, match="likelihood must be an existing file"):
        posterior(tmp_path)
    (tmp_path / "x.txt").write_text("1")
    with pytest.raises(DomainError, match=r"must be a \.npy or \.parquet file; got"):
        posterior(tmp_path / "x.txt")
    (tmp_path / "x.npy").write_text("1")
    with pytest.raises(DomainError, match=r"likelihood must be a \.npy file; got .*in which"):
        posterior(tmp_path / "x.npy")
    np.save(tmp_path / "x.npy", np.zeros((2, 2)))
    with pytest.raises(ShapeError, match=r"must be one-dimensional; got shape \(2, 2\) in"):
        posterior(tmp_path / "x.npy")


def test_a_file_that_ends_early(numbers, files, tmp_path):
    path = tmp_path / "short.npy"
    path.write_bytes((files / "logs.npy").read_bytes()[: 128 + 8 * (BLOCK + 10)])
    message = rf"the file must hold all entries that its head tells of; got .* bytes where shape \({SIZE},\) of float64"
    with pytest.raises(DomainError, match=message):
        posterior(path)
    with pytest.raises(DomainError, match=message):
        DenseLikelihood(path).size
    path.write_bytes((files / "logs.npy").read_bytes())

    def cutting():
        os.truncate(path, 128 + 8 * (BLOCK + 10))  # block 0 is in memory by now
        yield numbers[1]

    message = f"all of its {SIZE} entries; got the end of .* at entry {BLOCK + 10}, in block 1"
    with pytest.raises(DomainError, match=message):
        posterior(path, cutting)


def test_a_file_that_changes_while_it_is_read(numbers, files, tmp_path):
    path = tmp_path / "changing.npy"
    path.write_bytes((files / "logs.npy").read_bytes())

    def touching():
        yield numbers[1][:BLOCK]
        os.utime(path, ns=(1, 1))
        yield numbers[1][BLOCK:]

    message = "stays as it is while it is read; got .*, and it was written to before block 2"
    with pytest.raises(DomainError, match=message):
        posterior(path, touching)
    mapped = np.load(path, mmap_mode="r")

    def cutting():
        yield numbers[1][:BLOCK]
        os.truncate(path, 1000)
        yield numbers[1][BLOCK:]

    with pytest.raises(DomainError, match="must be a file with all of its .* entries; got the end of"):
        posterior(mapped, cutting)


def test_parquet_that_changes_while_it_is_read(numbers, tmp_path):
    arrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "logs.parquet"
    parquet.write_table(arrow.table({"logs": numbers[0]}), path)

    def touching():
        yield numbers[1][:BLOCK]
        os.utime(path, ns=(1, 1))
        yield numbers[1][BLOCK:]

    with pytest.raises(DomainError, match="stays as it is while it is read"):
        posterior(path, touching)


def test_a_function_that_differs_the_second_time(numbers):
    calls = []

    def differing():
        calls.append(1)
        yield numbers[0] + 0.001 * len(calls)

    with pytest.raises(DomainError, match="likelihood must be the same in both passes; got"):
        posterior(differing)

    def shorter():
        calls.append(1)
        yield numbers[0][: SIZE - len(calls)]

    with pytest.raises(DomainError, match="likelihood must be the same in both passes; got"):
        posterior(shorter)


@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize("stage", [1, 2])
def test_a_function_that_raises_is_named(numbers, n_jobs, stage):
    logs, p = numbers
    calls = []

    def failing():
        calls.append(1)
        for i in range(0, SIZE, 1000):
            if len(calls) == stage and i == 400_000:
                raise OSError("the disk went away")
            yield logs[i : i + 1000]

    message = "likelihood must be arrays to its end; got OSError.'the disk went away'."
    with pytest.raises(DomainError, match=message) as caught:
        posterior(failing, p, n_jobs=n_jobs)
    assert "in place of its array 400, which starts at secret 400000. Mend the function" in str(caught.value)
    assert isinstance(caught.value.__cause__, OSError)


def test_progress_counts_the_blocks_of_both_passes(numbers):
    seen = []
    posterior(*numbers, progress=lambda done, total: seen.append((done, total)))
    assert seen == [(i, 6) for i in range(1, 7)]

    def stop(done, total):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        posterior(*numbers, progress=stop)


def test_memory_does_not_grow_with_the_stream():
    block = np.random.default_rng(1).standard_normal(10**6)

    def peak(count):
        tracemalloc.start()
        posterior(lambda: (block for _ in range(count)), n_jobs=2)
        found = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return found

    assert peak(12) < 64 * 2**20


def test_values():
    logs = DenseLikelihood([0.5, 0.25], log=False)
    assert (logs.size, logs.log) == (2, False)
    assert DenseLikelihood(np.zeros(3)).size == 3
    with pytest.raises(DomainError, match="likelihood must be in memory or in a file for its size to be known"):
        _ = DenseLikelihood(iter([])).size
    for channel in (fastpriv.Channel([[0.75, 0.25], [0.5, 0.5]]), fastpriv.RandomizedResponse(2, 1.0)):
        column = channel.column(1)
        if isinstance(column, np.ndarray):
            found = posterior(column, [0.5, 0.5])
            np.testing.assert_allclose(found.probabilities(), channel.matrix()[:, 1] / channel.matrix()[:, 1].sum())
    found = posterior(logs)
    frame = found.to_frame().set_index("quantity")
    assert (frame.index[0], frame.loc["kl", "unit"]) == ("log_evidence", "nats")
    again = pickle.loads(pickle.dumps(found))
    assert again == found == posterior(logs)
    assert found != posterior([0.0, -1.0])


def test_likelihoods_say_what_is_wrong():
    with pytest.raises(DomainError, match="default must be a log likelihood below infinity; got inf"):
        fastpriv.channels.DefaultLikelihood(3, np.inf, [], [])
    with pytest.raises(ShapeError, match="values must have one entry an index, 2; got shape"):
        fastpriv.channels.DefaultLikelihood(3, 0.0, [0, 1], [1.0])
    for places in ([1, 1], [3, 0], [-1, 0]):
        with pytest.raises(DomainError, match="indices must be different secrets from 0 to 2"):
            fastpriv.channels.DefaultLikelihood(3, 0.0, places, [1.0, 2.0])
    assert fastpriv.channels.DefaultLikelihood(2**200, 0.0, [2**199, 5], [1.0, 2.0]).indices.tolist() == [5, 2**199]
    with pytest.raises(ShapeError, match="factors must have at least one entry; got none"):
        fastpriv.channels.ProductLikelihood([])
    with pytest.raises(ShapeError, match="powers must have one entry for each of the 1 factors; got 2"):
        fastpriv.channels.ProductLikelihood([[0.0, 1.0]], powers=[1, 2])
    with pytest.raises(DomainError, match="function must be a function; got 3"):
        fastpriv.channels.IndexLikelihood(3, 5)
    with pytest.raises(ShapeError, match="pairwise must be a square with one row a record, 3; got shape"):
        fastpriv.channels.SubsetLikelihood(np.zeros(3), np.zeros((3, 2)), 2)
    one = fastpriv.channels.DefaultLikelihood(3, 0.0, [1], [2.0])
    assert one == pickle.loads(pickle.dumps(one))
    assert hash(one) == hash(fastpriv.channels.DefaultLikelihood(3, 0.0, [1], [2.0]))
