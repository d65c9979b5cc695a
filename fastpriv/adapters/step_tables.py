"""Tables of the steps of a composition: what kind of release, with which parameters, how often.

A table is a CSV file or a workbook (.xlsx) whose first line names the columns, or TOML with entries ``[[step]]``:

    kind,sigma,rate,count             [[step]]
    sampled_gaussian,1.1,0.01,3000    kind = "sampled_gaussian"
    gaussian,8,,1                     sigma = 1.1
                                      rate = 0.01
                                      count = 3000

``kind`` is one of ``KINDS``; the other columns are its parameters, empty where a kind has none or where the default is
meant. ``count`` is 1 by default. Lines that are blank or begin with # are skipped. Commas, semicolons or tabs separate
cells, and numbers may have a decimal comma. A sampled, shuffled or selected mechanism has a column
``base``, the kind that is sampled (default: gaussian), and the columns of that kind.
"""

from __future__ import annotations

import csv
import importlib
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from ..base import validate
from ..base.column_files import DECIMAL_COMMA, THOUSANDS, workbook_text
from ..base.errors import DomainError, ShapeError
from ..base.files import parse_toml


@dataclass(frozen=True)
class ComposedStep:
    """A step of a table: its kind, all parameters of the kind and of its base, and how often it is taken."""

    kind: str
    parameters: dict[str, Any]
    count: int
    folder: Path = Path()

    def pair(self) -> Any:
        """The mechanism, or the pair of distributions, that ``compose`` takes."""
        return self._construct(KINDS[self.kind])

    def _construct(self, kind: StepKind) -> Any:
        """What a kind makes of the parameters that belong to it."""
        values = {name: _typed(name, self.parameters[name]) for name in kind.parameters}
        if "base" in values:
            values["base"] = self._construct(KINDS[values["base"]])
        return kind.make(self.folder, **values)


class StepKind(NamedTuple):
    """Parameters of a kind of step with their defaults, None where there is none, and what makes its pair of them.

    A kind with the parameter ``base`` takes the parameters of the kind that ``base`` names as well.
    """

    parameters: Mapping[str, Any]
    make: Callable[..., Any]


def _class(room: str, name: str, **fixed: Any) -> Callable[..., Any]:
    """Makes objects of a class of ``fastpriv.<room>`` by the names of its parameters; loads it on first use."""

    def make(folder: Path, **parameters: Any) -> Any:
        return getattr(importlib.import_module(f"fastpriv.{room}"), name)(**parameters, **fixed)

    return make


def _mixtures(folder: Path, p: str, q: str) -> Any:
    from ..distributions.files import read_mixture

    return tuple(read_mixture(folder / name) for name in (p, q))


def _shuffled(folder: Path, epsilon0: float, n: int, k: int = 0) -> Any:
    """Reports of any randomiser with this local epsilon, or of randomised response of k values."""
    from ..mechanisms import RandomizedResponse
    from ..pairs import Shuffled

    return Shuffled(RandomizedResponse(k, epsilon0), n, adaptive=False) if k else Shuffled(epsilon0, n)


def _discrete_gaussian(folder: Path, sigma: float, sensitivity: float) -> Any:
    from ..pairs import DiscreteGaussianMechanism

    return DiscreteGaussianMechanism(sigma, _whole(sensitivity))


def _selected(folder: Path, base: Any, **runs: Any) -> Any:
    """The best of a negative binomial number of runs, or of a Poisson number where their mean is given."""
    from ..pairs import NegativeBinomial, Poisson, Selected

    return Selected(base, Poisson(**runs) if "mean" in runs else NegativeBinomial(**runs))


def _discrete(folder: Path, p: Any, q: Any) -> Any:
    first, second = (validate.probabilities(name, _numbers(name, values)) for name, values in (("p", p), ("q", q)))
    if first.size != second.size:
        raise DomainError(
            f"p and q must have one probability for each outcome; got {first.size} and {second.size}. Write 0 for "
            "an outcome that one of them does not have."
        )
    return first, second


# Parameters of samples on which a mechanism of another kind runs.
_SAMPLED = {"relation": "add_or_remove", "base": "gaussian"}

# Parameters of samples for a banded matrix.
_BANDED_SAMPLE = {
    "coefficients": None, "sigma": None, "steps": None, "rate": None, "separation": None, "sensitivity": 1.0
}

# The kinds of steps by name. Scales of noise are in units of the release; epsilon is in nats.
KINDS: Mapping[str, StepKind] = {
    "gaussian": StepKind({"sigma": None, "sensitivity": 1.0}, _class("mechanisms", "GaussianMechanism")),
    "sampled_gaussian": StepKind({"sigma": None, "rate": None, "sensitivity": 1.0, "group_size": 1},
                                 _class("mechanisms", "PoissonSampledGaussian")),
    "laplace": StepKind({"scale": None, "sensitivity": 1.0}, _class("mechanisms", "LaplaceMechanism")),
    "randomized_response": StepKind({"epsilon": None, "k": 2}, _class("mechanisms", "RandomizedResponse")),
    "approximate_dp": StepKind({"epsilon": None, "delta": 0.0}, _class("pairs", "ApproximateDP")),
    "mixtures": StepKind({"p": None, "q": None}, _mixtures),
    "discrete": StepKind({"p": None, "q": None}, _discrete),
    "allocation": StepKind({"sigma": None, "steps": None, "sensitivity": 1.0, "epochs": 1},
                           _class("composition", "RandomAllocation")),
    "allocated": StepKind({"steps": None, "times": 1, "base": "gaussian"}, _class("pairs", "Allocation")),
    "balls_in_bins": StepKind({"sigma": None, "bins": None, "sensitivity": 1.0, "epochs": 1},
                              _class("composition", "BallsInBins")),
    "banded_matrix": StepKind({"coefficients": None, "sigma": None, "bins": None, "sensitivity": 1.0, "epochs": 1},
                              _class("composition", "BandedMatrixMechanism")),
    "cyclic_poisson": StepKind({**_BANDED_SAMPLE, "relation": "add_or_remove"},
                               _class("pairs", "CyclicPoissonSampled")),
    "separated": StepKind(_BANDED_SAMPLE, _class("pairs", "SeparatedSampled")),
    "poisson_sampled": StepKind({"rate": None, **_SAMPLED}, _class("pairs", "PoissonSampled")),
    "fixed_size": StepKind({"size": None, "sample": None, **_SAMPLED}, _class("pairs", "FixedSizeSampled")),
    "with_replacement": StepKind({"size": None, "sample": None, **_SAMPLED},
                                 _class("pairs", "FixedSizeSampled", replacement=True)),
    "truncated_poisson": StepKind({"size": None, "rate": None, "cap": None, **_SAMPLED},
                                  _class("pairs", "TruncatedPoissonSampled")),
    "shuffled": StepKind({"epsilon0": None, "n": None}, _shuffled),
    "shuffled_response": StepKind({"epsilon0": None, "n": None, "k": 2}, _shuffled),
    "shuffled_batches": StepKind({"batches": None, "epochs": 1, "relation": "replace_one", "base": "gaussian"},
                                 _class("pairs", "ShuffledBatches")),
    "selected": StepKind({"eta": 1.0, "gamma": None, "base": "gaussian"}, _selected),
    "selected_of_poisson": StepKind({"mean": None, "base": "gaussian"}, _selected),
    "bounded_range": StepKind({"epsilon": None}, _class("pairs", "BoundedRange")),
    "permute_and_flip": StepKind({"epsilon": None}, _class("pairs", "PermuteAndFlip")),
    "discrete_gaussian": StepKind({"sigma": None, "sensitivity": 1}, _discrete_gaussian),
    "tree_aggregation": StepKind({"sigma": None, "leaves": None, "sensitivity": 1.0},
                                 _class("pairs", "TreeAggregation")),
    "zero_concentrated_dp": StepKind({"rho": None, "xi": 0.0}, _class("pairs", "ZeroConcentratedDP")),
    "renyi_dp": StepKind({"orders": None, "epsilons": None}, _class("pairs", "RenyiDP")),
}
_TEXTS = ("p", "q", "base", "relation")  # parameters that are not numbers
_LISTS = ("coefficients", "orders", "epsilons")  # numbers separated by spaces
# Parameters that are whole numbers.
_WHOLE = frozenset(("k", "group_size", "steps", "times", "bins", "epochs", "separation", "size", "sample", "cap", "n",
                    "batches", "leaves"))
# The parameters of all kinds, which are the columns of a table besides kind and count.
_COLUMNS = tuple(dict.fromkeys(name for kind in KINDS.values() for name in kind.parameters))


def read_steps(path: str | os.PathLike[str]) -> list[ComposedStep]:
    """Read the steps of a table, by the ending of its name (.toml, .xlsx, else CSV).

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
    for position, entry in read(file):
        try:
            steps.append(make_step(entry, file.parent))
        except (DomainError, ShapeError, OSError) as error:
            raise DomainError(f"{position} must be a step; got an entry where {error}") from None
    if not steps:
        raise DomainError(f"{str(file)!r} must have at least one step; got none. Write kind,sigma,count and one line.")
    return steps


def make_step(entry: Mapping[str, Any], folder: Path = Path()) -> ComposedStep:
    """Make a step of a kind, its parameters and ``count``, each a number or its text; None and "" are left out."""
    values = {name: value for name, value in entry.items() if value is not None and value != ""}
    kind = validate.choice("kind", values.pop("kind", None), tuple(KINDS))
    count = validate.count("count", _whole(_number("count", values.pop("count", 1))), minimum=0)
    defaults = dict(KINDS[kind].parameters)
    if "base" in defaults:
        bases = tuple(name for name, item in KINDS.items() if "base" not in item.parameters)
        base = validate.choice("base", values.get("base", defaults["base"]), bases)
        defaults |= {name: value for name, value in KINDS[base].parameters.items() if name not in defaults}
    for name in values:
        if name not in defaults:
            raise DomainError(
                f"{name} must be left empty for {kind}; got {validate.shown(values[name])}. It takes "
                f"{', '.join(defaults)} and count."
            )
    parameters = {}
    for name, default in defaults.items():
        value = values.get(name, default)
        if value is None:
            raise DomainError(f"{name} must be given for {kind}; got none. Fill its column.")
        parameters[name] = value if name in _TEXTS + _LISTS else _number(name, value)
    step = ComposedStep(kind, parameters, count, folder)
    step.pair()  # raises for parameters outside of their domains
    return step


def _csv_entries(file: Path) -> Iterator[tuple[str, dict[str, str]]]:
    """Each line of a CSV file by the names of its columns, and its place in words."""
    content = file.read_bytes()
    if file.suffix.lower() == ".xlsx":
        content = workbook_text(content, file)
    try:
        lines = content.decode("utf-8-sig").splitlines()
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
        position = f"line {number} of {str(file)!r}"
        cells = _cells(line, separator, position)
        if len(cells) > len(names):
            raise DomainError(
                f"{position} must have {len(names)} cells, as the first; got {len(cells)}. Write one cell a column."
            )
        yield position, dict(zip(names, cells, strict=False))


def _cells(line: str, separator: str, line_label: str) -> list[str]:
    try:
        return [cell.strip() for cell in next(csv.reader([line], delimiter=separator))]
    except csv.Error as error:
        raise DomainError(f"{line_label} must be a line of CSV; got one that is none: {error}. Correct it.") from None


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
        if THOUSANDS.fullmatch(value):
            raise DomainError(
                f"{name} must be a number that can be read in one way; got {value!r}, which may be "
                f"{value.replace(',', '')} or {value.replace(',', '.')}. Write it without a comma."
            )
        try:
            return float(value.replace(",", ".") if DECIMAL_COMMA.fullmatch(value) else value)
        except ValueError:
            raise DomainError(f"{name} must be a number; got {value!r}. Write 0.5 or 1e-3.") from None
    return validate.scalar(name, value, "a number", lambda x: x == x)


def _numbers(name: str, value: Any) -> list[float]:
    """Return a list of numbers, or numbers of a text that are separated by spaces."""
    words = value.split() if isinstance(value, str) else value
    if not isinstance(words, list):
        raise DomainError(f"{name} must be a list of numbers; got {validate.shown(words)}. Write [0.25, 0.75].")
    return [_number(name, word) for word in words]


def _typed(name: str, value: Any) -> Any:
    """Return a parameter as its class takes it."""
    return _numbers(name, value) if name in _LISTS else _whole(value) if name in _WHOLE else value


def _whole(number: float) -> Any:
    """Return a float that is whole as an integer, and any other as it is, for who checks it."""
    return int(number) if number == number // 1 else number
