"""One channel table in shards: the bits of one machine, whatever the parts, the shards, the workers, and what dies."""

import itertools
import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from tempfile import mkdtemp

import joblib
import mpmath
import numpy as np
import pyarrow
import pyarrow.parquet
import pytest
from joblib.externals.loky.backend.reduction import cloudpickle

from fastpriv import Channel, DomainError, ShapeError, ShardedChannel, ShardedLikelihood, channel_capacity, notions
from fastpriv.base.errors import WorkerDiedError
from fastpriv.base.estimate import Estimate
from fastpriv.notions.discrete.dense_quantities import rows_of_block

cloudpickle.register_pickle_by_value(sys.modules[__name__])  # worker processes do not find this file
RNG = np.random.default_rng(0)
OUTPUTS = 48
BLOCK = rows_of_block(OUTPUTS)
SIZE = 3 * BLOCK + 123
CELLS = RNG.integers(0, 50, (SIZE, OUTPUTS)) + 0.125
CELLS[:, 5] *= 2.0**-30
CELLS /= CELLS.sum(axis=1, keepdims=True)
PRIOR = RNG.integers(0, 5, SIZE).astype(float)
PRIOR[:70] = 0.0
PRIOR /= PRIOR.sum()
CUTS = (0, 7, BLOCK, 2 * BLOCK + 1, 2 * BLOCK + 9, SIZE)


def same(found, expected, *, bounds=True):
    for name in ("ldp_epsilon", "ldp_on_support", "xi", "xi_plus", "xi_minus", "cd_lmip", "pointwise_lmip",
                 "bayes_vulnerability", "prior_vulnerability", "min_entropy_leakage", "maximal_leakage"):  # fmt: skip
        one, other = getattr(found, name), getattr(expected, name)
        assert one.value == other.value, name
        if bounds:
            assert (one.lower, one.upper) == (other.lower, other.upper), name
        else:  # what a prior misses 1 by is known less well block by block
            assert one.lower <= other.lower <= other.upper <= one.upper or one.upper - one.lower <= 1e-12, name
            assert one.upper - one.lower <= 2 * (other.upper - other.lower) + 1e-15, name
    assert np.array_equal(found.release, expected.release)
    assert np.array_equal(found.map_secrets, expected.map_secrets)


def cut(table):
    return [table[start:stop] for start, stop in itertools.pairwise(CUTS)]


def alternating(d):
    p = 0.25 + 0.5 * (d % 2)
    return np.stack([p, 1 - p], axis=1)


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("parts")
    paths = []
    for index, (rows, prior) in enumerate(zip(cut(CELLS), cut(PRIOR), strict=True)):
        paths.append(folder / f"{index}.parquet")
        table = pyarrow.table({f"w{w}": rows[:, w] for w in range(OUTPUTS)})
        pyarrow.parquet.write_table(table, paths[-1], row_group_size=10_000)
        np.save(folder / f"{index}.npy", rows)
        np.save(folder / f"prior{index}.npy", prior)
    return paths


@pytest.mark.few(2)
@pytest.mark.parametrize("shards", [None, 1, 2, 5, 100])
def test_parts_and_shards_do_not_change_a_bit(files, shards):
    expected = notions.summary(None, Channel(CELLS))
    for parts in (files, [path.with_suffix(".npy") for path in files], cut(CELLS)):
        same(notions.summary(None, ShardedChannel(parts, shards)), expected)
    with_prior = notions.summary(PRIOR, ShardedChannel(CELLS, 3))
    same(with_prior, notions.summary(PRIOR, Channel(CELLS)), bounds=False)
    priors = [path.parent / f"prior{index}.npy" for index, path in enumerate(files)]
    for prior in (ShardedLikelihood(priors, log=False), ShardedLikelihood(cut(PRIOR), log=False)):
        same(notions.summary(prior, ShardedChannel(files, shards)), with_prior)


@pytest.mark.few(1)
@pytest.mark.parametrize("prior", [None, PRIOR])
def test_logarithms_single_precision_and_tiny_columns(prior):
    logs = np.log(CELLS)
    logs[:, 0] = -np.inf
    logs -= np.log(np.exp(logs).sum(axis=1, keepdims=True))
    tiny = CELLS.copy()
    tiny[:, 1], tiny[:, 2] = 1e-310, 0.0
    tiny /= tiny.sum(axis=1, keepdims=True)
    for table, log in ((logs, True), (CELLS.astype(np.float32), False), (tiny, False)):
        expected = notions.summary(prior, Channel(table, log=log))
        same(notions.summary(prior, ShardedChannel(cut(table), 4, log=log)), expected, bounds=prior is None)


@pytest.mark.slow
def test_workers_do_not_change_a_bit(files):
    channel = ShardedChannel(files, 4)
    expected = notions.summary(PRIOR, channel)
    same(notions.summary(PRIOR, channel, n_jobs=2), expected)
    same(notions.summary(PRIOR, channel, executor="processes", n_jobs=2), expected)
    with ThreadPoolExecutor(2) as executor:
        found = notions.summary(PRIOR, channel, executor=executor)
    same(found, expected)
    assert found.cd_lmip.cost == {"secrets": SIZE, "passes": 2, "shards": 4}
    assert repr(channel) == f"ShardedChannel({SIZE} x {OUTPUTS}, 5 parts, shards=4, log=False)"


def test_functions_of_one_quantity_take_channels_in_shards():
    expected = notions.summary(PRIOR, ShardedChannel(CELLS, 2))
    channel = ShardedChannel(cut(CELLS))
    estimates = [
        (notions.mbp(PRIOR, channel).plus, expected.xi_plus), (notions.lip_epsilon(PRIOR, channel), expected.xi),
        (notions.ldp_epsilon(None, channel), expected.ldp_epsilon), (notions.cd_lmip(PRIOR, channel), expected.cd_lmip),
        (notions.maximal_leakage(None, channel), notions.maximal_leakage(None, Channel(CELLS))),
        (notions.bayes_vulnerability(PRIOR, channel), expected.bayes_vulnerability),
        (notions.min_entropy_leakage(PRIOR, channel), expected.min_entropy_leakage),
    ]  # fmt: skip
    for one, other in estimates:
        assert (one.value, one.lower, one.upper) == (other.value, other.lower, other.upper)


@pytest.mark.few(1)
@pytest.mark.parametrize("size", [1, 2, 2**20, 10**7])
def test_bounds_contain_the_truth_of_generated_rows(size):
    found = notions.summary(None, ShardedChannel((alternating, size), 7))
    with mpmath.workdps(40):
        odd = mpmath.mpf(size // 2) / size
        release = [(1 - odd) / 4 + odd * 3 / 4, (1 - odd) * 3 / 4 + odd / 4]

        def divergence(row):
            return sum(p * mpmath.log(p / q) for p, q in zip(row, release, strict=True))

        even_row, odd_row = [mpmath.mpf(1) / 4, mpmath.mpf(3) / 4], [mpmath.mpf(3) / 4, mpmath.mpf(1) / 4]
        rows = [even_row, odd_row] if size > 1 else [even_row]
        truth = {
            "cd_lmip": (1 - odd) * divergence(even_row) + odd * divergence(odd_row),
            "pointwise_lmip": max(map(divergence, rows)),
            "ldp_epsilon": mpmath.log(3) if size > 1 else mpmath.mpf(0),
            "xi_plus": max(mpmath.log(row[w] / release[w]) for row in rows for w in (0, 1)),
            "bayes_vulnerability": sum(max(row[w] for row in rows) for w in (0, 1)) / size,
            "maximal_leakage": mpmath.log(sum(max(row[w] for row in rows) for w in (0, 1))),
            "prior_vulnerability": mpmath.mpf(1) / size,
        }  # fmt: skip
    for name, number in truth.items():
        estimate: Estimate = getattr(found, name)
        assert estimate.lower <= number <= estimate.upper, name
        assert estimate.upper - estimate.lower <= 1e-13 * max(1.0, float(number)), name


@pytest.mark.slow
def test_a_worker_that_dies_and_a_run_that_is_killed_change_nothing(tmp_path):
    program = """
import os, sys, numpy as np
from fastpriv import ShardedChannel, notions
store, mark = sys.argv[1:]
def rows(d):
    if d[0] == 3 * 2**20 and not os.path.exists(mark):
        open(mark, "w").close()
        os._exit(3)
    p = 0.25 + 0.5 * (d % 2)
    return np.stack([p, 1 - p], axis=1)
def kill(done, total):
    if done == 3 and os.path.exists(mark) and not os.path.exists(mark + "2"):
        open(mark + "2", "w").close()
        os.kill(os.getpid(), 9)
channel = ShardedChannel((rows, 5 * 2**20 + 77), shards=5)
found = notions.summary(None, channel, executor="processes", n_jobs=2, store=store, progress=kill)
print([(x.value, x.lower, x.upper) for x in (found.cd_lmip, found.xi, found.bayes_vulnerability)])
"""
    args = [sys.executable, "-c", program, str(tmp_path / "store"), str(tmp_path / "mark")]
    assert subprocess.run(args, capture_output=True).returncode == -signal.SIGKILL
    assert (tmp_path / "mark").exists()
    done = subprocess.run(args, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    expected = notions.summary(None, ShardedChannel((alternating, 5 * 2**20 + 77), 3))
    estimates = (expected.cd_lmip, expected.xi, expected.bayes_vulnerability)
    assert done.stdout == f"{[(x.value, x.lower, x.upper) for x in estimates]}\n"


@pytest.mark.slow
def test_finished_shards_are_not_computed_again(tmp_path):
    evaluated = []
    broken = True

    def counted(d):
        evaluated.append(int(d[0]) >> 20)
        if d[0] >> 20 == 4 and broken:
            raise ValueError("no rows yet")
        return alternating(d)

    channel = ShardedChannel((counted, 5 * 2**20 + 77), 6)
    with pytest.raises(DomainError, match="function must return a row for every secret; got ValueError: no rows yet"):
        notions.summary(None, channel, store=tmp_path / "store")
    assert {0, 1, 2, 3, 4} <= set(evaluated)
    broken = False
    evaluated.clear()
    same(notions.summary(None, channel, store=tmp_path / "store"), notions.summary(None, channel))
    evaluated.clear()
    notions.summary(None, channel, store=tmp_path / "store")
    assert set(evaluated) <= {0, 5}  # the first and the last block are compared with the store
    with pytest.raises(DomainError, match="store must be one of the same number of shards"):
        notions.summary(None, ShardedChannel((counted, 5 * 2**20 + 77), 3), store=tmp_path / "store")


@pytest.mark.slow
def test_a_shard_whose_workers_all_die_is_named(tmp_path):
    def deadly(d):
        if d[0] > 0:
            os._exit(3)
        return alternating(d)

    with pytest.raises(WorkerDiedError, match="executor must run all shards; got 1 of 2 whose workers died"):
        notions.summary(None, _deadly_in_the_middle(deadly), executor="processes", n_jobs=2)


def _deadly_in_the_middle(function):
    def only_the_middle(d):  # the first and the last block are read by the caller
        return function(d) if 2**20 <= d[0] < 2**21 else alternating(d)

    return ShardedChannel((only_the_middle, 3 * 2**20), 2)


REFUSED = [
    (lambda: ShardedChannel([]), ShapeError, "parts must have at least one entry; got none"),
    (lambda: ShardedChannel(np.ones(3)), ShapeError, "parts must be two-dimensional, one row a secret; g"),
    (lambda: ShardedChannel(np.ones((0, 3))), ShapeError, "parts must have at least one secret; got none"),
    (lambda: ShardedChannel(np.ones((3, 0))), ShapeError, "parts must have at least one release; got empty rows"),
    (lambda: ShardedChannel(lambda: None), DomainError, "parts must have parts of known lengths"),
    (lambda: ShardedChannel((lambda d: np.ones(3), 5)), ShapeError, "function must return one row of numbers for each"),
    (lambda: notions.summary(None, ShardedChannel([CELLS[:3], CELLS[:3, :4]])), ShapeError,
     "parts must all have 48 releases, as the first one; got another number among the rows from 0 to 5"),
    (lambda: notions.summary(None, ShardedChannel(2 * CELLS)), DomainError,
     "each row of matrix must sum to 1 within 1e-09; got a sum of .* at row 0"),
    (lambda: notions.summary(PRIOR[1:], ShardedChannel(CELLS)), ShapeError, f"prior must have one entry .*{SIZE} secr"),
    (lambda: notions.summary(2 * PRIOR, ShardedChannel(CELLS)), DomainError, "prior must sum to 1 within 1e-09; got a"),
    (lambda: notions.summary(0 * PRIOR, ShardedChannel(CELLS)), DomainError, "prior must sum to 1; got zeros alone"),
    (lambda: notions.summary(-PRIOR, ShardedChannel(CELLS)), DomainError, "prior must be probabilities, 0 or at le"),
    (lambda: notions.summary(np.where(PRIOR > 0, PRIOR, 1e-301), ShardedChannel(CELLS)), DomainError,
     "prior must be probabilities, 0 or at least 1e-300 at every secret; got 1e-301 at index 0"),
    (lambda: notions.summary(ShardedLikelihood(PRIOR), ShardedChannel(CELLS)), DomainError,
     "prior must be made of probabilities; got a ShardedLikelihood of logarithms. Pass log=False"),
    (lambda: notions.summary(None, ShardedChannel(CELLS), secret=[1.0]), DomainError,
     "posteriors, release, secret and belief must be None for a channel in shards"),
    (lambda: notions.summary(None, CELLS[:9], executor="processes"), DomainError,
     "executor and store must be None for a channel without shards"),
    (lambda: notions.lip_delta(None, ShardedChannel(CELLS), 1.0), DomainError,
     "mechanism must be a channel that one machine holds for this quantity; got ShardedChannel"),
    (lambda: channel_capacity(ShardedChannel(CELLS)), DomainError,
     "channel must be one that one machine holds, since its rows are gone through again and again; got ShardedChannel"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "error", "match"), REFUSED)
def test_what_is_refused(call, error, match):
    with pytest.raises(error, match=match):
        call()


def test_files_that_do_not_fit_are_refused(tmp_path):
    np.save(tmp_path / "flat.npy", np.ones(3))
    np.save(tmp_path / "fortran.npy", np.asfortranarray(CELLS[:9]))
    with pytest.raises(ShapeError, match="parts must be two-dimensional, one row a secret; got shape .3,. in"):
        ShardedChannel(tmp_path / "flat.npy")
    with pytest.raises(ShapeError, match="parts must be stored row by row; got Fortran order in"):
        ShardedChannel(tmp_path / "fortran.npy")


@pytest.mark.slow
def test_the_chunks_of_a_dask_array_are_parts():
    array = pytest.importorskip("dask.array")
    table = array.from_array(CELLS, chunks=(np.diff(CUTS).tolist(), -1))
    expected = notions.summary(None, Channel(CELLS))
    same(notions.summary(None, ShardedChannel(table, 3)), expected)
    same(notions.summary(None, ShardedChannel(table, 3), executor="processes", n_jobs=2), expected)
    with pytest.raises(ShapeError, match="parts must have chunks of whole rows; got a dask array with 2 chunks of col"):
        ShardedChannel(table.rechunk({1: 24}))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_a_dask_cluster_gives_the_same_bits(files, tmp_path):
    distributed = pytest.importorskip("distributed")
    expected = notions.summary(PRIOR, ShardedChannel(files, 2))
    options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": None, "silence_logs": 50}
    with distributed.LocalCluster(processes=True, **options) as cluster, distributed.Client(cluster) as client:

        def kill(done, total):
            if done == 3:
                os.kill(next(iter(client.run(os.getpid).values())), signal.SIGKILL)

        channel = ShardedChannel(files, 6)
        found = notions.summary(PRIOR, channel, executor=client.get_executor(), progress=kill, store=tmp_path / "store")
    same(found, expected)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_ray_gives_the_same_bits_of_files_and_of_a_dataset(files):
    ray = pytest.importorskip("ray")
    expected = notions.summary(None, Channel(CELLS))
    register_ray = pytest.importorskip("ray.util.joblib").register_ray
    ray.init(num_cpus=2, _temp_dir=mkdtemp(), include_dashboard=False, log_to_driver=False)
    register_ray()
    try:
        with joblib.parallel_config("ray"):
            same(notions.summary(None, ShardedChannel(files, 6)), expected)
            dataset = ray.data.from_numpy(cut(CELLS)).materialize()
            same(notions.summary(None, ShardedChannel((dataset, "data"), 3)), expected)
    finally:
        ray.shutdown()
