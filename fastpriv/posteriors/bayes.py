"""The posterior over a discrete domain after one release: one function, a way for each kind of likelihood.

Each way is a module of this room, or of one within, with one function
``posterior(likelihood, prior, options) -> Posterior``.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from .. import _parallel, _validate
from ..channels.likelihoods.kinds import (
    DefaultLikelihood,
    DenseLikelihood,
    IndexLikelihood,
    Likelihood,
    ProductLikelihood,
    as_likelihood,
)
from ..channels.likelihoods.subsets import SubsetLikelihood
from ..errors import DomainError
from .dense.streams import Mode
from .result import Options, Posterior

__all__ = ["posterior", "posterior_mode"]

# kind of likelihood -> module of this room; loaded on first use
WAYS: dict[type[Likelihood], str] = {
    DefaultLikelihood: "implicit.defaults", ProductLikelihood: "implicit.products",
    IndexLikelihood: "implicit.indices", SubsetLikelihood: "subsets", DenseLikelihood: "dense.streams",
}  # fmt: skip


def posterior(
    likelihood: Any, prior: Any = None, *, log: bool = True, log_prior: Any = None, top: int = 10, out: Any = None,
    memory: int | None = None, n_jobs: int | None = None, progress: Any = None, rng: Any = None,
    resume: Any = None,
) -> Posterior:  # fmt: skip
    """What one release does to beliefs about the secret.

    Parameters
    ----------
    likelihood : Likelihood, array_like, path-like, (path, column), callable, Exceptions or Factors
        Log likelihoods of the release under every secret: any ``Likelihood``; what a channel's ``column(release)``
        returns; or what ``DenseLikelihood`` takes.
    prior : optional
        None is the uniform law. Otherwise probabilities, in a form that depends on the likelihood: for dense ones an
        array or any source that ``DenseLikelihood`` takes; for a ``DefaultLikelihood`` an array of shape (size,), or a
        ``DefaultLikelihood`` of log probabilities, one for all secrets but those that are listed; for a
        ``ProductLikelihood`` a sequence with the prior of each factor, or of each coordinate (secrets are then
        independent a priori); for an ``IndexLikelihood`` an array, or a vectorised function from indices to
        probabilities; for a ``SubsetLikelihood`` an array of shape (n,) of odds: the prior of a subset is proportional
        to the product of the odds of its members.
    log : bool, optional
        Whether a dense likelihood that is no ``Likelihood`` holds natural logarithms.
    log_prior : optional
        Natural logarithms of the prior instead of ``prior``, in the same forms.
    top : int, optional
        How many of the most probable secrets to report.
    out : ndarray of float64 or path-like, optional
        Where to write all posterior probabilities: an array of shape (size,), or a ``.npy`` file.
    memory : int, optional
        Bytes of working memory, where a likelihood that is not dense needs more than a few blocks.
    n_jobs : int, optional
        Threads; the same bits for any number. None means what ``joblib.parallel_config`` says.
    progress : bool or callable, optional
        A bar, or a function called with the number of blocks done and the total.
    rng : None, int, sequence of int, SeedSequence, BitGenerator or Generator, optional
        For domains that can only be sampled.
    resume : optional
        What an error or an interruption of an earlier call with the same arguments carries as its attribute ``best``:
        goes on after the last block that was done. A function is read again up to there; an iterator must start there.

    Returns
    -------
    Posterior
        Evidence, entropy, divergences, log ratios, the most probable secrets, each with bounds.

    Raises
    ------
    DomainError, ShapeError
        For likelihoods and priors that are none; the message names block and index. For files that end early or change
        while they are read, and functions that yield something else the second time.
    NotConvergedError
        If a function that yields likelihoods or the prior raises; its attribute ``best`` goes to ``resume=``. So does
        that of any other error or ``KeyboardInterrupt`` once reading has begun. Where a domain is sampled, ``best`` of
        a ``KeyboardInterrupt`` is the Posterior that the draws so far tell, if they are enough.
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
    >>> found = posterior(np.log([0.5, 0.25]), [0.2, 0.8])
    >>> found.top.indices, found.top.probabilities
    (array([1, 0]), array([0.66666667, 0.33333333]))
    """
    _parallel.checked(n_jobs, progress)
    belief = _belief(prior, log_prior)
    options = Options(
        _validate.count("top", top, 0), out, None if memory is None else _validate.count("memory", memory), n_jobs,
        progress, log_prior is not None, rng, resume,
    )  # fmt: skip
    given = _told(likelihood, log)
    way = next((way for kind, way in WAYS.items() if isinstance(given, kind)), "dense.streams")
    found: Posterior = import_module(f".{way}", __package__).posterior(given, belief, options)
    return found


def posterior_mode(
    likelihood: Any, prior: Any = None, *, log: bool = True, log_prior: Any = None, n_jobs: int | None = None,
    progress: Any = None,
) -> Mode:  # fmt: skip
    """The most probable secret, and nothing else: one pass at the pace of the memory.

    Parameters
    ----------
    likelihood : DenseLikelihood, array_like, path-like, (path, column), or callable
        Log likelihoods of the release under every secret.
    prior : optional
        None is the uniform law; otherwise probabilities, which need not sum to 1, as ``DenseLikelihood`` takes them.
    log : bool, optional
        Whether a likelihood that is no ``DenseLikelihood`` holds natural logarithms.
    log_prior : optional
        Natural logarithms of the prior instead of ``prior``.
    n_jobs : int, optional
        Threads. None means what ``joblib.parallel_config`` says.
    progress : bool or callable, optional
        A bar, or a function called with the number of blocks done and the total.

    Returns
    -------
    Mode
        ``index``, the lowest on ties; ``log_weight``, log of prior times likelihood, which under a uniform prior is the
        log likelihood; ``max_log_likelihood`` and ``min_log_likelihood`` over secrets of positive prior.

    Raises
    ------
    DomainError, ShapeError
        As ``posterior``, and for likelihoods that are not dense.

    Notes
    -----
    **Accuracy** exact under a uniform prior; else ties are decided within rounding of the log weights;
    ``tests/enclosures/test_posterior.py``.

    Source: maximum a posteriori estimation.

    Examples
    --------
    >>> from fastpriv import posterior_mode
    >>> posterior_mode([-2.0, -0.5, -1.0], [0.8, 0.1, 0.1]).index
    0
    """
    _parallel.checked(n_jobs, progress)
    from .dense import streams

    given = _told(likelihood, log)
    if not isinstance(given, DenseLikelihood):
        raise DomainError(
            f"likelihood must be dense for its mode alone; got {_validate.shown(likelihood)}. Use fastpriv.posterior."
        )
    options = Options(n_jobs=n_jobs, progress=progress, log_prior=log_prior is not None)
    return streams.mode(given, _belief(prior, log_prior), options)


def _told(likelihood: Any, log: bool) -> Likelihood:
    """What people give as a likelihood; ``log`` speaks of what is none yet."""
    given = as_likelihood(likelihood)
    plain = given is not likelihood and isinstance(given, DenseLikelihood)
    return DenseLikelihood(likelihood, log=log) if plain else given


def _belief(prior: Any, log_prior: Any) -> Any:
    if prior is not None and log_prior is not None:
        raise DomainError("prior and log_prior must not both be given; got two priors. Pass one of them.")
    return prior if log_prior is None else log_prior
