"""Write the truth tables: ``python tests/oracles/make_truth.py [hockey_stick|integrals|notions|awgn_capacity ...]``.

The tables hold decimal strings of at least 34 correct digits, so that the tests read hundreds of rows in no time;
another test recomputes some of them. Beside the rows stand their inputs as hexadecimal doubles; a table written again
keeps the inputs that it has.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import mpmath
from flint import ctx

from oracles import mixture
from oracles.awgn_rows import awgn_capacity
from oracles.contours import contour_inputs, contours
from oracles.mixture_pairs import pair_to_text, pairs, prior_to_text, priors
from oracles.pairs_nd import cases, law_to_text
from oracles.tables import write
from oracles.truth import INTEGRALS, LEFT_OUT, NOTION_EPSILONS, NOTION_SIGMAS, decimal, integral_pairs

BITS = 120


def hockey_row(first, second, epsilon):
    """[H, log H] as strings; "0" and "-inf" for an exact zero, "<1e-200" where f only touches zero, ">-1e-200" near
    0."""
    value = mixture.hockey_stick(first, second, epsilon, BITS)
    if value.is_zero():
        return ["0", "-inf"]
    if value.contains(0):
        return ["<1e-200", "<-460"]
    ctx.prec = 1024
    log, bits = value.log(), BITS
    while log.rel_accuracy_bits() < BITS - 8:  # H so near 1 that its logarithm is nearly zero
        bits *= 2
        if bits > 1000 and log > -1e-200:
            return [decimal(value), ">-1e-200"]
        log = mixture.hockey_stick(first, second, epsilon, bits).log()
    return [decimal(value) if log > -800 else "tiny", decimal(log)]


def hockey_stick():
    """Every pair, both directions, its own grid of epsilon."""
    for pair in pairs():
        for direction, (first, second) in (("PQ", (pair.p, pair.q)), ("QP", (pair.q, pair.p))):
            for epsilon in pair.grid:
                yield [pair.name, direction, float(epsilon).hex(), *hockey_row(first, second, float(epsilon))]


def integrals():
    """KL both ways, JS, entropy and Renyi divergences."""
    for pair in integral_pairs():
        for name, compute in INTEGRALS.items():
            if (pair.name, name) not in LEFT_OUT:
                value = compute(mixture, pair)
                ctx.prec = 256
                yield [pair.name, name, "inf" if not value.is_finite() else decimal(value)]


def notions():
    """LIP curves and mutual information of the priors."""
    for name, prior in priors().items():
        for sigma in NOTION_SIGMAS:
            ctx.prec = 256
            yield [name, "mutual_information", sigma.hex(), "", decimal(mixture.mutual_information(prior, sigma, BITS))]
            for epsilon in NOTION_EPSILONS:
                value, (index, direction) = mixture.lip_delta(prior, sigma, epsilon, BITS)
                ctx.prec = 256
                log = "-inf" if value.is_zero() else decimal(value.log())
                yield [name, "log_lip_delta", sigma.hex(), float(epsilon).hex(), log, index, direction]


def mixtures_nd():
    """[case, quantity, order or epsilon, value, error]: everything that is known of the pairs in d dimensions."""
    for name, case in cases().items():
        for quantity, parameter, compute in case.truths:
            value, error = compute()
            text = mpmath.nstr(value, 20) if error < 1e-16 else mpmath.nstr(value, 17)
            yield [name, quantity, "" if parameter is None else float(parameter).hex(), text, f"{float(error):.2g}"]


def said(rows):
    """The rows, each printed when it is known."""
    for row in rows:
        print(*row, flush=True)
        yield row


def pair_inputs():
    return {pair.name: pair_to_text(pair) for pair in pairs()}


def prior_inputs():
    return {name: prior_to_text(prior) for name, prior in priors().items()}


def law_inputs():
    return {name: {"p": law_to_text(case.p), "q": law_to_text(case.q)} for name, case in cases().items()}


# name -> rows and inputs; the inputs of the peak-power capacity stand in its rows
TABLES = {
    "hockey_stick": (hockey_stick, pair_inputs),
    "integrals": (integrals, pair_inputs),
    "notions": (notions, prior_inputs),
    "awgn_capacity": (awgn_capacity, dict),
    "mixtures_nd": (mixtures_nd, law_inputs),
    "contours": (contours, contour_inputs),
}

if __name__ == "__main__":
    for name in sys.argv[1:] or TABLES:
        rows, inputs = TABLES[name]
        write(name, list(said(rows())), inputs())
