"""``certificate``: an answer with what another program needs to prove it; ``tools/checker`` is such a program."""

from __future__ import annotations

import inspect
import json
import math
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from ..base import validate
from ..base.errors import DomainError
from ..base.estimate import Estimate
from ..base.files import write_text
from ..capacity import awgn_capacity, bac_capacity, channel_capacity
from ..composition.compositions import Composition
from ..distributions import GaussianMixture
from ..divergences import hockey_stick_divergence, jensen_shannon, kl_divergence, renyi_divergence, total_variation
from ..pairs.mixture_pairs import MixturePair
from ..pairs.protocol import DominatingPair
from ..posteriors.bayes import posterior

_Parts = tuple[dict[str, Any], dict[str, Any]]  # inputs of a statement, and hints that make its check cheap
_COMPOSED = ("delta", "log_delta", "epsilon")  # methods of a composition that have certificates
# Numbers of a posterior; its other ones are functions of these.
_OF_POSTERIOR = ("log_evidence", "entropy", "kl", "js", "max_log_ratio", "min_log_ratio", "vulnerability")


class Certificate(dict[str, Any]):
    """A statement with its bounds as a value of plain types: ``json.dumps`` takes it.

    Parameters
    ----------
    statement : mapping
        ``quantity``, ``inputs``, ``bounds``, ``hints``, and the ``format`` of the file with its ``version``.
    answer : optional
        What the function returned; no part of the file.

    Examples
    --------
    >>> from fastpriv import bac_capacity, certificate
    >>> certificate(bac_capacity, 0.25, 0.5)["inputs"]
    {'a': '0x1.0000000000000p-2', 'b': '0x1.0000000000000p-1'}
    """

    def __init__(self, statement: Mapping[str, Any], answer: Any = None) -> None:
        super().__init__(statement)
        self.answer = answer

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the JSON file that a checker reads."""
        return write_text(path, json.dumps(self, indent=1) + "\n")


def certificate(function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Certificate:
    """Call a function, and return its answer as a statement that another program can prove.

    An answer does not hold the numbers it was computed from: the function and its arguments are passed here, in place
    of a method of the answer.

    Parameters
    ----------
    function : callable
        ``kl_divergence``, ``jensen_shannon``, ``renyi_divergence``, ``hockey_stick_divergence`` or ``total_variation``,
        of Gaussian mixtures in one dimension; ``channel_capacity`` of rows of probabilities, ``bac_capacity`` or
        ``awgn_capacity`` in one dimension; ``posterior`` of arrays; or the method ``delta``, ``log_delta`` or
        ``epsilon`` of a composition of Gaussian noise, also Poisson-sampled, Laplace noise and vectors of
        probabilities.
    *args, **kwargs
        The arguments of the function. Each number that the answer depends on is one double.

    Returns
    -------
    Certificate
        A dictionary with ``inputs``, ``bounds`` (lower, upper and unit of each number) and ``hints``, numbers as
        ``float.hex`` writes them. Its attribute ``answer`` is what the function returned, ``save(path)`` writes it.

    Raises
    ------
    DomainError
        For functions and arguments that certificates do not cover, and for answers that are not proved: sampled,
        heuristic, or infinite ones.

    Notes
    -----
    ``python -m fastpriv.checker FILE`` proves such a file with ball arithmetic, or refuses it; it shares no code with
    this package, and its README says what is proved of each kind.

    **Accuracy** certificates of all kinds are proved, and false ones refused, by ``tests/contracts/test_checker.py``.

    Examples
    --------
    >>> from fastpriv import GaussianMixture, certificate, kl_divergence
    >>> p, q = GaussianMixture([0.5, 0.5], [0.0, 1.0], 1.0), GaussianMixture.single(0.0, 1.0)
    >>> statement = certificate(kl_divergence, p, q, unit="bits")
    >>> statement["quantity"], statement["bounds"]["kl_divergence"][2], statement.answer.upper
    ('kl_divergence', 'bits', 0.1999...)
    """
    name, composition = getattr(function, "__name__", ""), getattr(function, "__self__", None)
    readers = [reader for covered, reader in _READERS if covered is function]
    if isinstance(composition, Composition) and name in _COMPOSED:
        readers = [_of_composition]
    if not readers:
        raise DomainError(
            f"function must be one whose answers have certificates; got {validate.shown(function)}. Pass one of "
            f"{', '.join(known.__name__ for known, _ in _READERS)}, or {', '.join(_COMPOSED)} of a composition."
        )
    answer = function(*args, **kwargs)
    bound = inspect.signature(function).bind(*args, **kwargs)
    bound.apply_defaults()
    names = _OF_POSTERIOR if function is posterior else (name,)
    bounds = {key: _bounds(key, getattr(answer, key, getattr(answer, "capacity", answer))) for key in names}
    inputs, hints = readers[0]({"composition": composition, **bound.arguments}, answer)
    statement = {"format": "fastpriv certificate", "version": 1, "quantity": name, "inputs": inputs}
    return Certificate(statement | {"bounds": bounds, "hints": hints}, answer)


def _bounds(name: str, estimate: Estimate) -> list[str]:
    """Lower and upper bound and unit of a proved number."""
    if not isinstance(estimate, Estimate) or estimate.kind not in ("exact", "certified"):
        raise DomainError(
            f"function must return proved bounds; got {name} {validate.shown(estimate)}. Pass certified=True, or ask "
            "for what needs no sampling."
        )
    if estimate.shape != () or not all(map(math.isfinite, estimate.floats())):
        _not_covered(name, estimate, "one finite number a call")
    return [float(estimate.lower).hex(), float(estimate.upper).hex(), estimate.unit]


def _not_covered(name: str, value: Any, covered: str) -> NoReturn:
    raise DomainError(f"{name} must be {covered} for a certificate; got {validate.shown(value)}. Pass that alone.")


def _hex(name: str, numbers: Any) -> Any:
    """Doubles as texts, in lists of the shape of an array."""
    values = np.asarray(numbers)
    if values.dtype.kind not in "iuf" or not (np.isfinite(values) & (values.astype(np.float64) == values)).all():
        _not_covered(name, numbers, "made of finite doubles")
    return [_hex(name, item) for item in values] if values.ndim else float(values).hex()


def _arguments(arguments: Mapping[str, Any], *names: str) -> dict[str, Any]:
    return {name: _hex(name, arguments[name]) for name in names}


def _mixture(name: str, mixture: Any) -> dict[str, Any]:
    if not isinstance(mixture, GaussianMixture) or mixture.dimension != 1:
        _not_covered(name, mixture, "a GaussianMixture in one dimension")
    return {key: _hex(name, getattr(mixture, key)) for key in ("weights", "means", "sigmas")}


def _of_divergence(arguments: Mapping[str, Any], answer: Any) -> _Parts:
    numbers = _arguments(arguments, *(name for name in ("epsilon", "order") if name in arguments))
    return {name: _mixture(name, arguments[name]) for name in ("p", "q")} | numbers, {}


def _of_channel(arguments: Mapping[str, Any], answer: Any) -> _Parts:
    if not isinstance(arguments["channel"], (list, np.ndarray)) or np.ndim(arguments["channel"]) != 2:
        _not_covered("channel", arguments["channel"], "an array with one row an input")
    hints = {"input": _hex("input", answer.input), "output": _hex("output", answer.output)}
    return {"rows": _hex("channel", arguments["channel"])}, hints


def _of_binary_channel(arguments: Mapping[str, Any], answer: Any) -> _Parts:
    if arguments["complement_a"] is not None or arguments["complement_b"] is not None:
        _not_covered("complement_a and complement_b", arguments, "None")
    return _arguments(arguments, "a", "b"), {}


def _of_peak_power(arguments: Mapping[str, Any], answer: Any) -> _Parts:
    if arguments["dimension"] != 1 or answer.method not in ("one sphere", "spheres by Newton's method"):
        _not_covered("dimension and method", (arguments["dimension"], answer.method), "1 and by single spheres")
    hints = {"radii": _hex("radii", answer.radii), "probabilities": _hex("probabilities", answer.probabilities)}
    return _arguments(arguments, "amplitude", "sigma"), hints


def _of_posterior(arguments: Mapping[str, Any], answer: Any) -> _Parts:
    likelihood, prior = arguments["likelihood"], arguments["prior"]
    if not isinstance(likelihood, (list, np.ndarray)) or not arguments["log"] or arguments["log_prior"] is not None:
        _not_covered("likelihood", likelihood, "an array of logarithms, with a prior of probabilities")
    prior = np.full(answer.size, 1.0 / answer.size) if prior is None else prior
    return {"log_likelihood": _hex("likelihood", likelihood), "prior": _hex("prior", prior)}, {}


def _of_composition(arguments: Mapping[str, Any], answer: Any) -> _Parts:
    directions = arguments["composition"]._directions(arguments["direction"])
    if any(pairs.dominated for pairs in directions):
        _not_covered("composition", arguments["composition"], "known by its pairs, not by pairs above and below it")
    releases = [[_release(pair) | {"count": pair.count} for pair in pairs.dominating] for pairs in directions]
    return {"directions": releases} | _arguments(arguments, "epsilon" if "epsilon" in arguments else "delta"), {}


def _release(pair: DominatingPair) -> dict[str, Any]:
    """One kind of release, in the words of the checker."""
    if pair.laplace is not None:
        return {"kind": "laplace", "scale": _hex("scale", pair.laplace[0]), "shift": _hex("shift", pair.laplace[1])}
    if pair.atoms is not None:
        return {"kind": "atoms", "p": _hex("p", pair.atoms[0]), "q": _hex("q", pair.atoms[1])}
    if not isinstance(pair, MixturePair):
        _not_covered("release", pair, "Gaussian noise, Laplace noise, or two vectors of probabilities")
    if not pair.rate:
        return {"kind": "mixtures", "p": _mixture("p", pair.p), "q": _mixture("q", pair.q)}
    noise = pair.p if len(pair.p) == 2 else pair.q
    return {"kind": "sampled_gaussian", "rate": _hex("rate", pair.rate), "distance": _hex("distance", noise.means[1]),
            "sigma": _hex("sigma", noise.sigmas[1]), "removes": noise is pair.p}


# Functions whose answers have certificates, and what reads their arguments.
_READERS: list[tuple[Callable[..., Any], Callable[[Mapping[str, Any], Any], _Parts]]] = [
    (kl_divergence, _of_divergence), (jensen_shannon, _of_divergence), (renyi_divergence, _of_divergence),
    (hockey_stick_divergence, _of_divergence), (total_variation, _of_divergence), (channel_capacity, _of_channel),
    (bac_capacity, _of_binary_channel), (awgn_capacity, _of_peak_power), (posterior, _of_posterior),
]
