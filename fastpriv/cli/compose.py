"""``fastpriv compose``: delta and epsilon of many private releases together, with proved bounds."""

from __future__ import annotations

import argparse
import json
import math
import sys
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from ..base.errors import DomainError
from ..base.version import VERSION
from .shared_options import GRID_FORMS, add_shared_options, build_grid, print_json, print_text

if TYPE_CHECKING:
    from ..adapters.step_tables import ComposedStep
    from ..base.estimate import Estimate
    from ..base.numerics import FloatArray
    from ..composition import Composition
    from ..composition.compositions import Direction

_MOST_SHOWN = 4  # kinds of steps in the first line of the output
_DIGITS = 10  # significant digits that are printed
_CURVE_POINTS = 121  # epsilons of the picture
_LEAST_POWER = -40.0  # the picture ends where delta is 10 to this power, unless --epsilon says otherwise
# The words of --direction: those of Composition, and removal and addition of records for sampled Gaussians.
_DIRECTIONS: Mapping[str, Direction] = {
    "forward": "forward", "backward": "backward", "worst": "worst", "remove": "forward", "add": "backward"
}
# Options that are parameters of a step, and the names of these.
_STEP_OPTIONS = {"sigma": "sigma", "rate": "rate", "relation": "relation", "count": "count", "shuffle": "n",
                 "epsilon0": "epsilon0"}
# Columns of CSV and JSON; "at" is the epsilon, or the delta, of the question.
_COLUMNS = (
    "source", "quantity", "at", "value", "lower", "upper", "log_value", "log_lower", "log_upper", "kind", "method"
)


class _Answer(NamedTuple):
    """One answer: delta at an epsilon with its logarithms, or epsilon at a delta."""

    quantity: str
    at: float
    estimate: Estimate
    log: Estimate | None = None

    def cells(self) -> list[Any]:
        logs = (None, None, None) if self.log is None else self.log.floats()
        estimate = self.estimate
        return ["fastpriv", self.quantity, self.at, *estimate.floats(), *logs, estimate.kind, estimate.method]


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command to its parser."""
    parser.description = (
        "Delta at epsilons, or epsilon at deltas, of many private releases together, with proved bounds on both sides "
        "at any depth; or the least noise, or the most steps, for a target. Steps come from a table, from the options, "
        "or from the list of events of another accountant."
    )
    add_step_options(parser)
    goal = parser.add_argument_group("what is asked")
    goal.add_argument("--epsilon", metavar="GRID", help=f"delta at these, in nats: {GRID_FORMS}")
    goal.add_argument("--delta", metavar="GRID", help="epsilon at these; 0 asks for the largest loss")
    goal.add_argument("--least-sigma", action="store_true", help="least sigma for --epsilon and --delta, with --rate "
        "and --count")
    goal.add_argument("--largest-count", action="store_true", help="most steps for --epsilon and --delta, with "
        "--sigma and --rate, or of the one step of FILE")
    goal.add_argument("--direction", choices=tuple(_DIRECTIONS), help="which of a pair is released: forward (remove a "
        "record), backward (add one), or the larger delta of both, worst (default: worst for mechanisms)")
    add = parser.add_argument
    add("--figure", metavar="FILE", help="draw the curve with its bounds into this .png, .svg or .pdf")
    add("--csv", action="store_true", help="print CSV instead of the table")
    add_shared_options(parser, "json", "quiet")
    parser.epilog = "Example: fastpriv compose --sigma 1 --rate 0.01 --count 1000 --epsilon 1,2,4 --delta 1e-6"


def add_step_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that say what is released."""
    add = parser.add_argument
    add(
        "file", nargs="?", metavar="FILE", help="CSV or TOML table of steps with the columns kind, count and the "
        "parameters of the kind, as docs/composition.md lists them; or JSON: events of dp_accounting, or the history "
        "or state_dict of an accountant of Opacus",
    )
    step = parser.add_argument_group("one kind of step, in place of FILE")
    step.add_argument("--sigma", metavar="S", type=float, help="standard deviation of Gaussian noise, sensitivity 1")
    step.add_argument("--rate", metavar="Q", type=float, help="probability that a record is in the sample (default: 1)")
    step.add_argument("--shuffle", metavar="N", type=float, help="reports that are shuffled, each of --epsilon0")
    step.add_argument("--epsilon0", metavar="E", type=float, help="local epsilon of each report, with --shuffle")
    step.add_argument("--step", nargs="+", metavar=("KIND", "NAME=VALUE"), help="any kind of a table of steps with its "
        "parameters, such as: laplace scale=2, or fixed_size size=64 sample=8 sigma=2, or cyclic_poisson sigma=1 "
        "steps=100 rate=0.1 separation=2 'coefficients=1 0.5'; --step list is refused with all kinds, and "
        "docs/composition.md has their parameters")
    step.add_argument("--count", metavar="K", type=float, help="how many steps (default: 1)")
    add("--relation", choices=("add_or_remove", "replace_one", "zero_out"), help="which data sets are neighbours, of "
        "events of dp_accounting and of samples (default: add_or_remove)")
    parser.set_defaults(
        large="the steps must fit into memory; got less memory than they need. Give equal steps one line and a count.",
    )


def run(args: argparse.Namespace) -> int:
    """Compute, print and draw; return the exit code."""
    if args.json and args.csv:
        raise DomainError("--json and --csv must not be given together; got both. Choose one.")
    direction = None if args.direction is None else _DIRECTIONS[args.direction]
    epsilons = None if args.epsilon is None else _grid("epsilon", args.epsilon, "finite")
    deltas = None if args.delta is None else _grid("delta", args.delta, "from 0 to 1")
    if args.least_sigma or args.largest_count:
        step = _kind(args).replace("_", " ") if args.file is None else Path(args.file).name
        words = [step, *(_parameter_text(name, value) for name, value in _step_options(args).items())]
        summary = _Summary(", ".join(words), _assumptions(args), args.direction or "that of the mechanism")
        return _print_rows(args, [_search(args, epsilons, deltas, direction)], [], summary)
    composition, steps = composition_of(args)
    if epsilons is None and deltas is None and args.figure is None:
        raise DomainError("--epsilon, --delta or --figure must be given; got none. Write --epsilon 1,2,4.")
    if args.figure is not None:
        from ..base.files import check_writable_file, picture_kind

        picture_kind("--figure", args.figure)
        check_writable_file(args.figure)
    summary = summary_of(args, composition, steps)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        rows = []
        if epsilons is not None:
            plain = composition.delta(epsilons, direction=direction)
            logs = composition.log_delta(epsilons, direction=direction)
            rows = [_Answer("delta", float(epsilons[k]), plain[k], logs[k]) for k in range(len(epsilons))]
        if deltas is not None:
            result = composition.epsilon(delta=deltas, direction=direction)
            rows += [_Answer("epsilon", float(deltas[k]), result[k]) for k in range(len(deltas))]
    for item in caught:
        if item.category is UserWarning:
            summary.assumed.append(f"{str(item.message)[0].upper()}{str(item.message)[1:]}")
        else:
            warnings.warn_explicit(item.message, item.category, item.filename, item.lineno)
    if args.figure is not None:
        _draw(args, composition, steps, epsilons, direction)
    return _print_rows(args, rows, steps, summary)


def composition_of(args: argparse.Namespace) -> tuple[Composition, list[ComposedStep]]:
    """What the file or the options describe; without steps where a list of events does."""
    from ..composition import compose

    if args.file is not None and Path(args.file).suffix.lower() == ".json":
        return _composition_of_events(args), []
    steps = _steps(args)
    return compose([step.pair() for step in steps], [step.count for step in steps]), steps


class _Summary(NamedTuple):
    """What was composed, what was assumed where an option was left out, and the direction of the answers."""

    composed: str
    assumed: list[str]
    direction: str


def summary_of(args: argparse.Namespace, composition: Composition, steps: Sequence[ComposedStep]) -> _Summary:
    """What was composed, in the words of the options."""
    words = {"forward": "forward (remove a record)", "backward": "backward (add a record)",
             "worst": "worst, the larger delta of removing and adding a record"}
    if any(step.parameters.get("relation", "add_or_remove") != "add_or_remove" for step in steps):
        words = {"forward": "forward", "backward": "backward", "worst": "worst, the larger delta of both orders"}
    if composition.forward_pairs == composition.backward_pairs:
        direction = "both have the same delta"
    elif args.direction is None and composition.ordered:
        direction = "forward, p against q as they are written"
    else:
        direction = words[_DIRECTIONS[args.direction or "worst"]]
    plural = "" if composition.count == 1 else "s"
    text = "; ".join(_step_text(step) for step in steps[:_MOST_SHOWN])
    text += f"; {len(steps) - _MOST_SHOWN} more kinds" if len(steps) > _MOST_SHOWN else ""
    composed = f"{composition.count:,} release{plural}: {text or Path(args.file).name}"
    return _Summary(composed, _assumptions(args), direction)


def _assumptions(args: argparse.Namespace) -> list[str]:
    """What stands for options that were left out."""
    from ..adapters.step_tables import KINDS

    if args.file is not None:
        return []
    assumed = [] if args.count is not None or args.largest_count else ["--count was not given: 1 release."]
    kind = KINDS.get(_kind(args))
    relation = None if kind is None else kind.parameters.get("relation")
    if relation is not None and "relation" not in _step_options(args):
        assumed.append(f"--relation was not given: {relation}.")
    return [*assumed, "--rate was not given: no sampling, rate 1."] if _is_plain(args) else assumed


def _is_plain(args: argparse.Namespace) -> bool:
    return args.step is None and _kind(args) == "gaussian"


def _step_options(args: argparse.Namespace) -> dict[str, Any]:
    """The options that are given of those that say what a step is, by the names of its parameters."""
    values = {name: getattr(args, key) for key, name in _STEP_OPTIONS.items() if getattr(args, key) is not None}
    for word in (args.step or [])[1:]:
        name, equals, value = word.partition("=")
        if not equals or name == "kind":
            raise DomainError(f"--step must be a kind and NAME=VALUE; got {word!r}. Write --step laplace scale=2.")
        if name in values:
            raise DomainError(f"{name} must be given once; got {values[name]!r} and {value!r}. Leave one out.")
        values[name] = value
    return values


def _kind(args: argparse.Namespace) -> str:
    """The kind of the step that the options describe."""
    if args.step is not None:
        return str(args.step[0])
    if args.shuffle is not None or args.epsilon0 is not None:
        return "shuffled"
    if args.rate is None:
        return "gaussian"
    return "sampled_gaussian" if args.relation is None else "poisson_sampled"


def _check_file_alone(args: argparse.Namespace) -> None:
    """Refuse options that say what a step is beside a file that says it too."""
    for name in ("sigma", "rate", "shuffle", "epsilon0", "step", "count"):
        if getattr(args, name) is not None:
            raise DomainError(
                f"--{name} must be left out where FILE is given; got {getattr(args, name)!r}. Write it into a table of "
                "steps."
            )


def _composition_of_events(args: argparse.Namespace) -> Composition:
    """The composition of a JSON file of Opacus or dp_accounting."""
    from ..adapters import composition_from_dp_events, composition_from_opacus

    _check_file_alone(args)
    try:
        content = json.loads(Path(args.file).read_text(encoding="utf-8-sig"))
    except (ValueError, RecursionError) as error:
        raise DomainError(f"{args.file!r} must be JSON; got {error}. Write it with json.dump.") from None
    rows = content if isinstance(content, list) else []
    try:
        if (isinstance(content, dict) and "history" in content) or (rows and isinstance(rows[0], list)):
            return composition_from_opacus(content)
        if isinstance(content, list):
            content = {"class_name": "ComposedDpEvent", "events": content}
        return composition_from_dp_events(content, relation=args.relation or "add_or_remove")
    except DomainError as error:
        raise DomainError(
            f"{args.file!r} must be events of dp_accounting or a history of Opacus; got one where {error}"
        ) from None


def _steps(args: argparse.Namespace) -> list[ComposedStep]:
    """The steps of the table or of the options."""
    from ..adapters.step_tables import make_step, read_steps

    if args.file is not None:
        _check_file_alone(args)
        if args.relation is not None:
            raise DomainError(
                f"--relation must be left out where FILE has no events of dp_accounting; got {args.relation}. Write it "
                "into the table of steps, for samples."
            )
        return read_steps(args.file)
    if args.sigma is None and _is_plain(args):
        raise DomainError("FILE or --sigma must be given; got neither. Write --sigma 1 --rate 0.01 --count 1000.")
    return [make_step({"kind": _kind(args), **_step_options(args)})]


def _search(
    args: argparse.Namespace, epsilons: FloatArray | None, deltas: FloatArray | None, direction: Direction | None
) -> _Answer:
    """The least sigma or the largest count for one epsilon and one delta."""
    flag = "--least-sigma" if args.least_sigma else "--largest-count"
    if args.least_sigma and args.largest_count:
        raise DomainError("--least-sigma and --largest-count must not be given together; got both. Choose one.")
    if epsilons is None or deltas is None or len(epsilons) != 1 or len(deltas) != 1:
        raise DomainError(f"{flag} must have one --epsilon and one --delta; got others. Write one of each.")
    from ..adapters.step_tables import make_step
    from ..composition import largest_count, least_sigma

    target: dict[str, Any] = {"epsilon": float(epsilons[0]), "delta": float(deltas[0]), "direction": direction}
    if args.least_sigma:
        if args.file is not None or "sigma" in _step_options(args):
            raise DomainError("FILE and --sigma must be left out with --least-sigma; got one. It is what is searched.")
        entry = {"kind": _kind(args), **_step_options(args)}
        count = make_step(entry | {"sigma": 1.0}).count

        def pair_of_sigma(sigma: float) -> Any:
            return make_step(entry | {"sigma": sigma}).pair()

        return _Answer("least sigma", target["epsilon"], least_sigma(pair_of_sigma, count=count, **target))
    if "count" in _step_options(args):
        raise DomainError("--count must be left out with --largest-count; got it. It is what is searched.")
    steps = _steps(args)
    if len(steps) != 1:
        raise DomainError("--largest-count must have one step; got others. Write a table with one line, or --sigma.")
    return _Answer("largest count", target["epsilon"], largest_count(steps[0].pair(), **target))


def _draw(
    args: argparse.Namespace, composition: Composition, steps: Sequence[ComposedStep],
    epsilons: FloatArray | None, direction: Direction | None,
) -> None:
    """Draw the curve over the epsilons of the grid, or down to deltas of 1e-40."""
    import numpy as np

    from ..base.files import write_picture
    from ..report import composed_profile

    if epsilons is not None and len(epsilons) > 1:
        low, high = float(epsilons[0]), float(epsilons[-1])
    else:
        end = composition.epsilon(log_delta=_LEAST_POWER * math.log(10.0), direction=direction)
        low, high = 0.0, float(end.upper)
        if not math.isfinite(high):  # delta has a floor
            high = 2.0 * max(1.0, float(composition.epsilon(log_delta=-10.0, direction=direction).value))
            high = high if math.isfinite(high) else 10.0
    x = np.linspace(low, high, _CURVE_POINTS)
    logs = composition.log_delta(x, direction=direction)
    title = "; ".join(map(_step_text, steps)) if 1 <= len(steps) <= 2 else f"Composition of {Path(args.file).name}"
    ax = composed_profile(logs, x, title=title)
    write_picture(Path(args.figure), ax.figure, 150)


def _step_text(step: ComposedStep) -> str:
    """A step with its count and the parameters that are not those by default."""
    usual = (("sensitivity", 1.0), ("group_size", 1.0), ("k", 2.0), ("epochs", 1.0), ("base", "gaussian"))
    numbers = [_parameter_text(*parameter) for parameter in step.parameters.items() if parameter not in usual]
    return f"{step.count:,} x {step.kind.replace('_', ' ')}, {', '.join(numbers)}"


def _parameter_text(name: str, value: Any) -> str:
    return f"{name} {value:g}" if isinstance(value, float) else f"{name} {str(value).replace('_', ' ')}"


def _grid(name: str, text: str, constraint: str) -> FloatArray:
    def valid(x: FloatArray) -> Any:
        return (x >= 0.0) & (x <= 1.0) if name == "delta" else abs(x) < math.inf

    remedy = "Write 1e-6." if name == "delta" else "Epsilons are in nats."
    return build_grid(f"--{name}", text, constraint, valid, remedy)


def _print_rows(
    args: argparse.Namespace, rows: Sequence[_Answer], steps: Sequence[ComposedStep], summary: _Summary
) -> int:
    """Print the table, as text, CSV or JSON."""
    if args.json:
        from ..base.files import json_safe

        document = {
            "fastpriv": VERSION, "composed": summary.composed, "assumed": summary.assumed,
            "direction": summary.direction,
            "steps": [{"kind": step.kind, "count": step.count} | step.parameters for step in steps],
            "table": [dict(zip(_COLUMNS, row.cells(), strict=True)) for row in rows],
            "verdict": _verdict(rows, summary),
        }
        print_json(json_safe(document))
    elif args.csv:
        from ..base.files import write_csv_rows

        sys.stderr.write("".join(f"fastpriv: {line}\n" for line in summary.assumed))
        write_csv_rows(sys.stdout, _COLUMNS, (row.cells() for row in rows))
    elif rows:
        head = f"{summary.composed}; direction: {summary.direction}"
        print_text("\n".join([head, *summary.assumed, "", _text(rows), *_verdict(rows, summary), ""]))
    if args.figure is not None and not args.json and not args.csv:
        print_text(f"Written: {args.figure}\n")
    return 0


def _verdict(rows: Sequence[_Answer], summary: _Summary) -> list[str]:
    """What the best of the answers promises to a person; nothing of one direction alone, or of a search."""
    from ..base.numerics import next_above, rounded_up
    from ..conversions import membership_advantage_from_dp

    pairs = [(row.at, row.estimate.upper)[:: 1 if row.quantity == "delta" else -1] for row in rows
             if row.quantity in ("delta", "epsilon") and summary.direction.startswith(("both", "worst"))]
    chances = [50.0 + 50.0 * float(membership_advantage_from_dp(max(e, 0.0), d).upper) for e, d in pairs]
    return [
        "Somebody who knows everything but which of two data sets was used, that differ in one record, guesses it "
        f"right {rounded_up(min(100.0, float(next_above(min(chances), 2))))} times in 100 at most (50 without them)."
    ] if chances else []


def _text(rows: Sequence[_Answer]) -> str:
    """The table as lines with aligned columns: one part for each quantity."""
    from ..base.table import aligned, bracket_texts

    text = ""
    for quantity in dict.fromkeys(row.quantity for row in rows):
        quantity_rows = [row for row in rows if row.quantity == quantity]
        at = "delta" if quantity == "epsilon" else "epsilon"
        table = [[at, quantity, "at least", "at most", *(["log10"] if quantity == "delta" else [])]]
        for row in quantity_rows:
            powers = [] if row.log is None else [f"{float(row.log.value) / math.log(10.0):.6g}"]
            table.append([f"{row.at:g}", *bracket_texts(*row.estimate.floats(), _DIGITS), *powers])
        kind = f"{quantity_rows[0].estimate.kind}, {quantity_rows[0].estimate.method}"
        text += "\n".join([*aligned(table), kind, "", ""])
    return text[:-1]
