"""What a proof says, the statement of the header that it supports, and the helpers that all proofs share."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from c_source import Execution, Node, tokens
from flint import arb
from programs import ProofError

U = 2.0**-53


@dataclass(frozen=True)
class Proved:
    """A bound that is proved: ``pattern`` finds the number in the text of the header that must be no smaller."""

    header: str
    name: str
    pattern: str
    bound: float
    what: str

    def stated(self, root: Path) -> float:
        """The bound that the header states."""
        text = " ".join(re.sub(r"\n \* ?", " ", (root / "csrc" / self.header).read_text()).split())
        found = re.findall(self.pattern, text)
        if len(found) != 1:
            raise ProofError(f"csrc/{self.header} must state the bound of {self.name} once, as /{self.pattern}/")
        base, power, exponent = re.fullmatch(r"([\d.]+(?:e-?\d+)?)(\^(-?[\d.]+))?", found[0].rstrip(".,;")).groups()
        return float(base) ** float(exponent) if power else float(base)

    def check(self, root: Path) -> float:
        """The stated bound, unless it is smaller than what is proved."""
        stated = self.stated(root)
        if not self.bound <= stated:
            raise ProofError(f"csrc/{self.header} states {stated:.4g} for {self.name} ({self.what}); "
                             f"proved is {self.bound:.4g}")
        return stated


def require(condition: bool, sentence: str) -> None:
    """Raise unless what a proof rests on is as it should be."""
    if not condition:
        raise ProofError(sentence)


def expect(execution: Execution, label: str, text: str, **scope: Any) -> Any:
    """A variable must be defined by this expression of C, on which the proof rests; return its tree."""
    expected = Execution(execution.source, execution.replace).expression(tokens(text), scope)
    if execution.definitions.get(label) != expected:
        raise ProofError(f"{label} must be {text}: the proof rests on this expression")
    return expected


def expect_result(execution: Execution, text: str, **scope: Any) -> None:
    """The same of what a function returns."""
    execution.definitions["result"] = execution.result
    expect(execution, "result", text, **scope)


def variable(name: str) -> Node:
    """An input."""
    return Node("input", (name,))


def pieces(low: float, high: float, count: int) -> Iterator[tuple[float, float]]:
    """Equal parts of an interval, with doubles as ends."""
    ends = [low, *(low + (high - low) * i / count for i in range(1, count)), high]
    yield from itertools.pairwise(ends)


def binades(high: float, low: float, count: int) -> Iterator[tuple[float, float]]:
    """Parts of [low, high], 0 < low < high, cut at the powers of two and each binade into equal parts."""
    while high > low:
        below = max(low, math.ldexp(1.0, math.frexp(math.nextafter(high, 0.0))[1] - 1))
        yield from pieces(below, high, count)
        high = below


def ulp_at(y: Any) -> float:
    """The unit in the last place at the smallest magnitude in a ball."""
    bound = y.abs_lower()
    least = float(bound)
    least = least if arb(least) <= bound else math.nextafter(least, 0.0)
    require(least > 0.0, "an ulp of zero")
    return math.ulp(least)


def ball(low: float, high: float) -> Any:
    """The ball that covers an interval."""
    return arb(low).union(arb(high))
