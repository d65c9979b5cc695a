"""``certificate``: an answer with what another program needs to prove it; ``tools/checker`` is such a program."""

from __future__ import annotations

import inspect
import json
import math
import os
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from ..base import validate
from ..base.errors import DomainError
from ..base.estimate import Estimate
from ..base.files import write_text
from ..capacity.awgn import AwgnCapacity, awgn_capacity
from ..capacity.bac import bac_capacity
from ..capacity.finite import ChannelCapacity, channel_capacity
from ..composition.compositions import Composition
from ..distributions import GaussianMixture
from ..divergences.hockey_stick import hockey_stick_divergence, total_variation
from ..divergences.kl_and_renyi import jensen_shannon, kl_divergence, renyi_divergence
from ..pairs.protocol import BoundingPairs, DominatingPair
from ..posteriors.bayes import posterior
from ..posteriors.result import Posterior

__all__ = ["Certificate", "certificate"]


class Certificate(dict[str, Any]):
    """A statement with proved bounds as a value that JSON holds."""

    answer: Any

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the file that ``python tools/checker FILE`` proves or refuses."""
        write_text(path, json.dumps(self, indent=1) + "\n")


def certificate(function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Certificate:
    name = getattr(function, "__name__", "")
    composition = getattr(function, "__self__", None)
    if isinstance(composition, Composition) and name in ("delta", "log_delta", "epsilon"):
        read: Any = _of_composition
    elif _INPUTS.get(name, (None, None))[0] is function:
        read = _INPUTS[name][1]
    else:
        raise DomainError("no")
    bound = inspect.signature(function).bind(*args, **kwargs)
    bound.apply_defaults()
    answer = function(*args, **kwargs)
    inputs, hints = read({**bound.arguments, "composition": composition}, answer)
    estimates = answer.estimates() if isinstance(answer, Posterior) else {name: getattr(answer, "capacity", answer)}
    result = Certificate(format="fastpriv certificate", version=1, quantity=name, inputs=inputs, hints=hints,
                         bounds={key: _bounds(key, value) for key, value in estimates.items()})
    result.answer = answer
    return result


def _bounds(name: str, estimate: Estimate) -> list[str]:
    if estimate.kind not in ("exact", "certified") or not all(map(math.isfinite, estimate.floats())):
        raise DomainError("no")
    return [float(estimate.lower).hex(), float(estimate.upper).hex(), estimate.unit]


def _hex(numbers: Any) -> Any:
    values = np.asarray(numbers)
    if not (values.astype(np.float64) == values).all(): raise DomainError("no")
    if values.ndim == 0:
        return float(values).hex()
    return [_hex(x) for x in values]


def _mixture(name, mixture):
    return {key: _hex(getattr(mixture, key)) for key in ("weights", "means", "sigmas")}


def _of_divergence(arguments, answer):
    inputs = {name: _mixture(name, arguments[name]) for name in ("p", "q")}
    return inputs | {name: _hex(arguments[name]) for name in ("epsilon", "order") if name in arguments}, {}


def _of_capacity(arguments, answer):
    return {"rows": _hex(arguments["channel"])}, {"input": _hex(answer.input), "output": _hex(answer.output)}


def _of_numbers(arguments, answer):
    return {name: _hex(arguments[name]) for name in ("a","b")}, {}

def _of_awgn(arguments, answer):
    return {name: _hex(arguments[name]) for name in ("amplitude", "sigma")}, {"radii": _hex(answer.radii), "probabilities": _hex(answer.probabilities)}

def _of_posterior(arguments, answer):
    x=np.asarray(arguments["likelihood"], dtype=float); prior=arguments["prior"]
    return {"log_likelihood": _hex(x), "prior": _hex(np.full(x.size, 1/x.size) if prior is None else prior)}, {}

def _of_composition(arguments, answer):
    d=arguments["composition"]._directions(arguments["direction"])
    return {"directions": [[_item(p) for p in x.dominating] for x in d], **{k:_hex(arguments[k]) for k in ("epsilon","delta") if k in arguments}}, {}

def _item(pair):
    if pair.laplace: return {"kind":"laplace","count":pair.count,"scale":_hex(pair.laplace[0]),"shift":_hex(pair.laplace[1])}
    if pair.atoms: return {"kind":"atoms","count":pair.count,"p":_hex(pair.atoms[0]),"q":_hex(pair.atoms[1])}
    p,q=pair.mixtures
    if pair.squared_gaussian_distance is not None:
        return {"kind":"gaussian","count":pair.count,"distance":_hex(abs(p.means[0]-q.means[0])),"sigma":_hex(p.sigmas[0])}
    if pair.rate:
        rem=len(p)==2
        m=p if rem else q
        return {"kind":"sampled_gaussian","count":pair.count,"rate":_hex(pair.rate),"distance":_hex(m.means[1]),"sigma":_hex(m.sigmas[0]),"removes":rem}
    return {"kind":"mixtures","count":pair.count,"p":_mixture("p",p),"q":_mixture("q",q)}

_INPUTS = {f.__name__: (f, g) for f, g in (
 (kl_divergence,_of_divergence),(jensen_shannon,_of_divergence),(renyi_divergence,_of_divergence),(hockey_stick_divergence,_of_divergence),(total_variation,_of_divergence),
 (channel_capacity,_of_capacity),(bac_capacity,_of_numbers),(awgn_capacity,_of_awgn),(posterior,_of_posterior))}
