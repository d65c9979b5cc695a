"""One posterior in shards: the bits of one machine, whatever the parts, the shards, the workers, and what dies."""

import itertools
import os
import signal
import subprocess
import sys
import time
from tempfile import mkdtemp

import joblib
import numpy as np
import pyarrow
import pyarrow.parquet
import pytest
from joblib.externals.loky.backend.reduction import cloudpickle

from fastpriv import DomainError, posterior
from fastpriv.base.errors import WorkerDiedError
from fastpriv.channels import IndexLikelihood, ShardedLikelihood
from fastpriv.channels.vector_sources import BLOCK
from fastpriv.errors import ShapeError
from fastpriv.posteriors.blocks import BlockTree, Node

cloudpickle.register_pickle_by_value(sys.modules[__name__])  # worker processes do not find this file
RNG = np.random.default_rng(0)
SIZE = 5 * BLOCK + 1234
LOGS = RNG.integers(-400, 1, SIZE) / 8.0
PRIOR = RNG.integers(0, 5, SIZE).astype(float)
PRIOR /= PRIOR.sum()
CUTS = (0, 7, BLOCK, 2 * BLOCK + 1, 2 * BLOCK + 9, SIZE)


def tent(d):
    return -np.abs(d - 3.0 * BLOCK) / 1024.0


def same(found, expected):
    for name, estimate in expected.estimates().items():
        other = found.estimates()[name]
        assert (other.value, other.lower, other.upper) == (estimate.value, estimate.lower, estimate.upper), name
    assert found.top == expected.top
    assert (found.map_index, found.ties, found.size) == (expected.map_index, expected.ties, expected.size)


def cut(vector):
    return [vector[start:stop] for start, stop in itertools.pairwise(CUTS)]


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("parts")
    paths = []
    for index, (logs, prior) in enumerate(zip(cut(LOGS), cut(PRIOR), strict=True)):
        paths.append(folder / f"{index}.parquet")
        table = pyarrow.table({"log": logs, "prior": prior})
        pyarrow.parquet.write_table(table, paths[-1], row_group_size=100_000)
        np.save(folder / f"{index}.npy", logs)
    return paths


@pytest.mark.few(3)
@pytest.mark.parametrize("prior", [None, "prior", "log_prior"])
@pytest.mark.parametrize("shards", [None, 1, 2, 5, 100])
def test_parts_and_shards_do_not_change_a_bit(files, prior, shards):
    given, sharded = {}, {}
    if prior is not None:
        values = PRIOR if prior == "prior" else np.log(np.maximum(PRIOR, 1e-320))
        given, sharded = {prior: values}, {prior: ShardedLikelihood(cut(values))}
    expected = posterior(LOGS, **given)
    for parts in ([(path, "log") for path in files], [path.with_suffix(".npy") for path in files], cut(LOGS)):
        same(posterior(ShardedLikelihood(parts, shards), **sharded), expected)
    if prior == "prior":
        parts = ShardedLikelihood([(path, "log") for path in files], shards)
        same(posterior(parts, ShardedLikelihood([(path, "prior") for path in files])), expected)
        same(posterior(parts, PRIOR), expected)


@pytest.mark.slow
def test_workers_do_not_change_a_bit(files):
    likelihood = ShardedLikelihood([(path, "log") for path in files], 4)
    expected = posterior(LOGS, top=3)
    assert likelihood.size == SIZE
    same(posterior(likelihood, top=3, executor="processes", n_jobs=2), expected)
    found = posterior(likelihood, top=3, n_jobs=2)
    same(found, expected)
    assert np.array_equal(found.probabilities(BLOCK - 2, BLOCK + 2), expected.probabilities(BLOCK - 2, BLOCK + 2))
    assert found.cost == {"secrets": SIZE, "passes": 2, "shards": 4}


def test_likelihoods_that_are_no_logarithms_and_single_precision():
    values = np.exp(LOGS)
    same(posterior(ShardedLikelihood(cut(values), log=False)), posterior(values, log=False))
    values = LOGS.astype(np.float32)
    same(posterior(ShardedLikelihood(cut(values), 3)), posterior(values))
    mixed = [part.astype(np.float32) if index % 2 else part for index, part in enumerate(cut(LOGS))]
    same(posterior(ShardedLikelihood(mixed, 3)), posterior(LOGS))


@pytest.mark.slow
def test_a_function_is_cut_into_shards():
    expected = posterior(IndexLikelihood(tent, SIZE))
    same(posterior(ShardedLikelihood(IndexLikelihood(tent, SIZE)), executor="processes", n_jobs=2), expected)


def test_the_tree_does_not_depend_on_the_cuts():
    for blocks in (1, 2, 3, 7, 8, 21, 64, 100):
        whole = BlockTree(lambda a, b: (f"({a[0]} {b[0]})",), [Node(0, i, (str(i),)) for i in range(blocks)])
        assert len(whole.nodes) <= blocks.bit_length()
        for _ in range(20):
            ends = np.sort(RNG.integers(0, blocks + 1, RNG.integers(0, 9)))
            merged = BlockTree(whole.merge)
            for start, stop in zip([0, *ends], [*ends, blocks], strict=True):
                part = BlockTree(whole.merge, [Node(0, i, (str(i),)) for i in range(start, stop)])
                assert len(part.nodes) <= 2 * max(int(stop - start), 1).bit_length()
                for node in part.nodes:
                    merged.add(node)
            assert merged.total() == whole.total()


@pytest.mark.slow
def test_a_worker_that_dies_and_a_run_that_is_killed_change_nothing(tmp_path):
    program = """
import os, sys, numpy as np
import fastpriv
store, mark = sys.argv[1:]
block = 2**18
def tent(d):
    if d[0] // block == 3 and not os.path.exists(mark):
        open(mark, "w").close()
        os._exit(3)
    return -np.abs(d - 3.0 * block) / 1024.0
def kill(done, total):
    if done == 7 and not os.path.exists(mark + "2"):
        open(mark + "2", "w").close()
        os.kill(os.getpid(), 9)
likelihood = fastpriv.channels.ShardedLikelihood(fastpriv.channels.IndexLikelihood(tent, 5 * block + 1234), shards=5)
result = fastpriv.posterior(likelihood, executor="processes", n_jobs=2, store=store, progress=kill)
print({name: (x.value, x.lower, x.upper) for name, x in result.estimates().items()}, result.cost)
"""
    args = [sys.executable, "-c", program, str(tmp_path / "store"), str(tmp_path / "mark")]
    assert subprocess.run(args, capture_output=True).returncode == -signal.SIGKILL
    assert (tmp_path / "mark").exists()
    done = subprocess.run(args, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    expected = posterior(IndexLikelihood(tent, SIZE))
    numbers = {name: (x.value, x.lower, x.upper) for name, x in expected.estimates().items()}
    assert done.stdout == f"{numbers} {{'secrets': {SIZE}, 'passes': 2, 'shards': 5}}\n"


def test_finished_shards_are_not_computed_again(tmp_path):
    evaluated = []

    def counted(d):
        evaluated.append(int(d[0]) // BLOCK)
        if d[0] // BLOCK == 4 and len(evaluated) < 1000 and broken:
            raise ValueError("no number yet")
        return tent(d)

    broken = True
    likelihood = ShardedLikelihood(IndexLikelihood(counted, SIZE), 6)
    with pytest.raises(DomainError, match="function must return a log likelihood for every secret; got ValueError: no"):
        posterior(likelihood, store=tmp_path / "store")
    assert {0, 1, 2, 3, 4} <= set(evaluated)
    broken = False
    evaluated.clear()
    expected = posterior(IndexLikelihood(tent, SIZE))
    same(posterior(likelihood, store=tmp_path / "store"), expected)
    assert evaluated.count(1) < evaluated.count(4)  # once for the second pass; and twice
    evaluated.clear()
    same(posterior(likelihood, store=tmp_path / "store"), expected)
    assert set(evaluated) <= {0, 5}  # the first and the last block are compared with the store
    with pytest.raises(DomainError, match="store must be one of the same number of shards"):
        posterior(ShardedLikelihood(IndexLikelihood(counted, SIZE), 3), store=tmp_path / "store")
    with pytest.raises(DomainError, match="store must be one of the same data"):
        posterior(ShardedLikelihood(IndexLikelihood(lambda d: 0.5 * tent(d), SIZE), 6), store=tmp_path / "store")


@pytest.mark.slow
def test_a_shard_that_kills_its_workers_is_named_and_the_others_are_kept(tmp_path):
    mark = tmp_path / "mended"

    def deadly(d):
        if d[0] // BLOCK == 2 and not mark.exists():
            os._exit(3)
        return tent(d)

    likelihood = ShardedLikelihood(IndexLikelihood(deadly, SIZE), 6)
    arguments = {"executor": "processes", "n_jobs": 2, "store": tmp_path / "store"}
    with pytest.raises(WorkerDiedError, match="executor must run all shards; got 1 of 6 whose workers died, the fir"):
        posterior(likelihood, **arguments)
    mark.touch()
    done = []
    same(
        posterior(likelihood, progress=lambda count, total: done.append((count, total)), **arguments),
        posterior(IndexLikelihood(tent, SIZE)),
    )
    assert done[0] == (5, 12)


@pytest.mark.few(1)
@pytest.mark.parametrize("ending", ["npy", "parquet"])
@pytest.mark.slow
def test_each_shard_writes_its_part_of_the_posterior(tmp_path, ending):
    expected = np.empty(SIZE)
    whole = posterior(LOGS, PRIOR, out=expected)
    likelihood, prior = ShardedLikelihood(cut(LOGS), 4), ShardedLikelihood(cut(PRIOR))
    options = {"out": f"{tmp_path}/{{first:09d}}.{ending}", "store": tmp_path / "store"}
    same(posterior(likelihood, prior, executor="processes", n_jobs=2, **options), whole)

    def parts():
        files = sorted(tmp_path.glob(f"*.{ending}"))
        read = np.load if ending == "npy" else lambda path: pyarrow.parquet.read_table(path)["posterior"].to_numpy()
        return files, np.concatenate([read(path) for path in files])

    files, probabilities = parts()
    assert [int(path.stem) // BLOCK for path in files] == [0, 1, 3, 4]
    assert np.array_equal(probabilities, expected)
    written = [path.stat().st_mtime_ns for path in files]
    files[1].unlink()
    same(posterior(likelihood, prior, **options), whole)
    assert np.array_equal(parts()[1], expected)
    assert [path.stat().st_mtime_ns == time for path, time in zip(files, written, strict=True)] == [True, False] + [
        True] * 2


@pytest.mark.parametrize("out", ["parts.npy", "{first}.csv", "{0}.npy", "{first}{other}.npy", np.empty(SIZE)])
def test_out_of_shards_is_a_pattern(out):
    with pytest.raises(DomainError, match="out must be a name with the field {first} that ends with .npy or .parquet"):
        posterior(ShardedLikelihood(cut(LOGS)), out=out)


REFUSED = [
    (lambda: posterior(LOGS, executor="processes"), DomainError,
     "executor and store must be None for a likelihood without shards; got"),
    (lambda: posterior(ShardedLikelihood(LOGS), executor="cloud"), DomainError, "executor must be None or 'processes'"),
    (lambda: ShardedLikelihood([]), ShapeError, "parts must have at least one entry; got none. Pass the parts of one"),
    (lambda: ShardedLikelihood(LOGS, 0), DomainError, "shards must be"),
    (lambda: posterior(ShardedLikelihood([lambda: iter([LOGS])])), DomainError,
     "likelihood must have parts of known lengths; got a function or an iterator. Pass files, arrays"),
    (lambda: posterior(ShardedLikelihood(LOGS), ShardedLikelihood(cut(PRIOR)[:-1])), ShapeError,
     "prior must have one entry for each secret"),
    (lambda: posterior(ShardedLikelihood([np.empty(0)])), ShapeError, "likelihood must have at least one secret"),
    (lambda: posterior(ShardedLikelihood([LOGS, np.array([np.nan])])), DomainError,
     f"likelihood must be log likelihoods, numbers below infinity; got nan at index {SIZE}, in block 5"),
    (lambda: posterior(ShardedLikelihood(cut(LOGS)), ShardedLikelihood(cut(0.5 * PRIOR))), DomainError,
     "prior must sum to 1 within"),
    (lambda: posterior(ShardedLikelihood(np.full(3, -np.inf))), DomainError,
     "likelihood must be positive for some secret of positive prior; got zero for all 3"),
]


@pytest.mark.parametrize(("call", "error", "match"), REFUSED)
def test_what_is_refused(call, error, match):
    with pytest.raises(error, match=match):
        call()


def test_a_parquet_file_with_missing_entries_or_changed_is_refused(tmp_path):
    path = tmp_path / "holes.parquet"
    pyarrow.parquet.write_table(pyarrow.table({"log": pyarrow.array([0.0] * 10 + [None])}), path, row_group_size=4)
    with pytest.raises(DomainError, match="likelihood must have no missing entries; got one at index 10"):
        posterior(ShardedLikelihood([path]))
    pyarrow.parquet.write_table(pyarrow.table({"log": LOGS}), path)

    def rewrite(done, total):
        if done == 1:
            time.sleep(0.01)
            pyarrow.parquet.write_table(pyarrow.table({"log": LOGS[:-1]}), path)

    with pytest.raises(DomainError, match="likelihood must be a file that stays as it is while it is read"):
        posterior(ShardedLikelihood([(path, "log")], 4), progress=rewrite)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_a_dask_cluster_gives_the_same_bits(files):
    distributed = pytest.importorskip("distributed")
    likelihood = ShardedLikelihood([(path, "log") for path in files], 6)
    prior = ShardedLikelihood([(path, "prior") for path in files])
    options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": None, "silence_logs": 50}
    cluster = distributed.LocalCluster(processes=True, **options)
    with cluster, distributed.Client(cluster), joblib.parallel_config("dask"):
        found = posterior(likelihood, prior)
    same(found, posterior(LOGS, PRIOR))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_ray_gives_the_same_bits(files):
    ray = pytest.importorskip("ray")
    likelihood = ShardedLikelihood([(path, "log") for path in files], 6)
    prior = ShardedLikelihood([(path, "prior") for path in files])
    register_ray = pytest.importorskip("ray.util.joblib").register_ray
    ray.init(num_cpus=2, _temp_dir=mkdtemp(), include_dashboard=False, log_to_driver=False)
    register_ray()
    try:
        with joblib.parallel_config("ray"):
            same(posterior(likelihood, prior), posterior(LOGS, PRIOR))
    finally:
        ray.shutdown()
