"""python tools/checker FILE: prove the statement of a certificate of fastpriv, with balls alone.

It is installed as ``python -m fastpriv.checker FILE``.
"""

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))  # the modules beside this one, as of a directory that is run
try:
    from flint import arb
except ModuleNotFoundError:
    sys.exit("python-flint must be installed to prove a certificate. Run: pip install python-flint")

import capacities
import compositions
import mixtures
from balls import RefusedError, decide, number, require
from mixtures import Mixture
from posteriors import posterior

INFINITY = float("inf")
UNITS = {
    "hockey_stick_divergence": "probability", "total_variation": "probability", "delta": "probability",
    "log_delta": "log probability", "vulnerability": "probability",
}


def _ball(quantity, name, inputs, hints, width, high):
    """The quantity in nats or as a probability; ``high`` is its upper bound."""
    if quantity in ("delta", "log_delta"):
        width = width * high.exp() / 2 if quantity == "log_delta" else width
        value = compositions.largest_delta(inputs, number(inputs["epsilon"]), width)
        return value.log() if quantity == "log_delta" else value
    if quantity in ("channel_capacity", "bac_capacity", "awgn_capacity"):
        return getattr(capacities, quantity)(inputs, hints, width, high)
    if quantity == "posterior":
        return posterior(inputs, name)
    as_they_are = quantity in ("hockey_stick_divergence", "total_variation")
    p, q = (Mixture.read(inputs[side], not as_they_are) for side in "pq")
    epsilon = number(inputs.get("epsilon", "0x0p+0"))
    if inputs["p"] == inputs["q"] and epsilon >= 0:
        return arb(0)
    if quantity == "renyi_divergence":
        return mixtures.renyi_divergence(p, q, number(inputs["order"], positive=True), width, high)
    if as_they_are:
        return mixtures.hockey_stick(p, q, epsilon, width)
    return {"kl_divergence": mixtures.kl_divergence, "jensen_shannon": mixtures.jensen_shannon}[quantity](p, q, width)


def check(certificate):
    """The names of what is proved; raises RefusedError."""
    is_known = certificate["format"] == "fastpriv certificate" and certificate["version"] == 1
    require(is_known and certificate["bounds"], "a file must have format 'fastpriv certificate', version 1, and bounds")
    quantity, inputs, hints = certificate["quantity"], certificate["inputs"], certificate["hints"]
    for name, (lower, upper, unit) in certificate["bounds"].items():
        low, high, in_bits = number(lower), number(upper), unit == "bits" and quantity not in ("epsilon", "posterior")
        require(name == quantity or quantity == "posterior", f"bounds of {name} do not belong to {quantity}")
        require(unit == UNITS.get(name, "bits" if in_bits else "nats"), f"{name}: the unit must not be {unit!r}")
        require(low <= high, f"{name}: the lower bound must be at most the upper one")
        if quantity == "epsilon":
            compositions.decide_epsilon(inputs, low, high)
            continue

        def ball(width, name=name, high=high, in_bits=in_bits):
            scale = arb(2).log() if in_bits else arb(1)
            return _ball(quantity, name, inputs, hints, width, high * scale) / scale

        ranges = {"probability": (0, 1), "log probability": (-INFINITY, 0)}
        decide(name, ball, low, high, ranges.get(unit, (-INFINITY if "log" in name else 0, INFINITY)))
    return list(certificate["bounds"])


def main(path):
    """Print the verdict, and return the exit status: 0 for a proved certificate, 1 for any other."""
    try:
        with open(path, encoding="utf-8") as stream:
            names = check(json.load(stream))
    except RefusedError as error:
        print(f"refused: {error}")
    except Exception as error:  # whatever else is wrong with the file
        print(f"refused: this is no certificate: {type(error).__name__}: {error}")
    else:
        print(f"verified: {', '.join(names)}")
        return 0
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]) if len(sys.argv) == 2 else "usage: python -m fastpriv.checker FILE")
