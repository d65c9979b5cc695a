"""The posterior over a discrete domain after one release: one function, with one method for each kind of likelihood.

Each method is a module of this package that has a function ``posterior(likelihood, prior, options) -> Posterior``.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from ..base import executors, parallel, validate
from ..base.errors import DomainError, warned
from ..base.numerics import FloatArray
from ..channels import likelihoods
from ..channels.likelihoods import DenseLikelihood, Likelihood
from ..channels.subset_likelihoods import SubsetLikelihood
from ..channels.vector_sources import BLOCK, source_of
from .result import Options, Posterior

Path = str | os.PathLike[str]
LikelihoodLike: TypeAlias = Likelihood | ArrayLike | Path | tuple[Path, str] | Callable[..., Any] | Iterator[ArrayLike]
PriorLike: TypeAlias = LikelihoodLike | Sequence[LikelihoodLike | None] | None

# class of likelihood -> module of this package that handles it, loaded on first use
METHODS: dict[type[Likelihood], str] = {
    likelihoods.DefaultLikelihood: "groups", likelihoods.ProductLikelihood: "products",
    likelihoods.IndexLikelihood: "dense", likelihoods.ShardedLikelihood: "shards",
    SubsetLikelihood: "subsets", DenseLikelihood: "dense",
}


def posterior(
    likelihood: LikelihoodLike, prior: PriorLike = None, *, log: bool = True, log_prior: PriorLike = None,
    top: int = 10, out: FloatArray | Path | None = None, n_jobs: int | None = None,
    progress: parallel.Progress = None, executor: executors.ExecutorLike = None, store: Path | None = None,
) -> Posterior:
    """The posterior over the secrets after one release.

    Parameters
    ----------
    likelihood : Likelihood, array_like, path-like, (path, column) or callable
        Log likelihoods of the release under every secret: any ``Likelihood``; what a channel's ``column(release)``
        returns; or what ``DenseLikelihood`` takes.
    prior : optional
        None is the uniform prior. Otherwise probabilities, in a form that depends on the likelihood: for dense ones an
        array or any source that ``DenseLikelihood`` takes; for a ``DefaultLikelihood`` an array of shape (size,), or a
        ``DefaultLikelihood`` of log probabilities, one for all secrets but those that are listed; for a
        ``ProductLikelihood`` a sequence with the prior of each factor, or of each coordinate (secrets are then
        independent a priori); for an ``IndexLikelihood`` an array, or a vectorised function from indices to
        probabilities; for a ``ShardedLikelihood`` as for dense ones, or another ``ShardedLikelihood``. A
        ``SubsetLikelihood`` has the uniform prior.
    log : bool, optional
        Whether a plain array, file or function holds natural logarithms; a ``Likelihood`` says so itself. A warning
        comes where logarithms look like probabilities: numbers in [0, 1] that sum to 1.
    log_prior : optional
        Natural logarithms of the prior instead of ``prior``, in the same forms.
    top : int, optional
        Number of most probable secrets to report.
    out : ndarray of float64 or path-like, optional
        Where to write all posterior probabilities of a dense likelihood or a function of the index: an array of shape
        (size,), or a ``.npy`` file. For a
        ``ShardedLikelihood`` a name with the field ``{first}``, such as ``"parts/{first:015d}.npy"`` (or ``.parquet``):
        each shard writes a file, named by the number of its first secret.
    n_jobs : int, optional
        Threads; the same bits for any number. None means what ``joblib.parallel_config`` says.
    progress : bool or callable, optional
        A bar, or a function called with the number of blocks done and the total.
    executor : None or "processes", optional
        Where the shards of a ``ShardedLikelihood`` run; None means threads, or the backend of
        ``joblib.parallel_config``. ``n_jobs`` is then the number of threads or processes. A shard whose process dies is
        tried again.
    store : path-like, optional
        File in which the finished shards of a ``ShardedLikelihood`` are kept: a call with the same arguments computes
        only those that are missing.

    Returns
    -------
    Posterior
        Evidence, entropy, divergences, log ratios, the most probable secrets, each with bounds.

    Raises
    ------
    DomainError, ShapeError
        For an invalid likelihood or prior; the message names block and index. For files that end early or change while
        they are read, functions that raise, and those that yield something else the second time.
    WorkerDiedError
        If the workers of some shards died each time; the other shards are in the store.
    FileNotFoundError, BackendMissingError, MemoryError
        For files that are not there, Parquet without pyarrow, and arrays that would not fit.

    Notes
    -----
    Dense likelihoods are read twice, in blocks of 2**18 secrets; an iterator is read once, and has no Jensen-Shannon
    divergence. Each thread needs about 10 MB, whatever the number of secrets. A prior must sum to 1 within 1e-9
    (float32: 2e-6) and is divided by its sum; bounds hold for the prior as given as well. Ties are
    counted among the rounded joint weights. Likelihoods beyond e^690 below the largest count as zero.

    The same bits for any number of threads and from any source, on one instruction set; AVX-512, AVX2 and plain
    machines differ in the last digits, within the bounds.

    **Accuracy** bounds count roundings (BOUNDS.md), about 1e-13 relative or narrower for float64 and float32
    input; ``tests/enclosures/test_posterior.py``.

    Source: Bayes; definitions IV.1 and IV.3 of Zhang and Chen, Bridging Privacy and Robustness, for one release.

    Examples
    --------
    >>> import numpy as np
    >>> from fastpriv import posterior
    >>> result = posterior(np.log([0.5, 0.25]), [0.2, 0.8])
    >>> result.top.indices, result.top.probabilities
    (array([1, 0]), array([0.66666667, 0.33333333]))
    """
    parallel.checked(n_jobs, progress)
    if prior is not None and log_prior is not None:
        raise DomainError("prior and log_prior must not both be given; got two priors. Pass one of them.")
    top = validate.count("top", top, 0)
    executors.checked(executor, n_jobs)
    options = Options(top, out, n_jobs, progress, log_prior is not None, executor, store)
    validated = likelihoods.as_likelihood(likelihood)
    if validated is not likelihood and isinstance(validated, DenseLikelihood):  # ``log`` applies only to plain arrays
        validated = DenseLikelihood(likelihood, log=log)
    if not (executor is None and store is None) and not isinstance(validated, likelihoods.ShardedLikelihood):
        raise DomainError(
            "executor and store must be None for a likelihood without shards; got "
            f"{validate.shown(likelihood)}. Pass fastpriv.channels.ShardedLikelihood."
        )
    method = next((method for kind, method in METHODS.items() if isinstance(validated, kind)), "dense")
    if out is not None and method not in ("dense", "shards"):
        raise DomainError(
            f"out must be None for likelihoods that are not written out; got {validate.shown(out)} for "
            f"{validate.shown(likelihood)}. Ask the posterior for probabilities(start, stop), some at a time."
        )
    _warn_of_probabilities(validated)
    selected = prior if log_prior is None else log_prior
    result: Posterior = import_module(f".{method}", __package__).posterior(validated, selected, options)
    return result


def _warn_of_probabilities(likelihood: Likelihood) -> None:
    """Warn of logarithms that look like probabilities: several numbers in [0, 1] that sum to 1 within rounding.

    Arrays and files are looked at, block by block up to the first that is none; what is computed or can be read once
    only is not. An error of reading is left to the pass that follows.
    """
    if isinstance(likelihood, likelihoods.ProductLikelihood):
        for factor in likelihood.factors:
            _warn_of_probabilities(factor)
        return
    if not isinstance(likelihood, DenseLikelihood) or not likelihood.log:
        return
    values = likelihood.values
    if callable(values) or hasattr(values, "__next__"):
        return
    numbers = isinstance(values, np.ndarray) and values.dtype.kind in "fiu" and values.size > 0
    if numbers and not 0.0 <= values.flat[0] <= 1.0:  # the usual case, at once
        return
    total, tolerance = 0.0, 0.0
    try:
        source = source_of("likelihood", values)
        count = source.known_length()
        for start in range(0, count, BLOCK):
            block = source.take(start, min(start + BLOCK, count))
            if not ((block >= 0.0) & (block <= 1.0)).all():
                return
            total += float(np.sum(block, dtype=np.float64))
            tolerance = validate.sum_tolerance(block.dtype)
    except (OSError, TypeError, ValueError, ImportError):
        return
    if count > 1 and abs(total - 1.0) <= tolerance:
        warned(
            f"likelihood must hold natural logarithms; got {count} numbers in [0, 1] that sum to 1, as probabilities "
            "do. Pass log=False (--plain) if they are probabilities. If they are logarithms, subtract 1 from each: "
            "only the evidence changes, and this warning is not given.", UserWarning,
        )
