"""python tools/checker FILE: prove the statement of a certificate of fastpriv, with balls alone."""

import json
import sys

from flint import arb

import capacities
import compositions
import mixtures
from balls import RefusedError, decide, number, positive
from mixtures import Mixture
from posteriors import posterior

# quantity -> its ball in nats or as a probability, from the certificate, the tolerance and the upper bound
BALLS = {
    "kl_divergence": lambda inputs, hints, width, high: mixtures.kl_divergence(*_pair(inputs), width),
    "jensen_shannon": lambda inputs, hints, width, high: mixtures.jensen_shannon(*_pair(inputs), width),
    "renyi_divergence": lambda inputs, hints, width, high: mixtures.renyi_divergence(
        *_pair(inputs), positive(inputs["order"]), width, high),
    "hockey_stick_divergence": lambda inputs, hints, width, high: mixtures.hockey_stick(
        *_pair(inputs), number(inputs["epsilon"]), width),
    "total_variation": lambda inputs, hints, width, high: mixtures.hockey_stick(*_pair(inputs), arb(0), width),
    "delta": lambda inputs, hints, width, high: compositions.largest_delta(inputs, number(inputs["epsilon"]), width),
    "log_delta": lambda inputs, hints, width, high: compositions.largest_delta(
        inputs, number(inputs["epsilon"]), width * high.exp() / 2).log(),
    "channel_capacity": lambda inputs, hints, width, high: capacities.finite(inputs, hints),
    "bac_capacity": lambda inputs, hints, width, high: capacities.binary(inputs),
    "awgn_capacity": capacities.peak_power,
}
UNITS = {
    "hockey_stick_divergence": "probability", "total_variation": "probability", "delta": "probability",
    "log_delta": "log probability", "vulnerability": "probability", "abp": "1",
}


def _pair(inputs):
    return Mixture.read(inputs["p"]), Mixture.read(inputs["q"])


def check(certificate):
    """The names of what is proved; raises RefusedError."""
    if certificate["format"] != "fastpriv certificate" or certificate["version"] != 1:
        raise RefusedError("format must be 'fastpriv certificate', version 1")
    quantity, inputs, hints = certificate["quantity"], certificate["inputs"], certificate["hints"]
    if quantity not in (*BALLS, "epsilon", "posterior") or not certificate["bounds"]:
        raise RefusedError(f"quantity must be one that this checker knows, with bounds; got {quantity!r}")
    for name, (lower, upper, unit) in certificate["bounds"].items():
        low, high, in_bits = number(lower), number(upper), unit == "bits" and quantity not in ("epsilon", "posterior")
        if name != quantity and quantity != "posterior":
            raise RefusedError(f"bounds of {name} do not belong to {quantity}")
        if unit != UNITS.get(name, "bits" if in_bits else "nats") or not low <= high:
            raise RefusedError(f"{name}: bounds must be in order, and of a unit of this quantity; got {unit!r}")
        if quantity == "epsilon":
            compositions.decide_epsilon(inputs, low, high)
        elif quantity == "posterior":
            decide(name, lambda width, name=name: posterior(inputs, name), low, high)
        else:
            scale = arb(2).log if in_bits else lambda: arb(1)
            ball = lambda width, scale=scale, high=high: BALLS[quantity](inputs, hints, width, high * scale()) / scale()
            decide(name, ball, low, high)
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
    sys.exit(main(sys.argv[1]) if len(sys.argv) == 2 else "usage: python tools/checker FILE")
