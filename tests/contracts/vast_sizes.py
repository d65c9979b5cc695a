"""Sizes as people type them by accident, and what is done with them: ``python -m contracts.vast_sizes`` runs all.

Each call answers, or refuses in one sentence: it is run in a process of its own with 4 GB of memory and 10 s of its
processor, and what hangs or takes more is told by the signal that ends it.
"""

import json
import os
import signal
import sys
import warnings

import numpy as np

import fastpriv as fp
from fastpriv import notions
from fastpriv.base.errors import DomainError, NotConvergedError, SamplingWarning, ShapeError

__all__ = ["CHANNELS", "OTHERS", "QUICK", "SIZES", "USES", "fault_of"]

SIZES = (10**9, 2**63, 10**400)
MEMORY, SECONDS = 4 * 2**30, 10

CHANNELS = {
    "randomised response": lambda n: fp.RandomizedResponse(n, 1.0),
    "unary encoding": lambda n: fp.mechanisms.UnaryEncoding(n, 1.0),
    "optimised": lambda n: fp.mechanisms.UnaryEncoding.optimized(n, 1.0),
    "rappor": lambda n: fp.mechanisms.UnaryEncoding.rappor(n, 0.5, p=0.5, q=0.75),
    "subsets": lambda n: fp.mechanisms.SubsetSelection(n, 1.0),
    "subsets of 3": lambda n: fp.mechanisms.SubsetSelection(n, 1.0, 3),
    "half": lambda n: fp.mechanisms.SubsetSelection(n, 1.0, n // 2),
    "geometric": lambda n: fp.mechanisms.GeometricMechanism(n, 1.0),
    "laplace": lambda n: fp.mechanisms.DiscreteLaplace(n, 1.0),
    "default": lambda n: fp.channels.DefaultChannel(n, [0.5, 0.5], [1], [[0.25, 0.75]]),
    "power": lambda n: fp.RandomizedResponse(10, 0.1).power(n),
    "power of a product": lambda n: fp.RandomizedResponse(2, 1.0).product(fp.RandomizedResponse(3, 1.0)).power(n),
    "power of rows": lambda n: fp.Channel([[0.8, 0.2], [0.1, 0.9]]).power(n),
    "power of a power": lambda n: fp.RandomizedResponse(2, 1.0).power(n).power(n),
    "bits three times": lambda n: fp.mechanisms.UnaryEncoding(n, 1.0).power(3),
    "beside another": lambda n: fp.RandomizedResponse(n, 1.0).product(fp.RandomizedResponse(3, 1.0)),
    "power of subsets": lambda n: fp.mechanisms.SubsetSelection(5, 1.0).power(n),
}
USES = {
    "repr": repr, "shape": lambda q: q.shape, "rows": lambda q: q.rows(0, 1), "matrix": lambda q: q.matrix(),
    "column": lambda q: q.column(0), "sample": lambda q: q.sample([0], rng=1), "hash": hash,
    "type_classes": lambda q: q.type_classes(), "extreme_log_ratios": lambda q: q.extreme_log_ratios(),
    "dominating_pairs": lambda q: q.dominating_pairs(),
    "power": lambda q: q.power(2).extreme_log_ratios(), "then": lambda q: q.then([0, 1]),
    "ldp": lambda q: notions.ldp_epsilon(None, q), "mbp": lambda q: notions.mbp(None, q),
    "summary": lambda q: notions.summary(None, q), "information": lambda q: notions.cd_lmip(None, q),
    "capacity": notions.ci_lmip, "pointwise": lambda q: notions.pointwise_lmip(None, q),
    "vulnerability": lambda q: notions.bayes_vulnerability(None, q), "leakage": fp.capacity.maximal_leakage,
    "guesses": lambda q: notions.map_secrets(None, q),
    "ldp curve": lambda q: notions.ldp_delta(None, q, [0.1, 0.5]),
    "lip curve": lambda q: notions.lip_delta(None, q, [0.1, 0.5]), "abp": lambda q: notions.abp(None, q),
    "posterior": lambda q: fp.posterior(q.column(0)),
    "assess": lambda q: fp.assess(None, mechanism=q),
}


NORMAL = fp.GaussianMixture.single(0.0, 1.0)
#: Sizes that are not an argument by itself: words, entries, both arguments of a table. The others: the registry.
OTHERS = {
    "sigma": lambda n: fp.assess([1, 2, 3], sigma=f"1:2:{n}"),
    "epsilon": lambda n: fp.assess([1, 2, 3], epsilon=f"0.1..2:{n}"),
    "level": lambda n: fp.assess([1, 2, 3], mechanism="rr", level=f"1:2:{n}"),
    "integers": lambda n: fp.assess([0, n], mechanism="geometric", level=[1.0], epsilon=[1.0]),
    "bins": lambda n: fp.Pmf.from_data([1.0, 2.0], bins=n),
    "table": lambda n: fp.bac_capacity(*(np.broadcast_to(0.1, shape) for shape in ((min(n, 10**9), 1), min(n, 10**9)))),
    "n_jobs": lambda n: notions.lip_delta(None, fp.Channel([[0.8, 0.2], [0.1, 0.9]]), [0.1], n_jobs=n),
    "default likelihood": lambda n: fp.posterior(fp.channels.DefaultLikelihood(n, -1.0, [1], [0.0])),
    "index": lambda n: fp.channels.DefaultLikelihood(10, -1.0, [n], [0.0]), "marginal": lambda n: NORMAL.marginal(n),
    "copies": lambda n: fp.posterior(
        fp.channels.ProductLikelihood([fp.channels.DefaultLikelihood(3, -1.0, [1], [0.0])], [n])
    ),
    "max_samples": lambda n: fp.kl_divergence(NORMAL, NORMAL.affine([[1.0]], shift=1.0), max_samples=n, rng=1),
    "top": lambda n: fp.posterior([0.0, -1.0], top=n),
}
QUICK = ("repr", "shape", "matrix", "column", "sample", "hash", "extreme_log_ratios", "ldp")


def fault_of(call, size):
    """What is wrong with the answer to a size; None for nothing."""
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        try:
            call(size)
        except (DomainError, ShapeError, NotConvergedError) as error:
            if "got" not in str(error):
                return f"{type(error).__name__}: {error}"
        except MemoryError as error:
            if "must fit in memory" not in str(error):
                return f"MemoryError: {error}"
        except Exception as error:
            return f"{type(error).__name__}: {error}"
    others = [one.message for one in seen if not issubclass(one.category, SamplingWarning)]
    return f"a warning: {others[0]}" if others else None


def every_call():
    for name, make in CHANNELS.items():
        for use, ask in USES.items():
            yield f"{use} of {name}", lambda n, make=make, ask=ask: ask(make(n))
    yield from OTHERS.items()


def main():
    """Print a line of JSON for each fault: call, bits of the size, what is wrong."""
    import resource

    for name, call in every_call():
        for size in SIZES:
            read, write = os.pipe()
            child = os.fork()
            if child == 0:
                sys.stdout = sys.stderr = open(os.devnull, "w")  # noqa: SIM115
                resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
                signal.setitimer(signal.ITIMER_PROF, SECONDS)
                os.write(write, (fault_of(call, size) or "").encode()[:4000])
                os._exit(0)
            os.close(write)
            with os.fdopen(read) as stream:
                fault = stream.read()
            _, status = os.waitpid(child, 0)
            if os.WIFSIGNALED(status):
                fault = f"ended by {signal.Signals(os.WTERMSIG(status)).name}"
            if fault:
                print(json.dumps([name, size.bit_length(), fault]), flush=True)


if __name__ == "__main__":
    main()
