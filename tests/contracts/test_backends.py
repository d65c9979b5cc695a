"""Every public long call under every joblib backend: the same bits as on one thread, and errors that arrive whole."""

import ast
import dataclasses
import multiprocessing
import os
import pickle
import subprocess
import sys
import threading
import warnings
from pathlib import Path

import joblib
import numba
import numpy as np
import pytest
from joblib.externals.loky.backend.reduction import cloudpickle
from joblib.parallel import ParallelBackendBase, register_parallel_backend
from scipy.sparse import diags_array

import fastpriv
from fastpriv import Channel, GaussianMechanism, GaussianMixture, MixtureStack, Pmf, calibration, notions
from fastpriv.base import parallel
from fastpriv.base.errors import NotConvergedError, SamplingWarning, warned
from fastpriv.channels import ChannelStack, SparseChannel, SubsetLikelihood
from fastpriv.studies import leakage, membership

cloudpickle.register_pickle_by_value(sys.modules[__name__])  # worker processes do not find this file
RNG = np.random.default_rng(0)
PRIOR = Pmf([0.0, 1.0, 2.5], [0.5, 0.25, 0.25])
SPENT = {"rtol": 0.0, "max_samples": 1_000_000, "max_seconds": np.inf, "rng": 1}
CELLS = RNG.integers(1, 9, (64, 32)).astype(float)
LEVELS = np.arange(600) / 99
CHANNELS = ChannelStack((1 + RNG.integers(0, 2, (5000, 4, 1)) * [0.5, -0.5, 0.0, 0.0]) / 4)
CHANNEL = Channel(CELLS / CELLS.sum(axis=1, keepdims=True))
PAIRS = np.triu(RNG.integers(-3, 4, (40, 40)), 1) / 8.0
LOGS = -0.5 * RNG.integers(0, 50, 10 * 2**18).astype(float)


def mixture(seed, d=2):
    rng = np.random.default_rng(seed)
    return GaussianMixture([0.25, 0.25, 0.5], rng.integers(-2, 3, (3, d)).astype(float), rng.uniform(0.8, 1.3, (3, d)))


P, Q = mixture(1), mixture(2)
PEOPLE = membership.Panel(RNG.integers(0, 2, (300, 900)))
GAME, LARGE = (
    membership.FrequencyRelease(
        membership.Panel(PEOPLE.to_array()[:people, :8]), membership.BernoulliMembership(0.5),
        membership.GaussianNoise(0.25),
    )
    for people in (18, 40)
)
STACK = MixtureStack([0.25, 0.75], RNG.integers(-8, 9, (3000, 2)) / 4.0, RNG.integers(1, 9, (3000, 2)) / 4.0)


RELEASED = RNG.integers(0, 65, (300, 900)) / 64.0


def triangular(indices):
    return -np.abs(indices / 1e14 - 0.3)


def median(rng, n):
    return np.median(rng.laplace(size=(n, 15)), axis=1)


# calls whose tasks go to processes and clusters
SENT = {
    "assess": lambda **k: fastpriv.assess([31, 40, 40, 58], sigma=[10.0, 30.0, 100.0], epsilon=[0.5], **k),
    "assess, several": lambda **k: fastpriv.assess(
        {"a": [1, 2, 2]}, mechanism=["rr", "geometric"], level=[0.5, 1.0], epsilon=[0.1], **k
    ),
    "awgn_capacity": lambda **k: fastpriv.awgn_capacity([1, 1, 2, 3], [4.0, 7.0, 5.0, 6.0], **k),
    "sigma_from_ci_lmip": lambda **k: calibration.sigma_from_ci_lmip(np.linspace(0.3, 0.5, 33), 1, 1.0, **k),
    "sigma_from_cd_lmip": lambda **k: calibration.sigma_from_cd_lmip(np.linspace(0.1, 0.2, 17), PRIOR, **k),
    "sigma_from_lip": lambda **k: calibration.sigma_from_lip(np.linspace(0.5, 0.6, 17), 1e-3, PRIOR, **k),
    "kl_divergence": lambda **k: fastpriv.kl_divergence(P, Q, **SPENT, **k),
    "hockey_stick_divergence": lambda **k: fastpriv.hockey_stick_divergence(
        P, Q, [0.5, 4.0], **SPENT | {"max_samples": 3_000_000}, **k
    ),
    "label_information": lambda **k: fastpriv.divergences.label_information(mixture(3), **SPENT, **k),
    "renyi_divergence": lambda **k: fastpriv.renyi_divergence(P, Q, 1.5, **SPENT, **k),
    "guaranteed": lambda **k: fastpriv.total_variation(P, Q, interval="guaranteed", **SPENT | {"rtol": 0.05}, **k),
    "banded matrix": lambda **k: fastpriv.composition.BandedMatrixMechanism(
        [1.0, 0.5], 2.0, 40, epochs=2
    ).sampled_delta(1.0, rng=1, rtol=1e-6, max_samples=120_000, **k),
    "pac_accuracy": lambda **k: notions.pac_accuracy(median, None, 0.0, [0.5, 1.0], rng=1, atol=2e-3, **k),
    "robust_accuracy": lambda **k: notions.robust_accuracy(
        GaussianMechanism(1.0), [0.0, 1.0], 0.0, 2.0, method="direct", rng=1, atol=0.01, **k
    ),
    "leakage_study": lambda **k: leakage.leakage_study(
        leakage.SoftmaxRegression(4, 3), RELEASED[:60, :4], np.arange(60) % 3, [leakage.Protection()], pool=20, batch=2,
        n_models=2, n_attacks=3, rng=1, **k
    ),
}
# calls whose tasks share large arrays: threads do them
SHARED = {
    "log_density": lambda **k: P.log_density(np.ones((2**21 + 1, 2)), **k),
    "channel_capacity": lambda **k: fastpriv.channel_capacity(
        np.stack([CELLS, CELLS[::-1]]) / np.stack([CELLS, CELLS[::-1]]).sum(axis=-1, keepdims=True), **k,
    ),
    "posterior": lambda **k: fastpriv.posterior(LOGS, **k),
    "posterior of a stream": lambda **k: fastpriv.posterior(lambda: iter((LOGS[: 2**19], LOGS[2**19 : 2**20])), **k),
    "posterior, subsets": lambda **k: fastpriv.posterior(
        SubsetLikelihood(np.linspace(-1.0, 1.0, 40), PAIRS + PAIRS.T, 5), **k
    ),
    "posterior, sampled subsets": lambda **k: fastpriv.posteriors.sampled_subset_posterior(
        SubsetLikelihood(np.linspace(-1.0, 1.0, 40), PAIRS + PAIRS.T, 5), rng=1, **k
    ),
    "summary": lambda **k: notions.summary(None, CHANNEL, **k),
    "ldp_delta": lambda **k: notions.ldp_delta(None, CHANNEL, [0.1, 0.5], **k),
    "lip_delta": lambda **k: notions.lip_delta(None, CHANNEL, [0.1, 0.5], **k),
    "abp": lambda **k: notions.abp(None, CHANNEL, **k),
    "information of a stack": lambda **k: notions.cd_lmip(None, CHANNELS, **k),
    "LIP curves of a stack": lambda **k: notions.lip_delta(None, CHANNELS, [0.1, 0.5], **k),
    "LIP curves of Gaussian noise": lambda **k: notions.lip_delta(PRIOR, GaussianMechanism(1.0), LEVELS, **k),
    "hockey-stick curves of stacks": lambda **k: fastpriv.hockey_stick_divergence(STACK, STACK[::-1], [0.5, 1.0], **k),
    "hockey-stick curve of a long grid": lambda **k: fastpriv.hockey_stick_divergence(
        GaussianMixture([0.5, 0.3, 0.2], [0.0, 1.0, 3.0], [1.0, 2.0, 1.5]),
        GaussianMixture([0.6, 0.4], [0.0, 1.0], [1.0, 2.5]), np.linspace(0.0, 3.0, 1200), **k
    ),
    "notions of stacks": lambda **k: notions.abp(PRIOR, GaussianMechanism(np.linspace(0.1, 4.0, 70)), **k),
    "abp of a stack": lambda **k: notions.abp(None, CHANNELS, **k),
    "map_secrets of a stack": lambda **k: notions.map_secrets(None, CHANNELS, **k),
    "products of a panel": lambda **k: PEOPLE.products(RELEASED.T, **k),
    "likelihood ratios": lambda **k: membership.DworkScore(
        PEOPLE.select(people=range(200)), PEOPLE.select(people=range(200, 300))
    ).scores(RELEASED, **k),
    "classifiers": lambda **k: membership.ClassifierAttacker("tree").fit(
        RELEASED[:, :8], np.eye(300, dtype=bool)[:, :4] | (np.arange(300) % 2 == 1)[:, None], **k
    ).scores(RELEASED[:9, :8]),
    "posteriors of membership": lambda **k: membership.membership_posterior(GAME, RELEASED[:3, :8], **k),
    "one posterior of membership": lambda **k: membership.membership_posterior(GAME, RELEASED[0, :8], **k),
    "sampled posteriors of membership": lambda **k: membership.membership_posterior(
        LARGE, RELEASED[:2, :8], sweeps=256, rng=1, **k
    ),
    "kl_divergence of stacks": lambda **k: fastpriv.kl_divergence(STACK, STACK[::-1], **k),
    "sampled rows of stacks": lambda **k: fastpriv.kl_divergence(
        MixtureStack.of([P, Q] * 12), Q, rtol=0.0, max_samples=4000, rng=1, **k
    ),
}
CALLS = SENT | SHARED


def bits(found):
    """Everything that an answer says, to the last bit; times are no part of it."""
    if isinstance(found, np.ndarray):
        if found.dtype == object:
            return [bits(one) for one in found.ravel()]
        return found.dtype.str, found.shape, found.tobytes()
    if isinstance(found, dict) or hasattr(found, "keys"):
        return [(name, bits(found[name])) for name in found.keys() if name != "seconds"]  # noqa: SIM118
    if isinstance(found, (tuple, list)):
        return [bits(one) for one in found]
    if dataclasses.is_dataclass(found):
        return [(field.name, bits(getattr(found, field.name))) for field in dataclasses.fields(found)]
    if isinstance(found, float):
        return found.hex()
    return found if isinstance(found, (int, str, type(None))) else type(found).__name__


BLOCKS = {
    "fastpriv.notions.discrete.dense_quantities._BLOCK_CELLS": 2**8,
    "fastpriv.notions.discrete.dense_quantities._LEAST_ROWS": 1, "fastpriv.notions.gaussian._LEVELS_PER_TASK": 2**7,
    "fastpriv.notions.gaussian._LEVELS_TIMES_POINTS": 1, "fastpriv.notions.discrete.delta_curves._SCREENED_WORK": 0,
    "fastpriv.notions.discrete.delta_curves._SCREENED_TERMS": 2**14,
    "fastpriv.notions.discrete.delta_curves._BLOCK_CELLS": 2**8, "fastpriv.notions.discrete.abp._BLOCK_CELLS": 2**8,
    "fastpriv.capacity.finite._CHANNELS_PER_TASK": 1, "fastpriv.posteriors.subsets._RANGE_SIZE": 2**16,
}
ONE = {}


# the modules whose tasks they run
REACHED = {
    name: {f"fastpriv.{module}" for module in modules.split()}
    for names, modules in {
        ("assess", "assess, several"): "studies.assessment.assess",
        ("awgn_capacity",): "capacity.awgn",
        ("banded matrix",): "composition.banded_matrices",
        ("sigma_from_ci_lmip",): "capacity.awgn",
        ("sigma_from_cd_lmip", "sigma_from_lip"): "calibration.root_search",
        ("kl_divergence", "hockey_stick_divergence", "label_information", "renyi_divergence"): "sampling.replicates",
        ("guaranteed",): "sampling.guaranteed",
        ("pac_accuracy", "robust_accuracy"): "notions.accuracy.monte_carlo",
        ("leakage_study",): "studies.leakage.leakage_studies",
        ("log_density",): "distributions.packed",
        ("channel_capacity",): "capacity.finite",
        ("posterior", "posterior of a stream"): "posteriors.blocks",
        ("posterior, subsets",): "posteriors.subsets",
        ("posterior, sampled subsets",): "posteriors.subset_sampling",
        ("summary", "abp"): "notions.discrete.abp notions.discrete.dense_quantities",
        ("ldp_delta", "lip_delta"): "notions.discrete.delta_curves notions.discrete.dense_quantities",
        ("notions of stacks",): "mechanisms.broadcasting",
        ("abp of a stack",): "notions.bayesian",
        ("map_secrets of a stack",): "notions.information_flow",
        ("products of a panel",): "studies.membership.panels",
        ("likelihood ratios",): "studies.membership.attackers",
        ("classifiers",): "studies.membership.trained_attackers",
        ("posteriors of membership",): "studies.membership.member_posteriors",
        ("one posterior of membership",): "studies.membership.posterior_enumeration",
        ("sampled posteriors of membership",): "studies.membership.posterior_sampling",
        ("information of a stack",): "notions.discrete.stack_quantities",
        ("LIP curves of a stack",): "notions.discrete.delta_curves notions.discrete.stack_quantities",
        ("LIP curves of Gaussian noise",): "notions.gaussian",
        ("hockey-stick curve of a long grid",): "divergences.one_dimension.monotone_pieces",
        ("hockey-stick curves of stacks", "kl_divergence of stacks", "sampled rows of stacks"):
            "divergences.rows_of_stacks",
    }.items()
    for name in names
}


class Maps(list):
    """Which maps ran, "threads" or "processes", and the modules that the tasks of threads are from."""

    modules = frozenset()


@pytest.fixture
def maps(monkeypatch):
    ran = Maps()

    def counted(name, word):
        function = getattr(parallel, name)

        def counting(task, *arguments):
            ran.append(word)
            of = getattr(task, "__self__", task)
            ran.modules |= {getattr(of, "__module__", None) or type(of).__module__}
            return function(task, *arguments)

        monkeypatch.setattr(parallel, name, counting)

    counted("_thread_results", "threads")
    counted("backend_outcomes", "processes")
    return ran


def answer(name, **words):
    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
        warnings.simplefilter("ignore", SamplingWarning)
        for place, size in BLOCKS.items():
            if name in SHARED:  # small channels have many blocks then
                patch.setattr(place, size)
        return bits(CALLS[name](**words))


def checked(names, maps, words, processes, **backend):
    """The calls under a backend give the bits of one thread, and took it."""
    for name in names:
        if name not in ONE:
            ONE[name] = answer(name, n_jobs=1)
        maps.clear()
        with joblib.parallel_config(**backend, n_jobs=2):
            assert answer(name, **words) == ONE[name], name
        assert set(maps) == {"processes" if processes and name in SENT else "threads"}, name


FEW = (
    "assess", "awgn_capacity", "sigma_from_ci_lmip", "kl_divergence", "guaranteed", "pac_accuracy",
    "posterior", "summary",
)


@pytest.mark.few(9)
@pytest.mark.parametrize("name", CALLS)
def test_threads(name, maps):
    checked([name], maps, {}, False, backend="threading")
    assert maps.modules == REACHED[name]


@pytest.mark.slow
@pytest.mark.parametrize("name", CALLS)
def test_threads_that_the_call_asks_for(name, maps):
    checked([name], maps, {"n_jobs": 2}, False)


@pytest.mark.slow
@pytest.mark.parametrize("names", [FEW, pytest.param(CALLS, marks=pytest.mark.slow)], ids=["few", "all"])
@pytest.mark.parametrize("backend", ["loky", "multiprocessing"])
def test_processes(backend, names, maps):
    checked(names, maps, {}, True, backend=backend)


@pytest.mark.slow
@pytest.mark.filterwarnings("default")
def test_a_cluster(maps):
    distributed = pytest.importorskip("distributed", reason="dask.distributed is not installed")
    with distributed.Client(n_workers=2, threads_per_worker=1, dashboard_address=None):
        checked(CALLS, maps, {}, True, backend="dask")


@pytest.mark.slow
def test_every_caller_of_the_map_is_among_the_calls():
    """The paper's figures and the scores of datasets go through it for their progress alone, one after the other."""
    root = Path(fastpriv.__file__).parent
    callers = {
        ".".join(path.relative_to(root.parent).with_suffix("").parts)
        for path in root.rglob("*.py")
        if "ordered" in path.read_text()
        and any(isinstance(node, ast.Call) and ast.unparse(node.func).rpartition(".")[2] in ("ordered_map", "ordered")
                for node in ast.walk(ast.parse(path.read_text())))
    }
    # the engine hands over the tasks of replicates
    reached = set.union(*REACHED.values()) - {"fastpriv.sampling.replicates"} | {"fastpriv.sampling.stopping"}
    one_by_one = {"fastpriv.studies.papers.paper_report", "fastpriv.studies.datasets.known_truths"}
    assert callers - one_by_one - {"fastpriv.base.executors"} == reached


# backends of other people, functions of other people


class Plain(ParallelBackendBase):
    """The least that joblib asks of a backend: no generators, no shared memory."""

    def effective_n_jobs(self, n_jobs):
        return 2

    def configure(self, n_jobs=1, parallel=None, **more):
        self.parallel = parallel
        return 2

    def submit(self, function, callback=None):
        done = Done(pickle.loads(pickle.dumps(function))())
        if callback is not None:
            callback(done)
        return done

    apply_async = submit  # the name until joblib 1.5


class Done:
    def __init__(self, found):
        self.found = found

    def get(self, timeout=None):
        return self.found


register_parallel_backend("plain", Plain)


def test_a_backend_that_nobody_knows(maps):
    checked(["assess", "kl_divergence", "summary"], maps, {}, True, backend="plain")


@pytest.mark.few(3)
@pytest.mark.parametrize("backend", ["sequential", "threading", "loky", "multiprocessing", "plain"])
def test_functions_of_any_kind(backend, maps):
    """Closures and functions without a name go to processes; what holds a lock stays with the threads."""
    lock, shift = threading.Lock(), 0.5
    laws = {
        "closure": lambda rng, n: rng.standard_normal(n) + shift,
        "lock": lambda rng, n: rng.standard_normal(n) + shift * (lock is not None),
    }
    words = {"rng": 1, "rtol": 0.0, "atol": 0.0, "max_samples": 40_000}
    for name, law in laws.items():
        one = bits(notions.pac_accuracy(law, None, 0.0, 1.0, n_jobs=1, **words))
        maps.clear()
        with joblib.parallel_config(backend, n_jobs=2):
            assert bits(notions.pac_accuracy(law, None, 0.0, 1.0, **words)) == one
        threads = name == "lock" or backend == "threading"
        assert set(maps) == (set() if backend == "sequential" else {"threads" if threads else "processes"})


@pytest.mark.slow
def test_jitted_functions_in_processes(maps):
    @numba.njit
    def normal(x):
        return -0.5 * (x[0] * x[0] + x[1] * x[1]) - 1.8378770664093453

    law = fastpriv.Density(normal, lambda rng, n: rng.standard_normal((n, 2)), dimension=2)
    one = bits(fastpriv.kl_divergence(law, Q, n_jobs=1, **SPENT))
    maps.clear()
    with joblib.parallel_config("multiprocessing", n_jobs=2):
        assert bits(fastpriv.kl_divergence(law, Q, **SPENT)) == one
    assert set(maps) == {"processes"}


class Stubborn(Exception):
    """An error that cannot be pickled: its arguments are not those of its class."""

    def __init__(self, first, second):
        super().__init__(f"{first} and {second}")


def troubled(task):
    if task == 5:
        raise NotConvergedError("rtol must be larger; got 0. Pass more.", best=0.25)
    if task == 6:
        raise Stubborn("one", "two")
    if task == 7:
        raise KeyboardInterrupt
    warned(f"told by task {task}.")
    warnings.warn("old", DeprecationWarning, stacklevel=1)
    return task, os.getpid()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:A worker stopped while some jobs were given:UserWarning")
@pytest.mark.parametrize("backend", ["loky", "multiprocessing", "plain"])
def test_errors_and_warnings_of_processes_arrive_as_they_are(backend):
    seen = []
    with joblib.parallel_config(backend, n_jobs=2):
        with pytest.warns(SamplingWarning) as told:
            done = list(parallel.ordered_map(troubled, range(4), progress=lambda *pair: seen.append(pair)))
        with pytest.warns(SamplingWarning), pytest.raises(NotConvergedError, match="rtol must be larger") as failed:
            list(parallel.ordered_map(troubled, [0, 1, 5, 2]))
        # distributed, where another test has imported it, makes every error one that can be pickled
        with pytest.warns(SamplingWarning), pytest.raises((RuntimeError, Stubborn), match="one and two"):
            list(parallel.ordered_map(troubled, [0, 6]))
        with pytest.raises(KeyboardInterrupt):
            list(parallel.ordered_map(troubled, [7, 7]))
    assert [task for task, _ in done] == [0, 1, 2, 3]
    assert backend == "plain" or os.getpid() not in {process for _, process in done}
    assert seen == [(i, 4) for i in range(1, 5)]
    said = [str(one.message) for one in told if one.category is SamplingWarning]  # joblib may have its own to say
    assert said == [f"told by task {i}." for i in range(4)]
    assert failed.value.best == 0.25
    assert "In a worker process:" in failed.value.__notes__[0]


def inner(seed):
    """What a person's own parallel job calls."""
    return bits(fastpriv.kl_divergence(P, Q, n_jobs=2, **SPENT | {"rng": seed}))


def configured(seed):
    """The same in a process that may not have children, under a backend that would need some."""
    with joblib.parallel_config("loky", n_jobs=2):
        return inner(seed)


@pytest.mark.few(1)
@pytest.mark.parametrize("backend", ["threading", "loky", "multiprocessing"])
def test_jobs_within_jobs(backend):
    found = joblib.Parallel(n_jobs=2, backend=backend)(joblib.delayed(inner)(seed) for seed in (1, 2))
    assert found == [inner(1), inner(2)]


def test_a_process_that_may_not_have_children():
    with multiprocessing.get_context("fork").Pool(1) as pool:
        assert pool.apply(configured, (1,)) == inner(1)


@pytest.mark.parametrize(
    "value",
    [
        PRIOR, P, CHANNEL, GaussianMechanism(2.0), fastpriv.RandomizedResponse(3, 1.0).power(4),
        fastpriv.mechanisms.SubsetSelection(5, 1.0), fastpriv.mechanisms.UnaryEncoding(5, 1.0),
        fastpriv.mechanisms.DiscreteLaplace(5, 1.0),
        fastpriv.mechanisms.GeometricMechanism(4, 1.0), fastpriv.channels.IndexLikelihood(triangular, 10**9),
        fastpriv.channels.DenseLikelihood([1.0, 2.0]), SubsetLikelihood(np.ones(4), np.zeros((4, 4)), 2),
        fastpriv.channels.DefaultLikelihood(10**6, -1.0, [3], [0.0]), fastpriv.Density(triangular, median, dimension=1),
        fastpriv.channels.ProductLikelihood([fastpriv.channels.DenseLikelihood([1.0, 2.0])]),
        fastpriv.distributions.LogRatio(triangular, median, dimension=1),
        fastpriv.channels.DefaultChannel(10**12, [0.5, 0.5], [7], [[0.9, 0.1]]),
        SparseChannel(diags_array(np.full(1000, 0.5005)), background=0.0005),
        fastpriv.mechanisms.ExponentialMechanism([[0.0, 1.0], [1.0, 0.0]], 1.0),
    ],
    ids=lambda value: type(value).__name__,
)
def test_values_go_to_processes(value):
    again = pickle.loads(pickle.dumps(value))
    assert type(again) is type(value)
    assert repr(again) == repr(value)


INTERRUPTED = """
import os, signal, sys, threading, warnings
import joblib, numpy as np
from fastpriv import GaussianMixture, kl_divergence
warnings.simplefilter("ignore")

def interrupt(done, total):
    if done == 3:
        os.kill(os.getpid(), signal.SIGINT)

if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)
    p, q = (GaussianMixture([0.5, 0.5], [[0.0, x], [1.0, 2.0]], [[1.0, 2.0]]) for x in (0.0, 1.0))
    with joblib.parallel_config(sys.argv[1], n_jobs=2):
        for seed in range(100):
            try:
                kl_divergence(p, q, rtol=0.0, max_samples=2**50, max_seconds=np.inf, rng=seed, progress=interrupt)
            except KeyboardInterrupt as error:
                print(seed, hasattr(error, "best"))
                sys.exit(7)
"""


@pytest.mark.parametrize("backend", ["threading", pytest.param("loky", marks=pytest.mark.slow),
                                     pytest.param("multiprocessing", marks=pytest.mark.slow)])
@pytest.mark.slow
def test_an_interruption_ends_the_first_call_under_every_backend(backend, tmp_path):
    """The budget is endless: a call that did not hear it would never come back."""
    script = tmp_path / "interrupted.py"
    script.write_text(INTERRUPTED)
    done = subprocess.run([sys.executable, script, backend], capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 7, done.stderr
    assert done.stdout.startswith("0 ")
