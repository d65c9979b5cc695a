"""Tables of the steps of a composition: what kind of release, with which parameters, how often.

A table is a CSV file whose first line names the columns, or a TOML file with an entry ``[[step]]`` for each step:

    kind,sigma,rate,count             [[step]]
    sampled_gaussian,1.1,0.01,3000    kind = "sampled_gaussian"
    gaussian,8,,1                     sigma = 1.1
                                      rate = 0.01
                                      count = 3000

``kind`` is one of ``KINDS``; the other columns are its parameters, empty where a kind has none or where the default is
meant. ``count`` is 1 by default. Lines that are blank or begin with # are skipped.
"""

from __future__ import annotations

import csv
import math
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from ..base import validate
from ..base.errors import DomainError, ShapeError
from ..base.files import parse_toml

__all__ = ["KINDS", "ComposedStep", "make_step", "read_steps"]


@dataclass(frozen=True)
class ComposedStep:
    """A step of a table: its kind, all parameters of the kind, and how often it is taken."""

    kind: str
    parameters: dict[str, Any]
    count: int
    folder: Path = Path()

    def pair(self) -> Any:
        """The mechanism, or the pair of distributions, that ``compose`` takes."""
        return KINDS[self.kind].make(self.folder, **self.parameters)


class StepKind(NamedTuple):
    """Parameters of a kind of step with their defaults, None where there is none, and what makes its pair of them."""

    parameters: Mapping[str, Any]
    make: Callable[..., Any]


def _gaussian(folder: Path, sigma: float, sensitivity: float) -> Any:
    from ..mechanisms import GaussianMechanism

    return GaussianMechanism(sigma, sensitivity)


def _sampled_gaussian(folder: Path, sigma: float, rate: float, sensitivity: float, group_size: float) -> Any:
    from ..mechanisms import PoissonSampledGaussian

    return PoissonSampledGaussian(sigma, rate, sensitivity, _whole(group_size))


def _laplace(folder: Path, scale: float, sensitivity: float) -> Any:
    from ..mechanisms import LaplaceMechanism

    return LaplaceMechanism(scale, sensitivity)


def _randomized_response(folder: Path, epsilon: float, k: float) -> Any:
    from ..mechanisms import RandomizedResponse

    return RandomizedResponse(_whole(k), epsilon)


def _approximate_dp(folder: Path, epsilon: float, delta: float) -> Any:
    """Of all (epsilon, delta) private mechanisms, the pair that dominates (Kairouz, Oh and Viswanath 2015, eq. 18)."""
    level = validate.scalar("epsilon", epsilon, "at least 0 and finite", lambda x: (x >= 0) & (x < math.inf))
    infinite = validate.scalar("delta", delta, "from 0 to below 1", lambda x: (x >= 0) & (x < 1))
    odds = 1.0 / (1.0 + math.exp(-level))
    likely, unlikely = (1.0 - infinite) * odds, (1.0 - infinite) * math.exp(-level) * odds
    return [infinite, likely, unlikely, 0.0], [0.0, unlikely, likely, infinite]


def _mixtures(folder: Path, p: str, q: str) -> Any:
    from ..distributions.files import read_mixture

    return tuple(read_mixture(folder / name) for name in (p, q))


def _discrete(folder: Path, p: Any, q: Any) -> Any:
    pair = []
    for name, given in (("p", p), ("q", q)):
        words = given.split() if isinstance(given, str) else given
        if not isinstance(words, list):
            raise DomainError(f"{name} must be a list of numbers; got {validate.shown(words)}. Write [0.25, 0.75].")
        pair.append(validate.probabilities(name, [_number(name, word) for word in words]))
    if pair[0].size != pair[1].size:
        raise DomainError(
            f"p and q must have one probability for each outcome; got {pair[0].size} and {pair[1].size}. Write 0 for "
            "an outcome that one of them does not have."
        )
    return tuple(pair)


# The kinds of steps by name. Scales of noise are in units of the release; epsilon is in nats.
KINDS: Mapping[str, StepKind] = {
    "gaussian": StepKind({"sigma": None, "sensitivity": 1.0}, _gaussian),
    "sampled_gaussian": StepKind(
        {"sigma": None, "rate": None, "sensitivity": 1.0, "group_size": 1}, _sampled_gaussian
    ),
    "laplace": StepKind({"scale": None, "sensitivity": 1.0}, _laplace),
    "randomized_response": StepKind({"epsilon": None, "k": 2}, _randomized_response),
    "approximate_dp": StepKind({"epsilon": None, "delta": 0.0}, _approximate_dp),
    "mixtures": StepKind({"p": None, "q": None}, _mixtures),
    "discrete": StepKind({"p": None, "q": None}, _discrete),
}  # fmt: skip
_TEXTS = ("p", "q")  # parameters that are not numbers
# The parameters of all kinds, which are the columns of a table besides kind and count.
_COLUMNS = tuple(dict.fromkeys(name for kind in KINDS.values() for name in kind.parameters))


def read_steps(path: str | os.PathLike[str]) -> list[ComposedStep]:
    """Read the steps of a table in a CSV or TOML file, by the ending of its name (.toml, else CSV).

    Raises
    ------
    DomainError
        For a table that is no table, or a step that is none; the text names the file, the line or entry, and the
        column.
    OSError
        When the file cannot be read.
    """
    file = validate.path("steps", path)
    read = _toml_entries if file.suffix.lower() == ".toml" else _csv_entries
    steps = []
    for place, entry in read(file):
        try:
            steps.append(make_step(entry, file.parent))
        except (DomainError, ShapeError, OSError) as error:
            raise DomainError(f"{place} must be a step; got an entry where {error}") from None
    if not steps:
        raise DomainError(f"{str(file)!r} must have at least one step; got none. Write kind,sigma,count and one line.")
    return steps


def make_step(entry: Mapping[str, Any], folder: Path = Path()) -> ComposedStep:
    """Make a step of a kind, its parameters and ``count``, each a number or its text; None and "" are left out."""
    given = {name: value for name, value in entry.items() if value is not None and value != ""}
    kind = given.pop("kind", None)
    if not isinstance(kind, str) or kind not in KINDS:
        raise DomainError(f"kind must be one of {', '.join(KINDS)}; got {validate.shown(kind)}. Choose one of them.")
    count = _whole_count(given.pop("count", 1))
    defaults = KINDS[kind].parameters
    for name in given:
        if name not in defaults:
            raise DomainError(
                f"{name} must be left empty for {kind}; got {validate.shown(given[name])}. It takes "
                f"{', '.join(defaults)} and count."
            )
    parameters = {}
    for name, default in defaults.items():
        value = given.get(name, default)
        if value is None:
            raise DomainError(f"{name} must be given for {kind}; got none. Fill its column.")
        parameters[name] = value if name in _TEXTS else _number(name, value)
    step = ComposedStep(kind, parameters, count, folder)
    step.pair()  # raises for parameters outside of their domains
    return step


def _csv_entries(file: Path) -> Iterator[tuple[str, dict[str, str]]]:
    """Each line of a CSV file by the names of its columns, and its place in words."""
    with open(file, newline="", encoding="utf-8-sig") as stream:
        try:
            lines = stream.read().splitlines()
        except UnicodeDecodeError as error:
            raise DomainError(f"{str(file)!r} must be text in UTF-8; got {error}. Save it as UTF-8.") from None
    numbered = [(k, line) for k, line in enumerate(lines, start=1) if line.strip() and not line.startswith("#")]
    if not numbered:
        return
    head = numbered[0][1]
    separator = max(",;\t", key=head.count)
    names = _cells(head, separator, f"line {numbered[0][0]} of {str(file)!r}")
    for name in names:
        if name not in ("kind", "count", *_COLUMNS):
            raise DomainError(
                f"columns of {str(file)!r} must be among kind, count, {', '.join(_COLUMNS)}; got "
                f"{validate.shown(name)}. Name each column in the first line."
            )
        if names.count(name) > 1:
            raise DomainError(f"columns of {str(file)!r} must have different names; got {name!r} twice. Leave one out.")
    for number, line in numbered[1:]:
        place = f"line {number} of {str(file)!r}"
        cells = _cells(line, separator, place)
        if len(cells) > len(names):
            raise DomainError(
                f"{place} must have {len(names)} cells, as the first; got {len(cells)}. Write one cell a column."
            )
        yield place, dict(zip(names, cells, strict=False))


def _cells(line: str, separator: str, place: str) -> list[str]:
    try:
        return [cell.strip() for cell in next(csv.reader([line], delimiter=separator))]
    except csv.Error as error:
        raise DomainError(f"{place} must be a line of CSV; got one that is none: {error}. Correct it.") from None


def _toml_entries(file: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Each entry ``[[step]]`` of a TOML file, and its place in words."""
    try:
        content = parse_toml(file.read_text(encoding="utf-8-sig"))
    except ValueError as error:
        raise DomainError(f"{str(file)!r} must be a TOML file; got {error}. Correct it.") from None
    entries = content.get("step")
    if set(content) != {"step"} or not isinstance(entries, list) or not all(isinstance(e, dict) for e in entries):
        raise DomainError(
            f"{str(file)!r} must have entries [[step]] and nothing else; got {validate.shown(list(content))}. "
            "Write [[step]] above the kind of each step."
        )
    for k, entry in enumerate(entries, start=1):
        yield f"step {k} of {str(file)!r}", entry


def _number(name: str, value: Any) -> float:
    if isinstance(value, str):
        try:
            return float(value)
        except ValueError:
            raise DomainError(f"{name} must be a number; got {value!r}. Write 0.5 or 1e-3.") from None
    return validate.scalar(name, value, "a number", lambda x: x == x)


def _whole_count(value: Any) -> int:
    """Return a count, also from the text of a float that is whole, such as 1e6."""
    number = _number("count", value)
    return validate.count("count", _whole(number), minimum=0)


def _whole(number: float) -> Any:
    """Return a float that is whole as an integer, and any other as it is, for who checks it."""
    return int(number) if number == number // 1 else number
