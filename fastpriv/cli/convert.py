"""``fastpriv convert``: one privacy notion from another, with its source."""

from __future__ import annotations

import argparse
from typing import Any

from ..base.errors import DomainError
from .shared_options import add_shared_options, print_answer


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command to its parser."""
    from ..conversions.vocabulary import NOTIONS, PARAMETERS

    parser.description = (
        "Convert a guarantee from one privacy notion to another: by the tight conversion, or by the shortest chain of "
        f"conversions where none leads straight. Notions: {', '.join(NOTIONS)}."
    )
    add = parser.add_argument
    add("target", nargs="?", metavar="TARGET", help="the notion wanted")
    add("--from", dest="source", metavar="SOURCE", help="the notion that is known")
    add(
        "--form", choices=("tight", "bound", "as_published"),
        help="a conversion of this form only; as_published: as printed in a paper, also where it is false",
    )
    add("--list", action="store_true", help="all conversions, or those of TARGET and SOURCE")
    add("--markdown", action="store_true", help="with --list: the page CONVERSIONS.md")
    add_shared_options(
        parser, unit="of amounts of information, in and out (default: nats)", json="print JSON instead of text"
    )
    numbers = parser.add_argument_group("numbers", "one, or several by commas; inf is one")
    for name, parameter in PARAMETERS.items():
        text = parameter.text.replace("``", "").rstrip(".")
        numbers.add_argument(f"--{name.replace('_', '-')}", metavar="X", help=text)
    parser.epilog = "Example: fastpriv convert dp --from zcdp --rho 0.5 --delta 1e-6"


def run(args: argparse.Namespace) -> int:
    """Convert or list, and print; return the exit code."""
    from ..conversions import registry
    from ..conversions.chains import convert
    from ..conversions.vocabulary import PARAMETERS

    if args.list or args.markdown:
        rows = registry.rows(args.target, args.source)
        return print_answer(args, rows, registry.markdown() if args.markdown else _list_text(rows))
    if args.target is None or args.source is None:
        raise DomainError("TARGET and --from must be given; got none. See fastpriv convert --list for what there is.")
    texts = {name: text for name in PARAMETERS if (text := getattr(args, name)) is not None}
    values: dict[str, Any] = {name: _parse_numbers(name, text) for name, text in texts.items()}
    if args.unit is not None:
        values["unit"] = args.unit
    result = convert(args.target, args.source, form=args.form, **values)
    return print_answer(args, result.to_dict(), result.summary() + "\n")


def _list_text(rows: list[dict[str, Any]]) -> str:
    """Return the conversions as lines with aligned columns."""
    from ..base.table import aligned

    cells = [
        (f"{row['source']} -> {row['target']}", row["function"], row["form"] + ("" if row["holds"] else ", FALSE"))
        for row in rows
    ]
    return "".join(f"{line}\n" for line in aligned(cells))


def _parse_numbers(name: str, text: str) -> float | list[float]:
    try:
        values = [float(word) for word in text.split(",")]
    except ValueError:
        raise DomainError(
            f"--{name.replace('_', '-')} must be numbers separated by commas; got {text!r}. Write 1 or 0.5,1,inf."
        ) from None
    return values[0] if len(values) == 1 else values
