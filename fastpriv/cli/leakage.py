"""``fastpriv leakage``: what attacks find in a model update, beside the exact posterior, for a grid of protections."""

from __future__ import annotations

import argparse
import itertools
from typing import TYPE_CHECKING, Any

from ..base.errors import DomainError
from . import shared_options

if TYPE_CHECKING:
    from ..studies.leakage.leakage_studies import LeakageStudy
    from ..studies.leakage.protections import Protection
    from ..studies.leakage.record_files import LabelledRecords

# The grid of protections unless told otherwise: 13 of them.
_PROTECTIONS = ("none", "gaussian:0.001..1:7", "laplace:0.01,0.1", "largest:0.1", "levels:4", "dp-sgd:1:0.5")
_POOL = 100  # candidates unless told otherwise: the exact posterior of batches of 4 takes a tenth of a second
_POOL_SEED = 0x6C65616B  # keeps the choice of candidates apart from the other draws of the same seed
# How protections are written, for errors.
_FORMS = (
    "Write none, gaussian:SCALES, laplace:SCALES, clip:NORMS, clip-mean:NORMS, largest:FRACTIONS, levels:NUMBERS or "
    "dp-sgd:CLIP:MULTIPLIERS, several joined by +."
)


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command to its parser."""
    parser.description = (
        "What attacks recover of the records behind a model update, under each protection of a grid, beside the exact "
        "posterior of the same updates. Prints a table; writes it (CSV, JSON, Parquet), figures, recovered pictures, "
        "and one page (HTML) with all of it."
    )
    add = parser.add_argument
    add("file", nargs="?", metavar="FILE", help="records with labels: .npz (arrays records and labels), CSV or "
        "Parquet (default: 1,797 pictures of digits that ship)")
    add("--label", metavar="COLUMN", help="column of the labels of CSV and Parquet (default: label, or else the last)")
    add("--shape", metavar="HxW", help="of pictures whose pixels are the features, such as 28x28")
    shared_options.add_column_options(parser)
    add("--model", choices=("softmax", "mlp"), default="softmax", help="softmax regression or a multilayer perceptron "
        "(default: softmax)")
    add("--hidden", metavar="WIDTHS", help="hidden layers of the perceptron, such as 32 or 64,32 (default: 32)")
    add("--activation", choices=("sigmoid", "tanh", "softplus", "relu"), help="of hidden layers (default: sigmoid)")
    add("--protection", metavar="WHAT", action="append", help="gaussian:0.001..1:7, laplace:scale=0.1, clip:1, "
        "clip-mean:1, largest:0.1, levels:16, dp-sgd:CLIP:MULTIPLIER or none; several joined by + act together; lists "
        "and ranges make one protection of each value; may be repeated (default: 13 protections)")
    add("--attack", choices=("matching", "prior"), default="matching", help="matching of gradients, without or with "
        "records like those of the batch as a prior (default: matching)")
    add("--pool", metavar="N", type=int, help=f"candidates, drawn from the data (default: {_POOL}, or all there are)")
    add("--batch", metavar="S", type=int, default=4, help="records of the batch, drawn from the candidates (default: "
        "4)")
    add("--models", metavar="M", type=int, default=8, help="models that share an update of the batch (default: 8)")
    add("--attacks", metavar="T", type=int, default=10, help="attacks on each (default: 10)")
    add("--rounds", metavar="R", type=int, default=1, help="rounds of training that are shared (default: 1)")
    add("--local-steps", metavar="K", type=int, default=1, help="steps of each round (default: 1)")
    add("--learning-rate", metavar="RATE", type=float, default=0.1, help="of the training (default: 0.1)")
    add("--share", choices=("gradient", "weights"), default="gradient", help="what a round shares (default: gradient)")
    add("--threshold", metavar="D", type=float, default=float("inf"), help="largest distance at which a reconstruction "
        "counts as a candidate (default: none)")
    add("--store", metavar="FILE", help="keep finished attacks in this file; the same command goes on from there")
    shared_options.add_file_options(parser, "leakage", "confidence", "n_jobs", seed="seed (default: 0)")
    parser.epilog = "Example: fastpriv leakage people.csv --label outcome --protection gaussian:0.01..1:5 --store a.db"
    parser.set_defaults(
        seed=0, interrupted="with --store, the same command goes on where it was.",
        large="data and models must fit into memory; got less memory than they need. Take fewer records.",
    )


def run(args: argparse.Namespace) -> int:
    """Compute, print and write; return the exit code."""
    import numpy as np

    from ..studies.leakage.leakage_pages import save_leakage
    from ..studies.leakage.leakage_studies import leakage_study

    out = shared_options.directory_of_files(args)
    figure = shared_options.figure_format(args)
    if args.seed < 0:
        raise DomainError(f"--seed must be at least 0; got {args.seed}. Take 0.")
    data = _data(args)
    total = len(data.records)
    candidates = min(_POOL, total) if args.pool is None else args.pool
    if not 2 <= candidates <= total:
        raise DomainError(f"--pool must be from 2 to {total}, the number of records; got {candidates}. Take {total}.")
    if not 1 <= args.batch < candidates:
        raise DomainError(
            f"--batch must be from 1 to {candidates - 1}, fewer than the candidates; got {args.batch}. Take 1."
        )
    grid = _grid(args.protection or _PROTECTIONS, args.batch)
    model = _model(args, data)
    order = np.random.default_rng([args.seed, _POOL_SEED]).permutation(total)
    pool = np.sort(order[:candidates])
    attack = _attack(args.attack, data, pool, order[candidates:])
    shared_options.make_directory(out)
    study = leakage_study(
        model, data.records, data.labels, grid, attack=attack, pool=pool, batch=args.batch, n_models=args.models,
        n_attacks=args.attacks, rounds=args.rounds, local_steps=args.local_steps, learning_rate=args.learning_rate,
        share=args.share, threshold=args.threshold, confidence=args.confidence,
        rng=args.seed, store=args.store, n_jobs=args.n_jobs, progress=not args.quiet,
    )
    written = [] if out is None else save_leakage(study, data, out, figure=figure, command="fastpriv leakage")
    return shared_options.print_result(args, study, _table(study), written)


def _data(args: argparse.Namespace) -> LabelledRecords:
    from ..studies.leakage.record_files import labelled_records, read_records

    shape = None if args.shape is None else _shape(args.shape)
    if args.file is not None:
        return read_records(args.file, label=args.label, shape=shape, **shared_options.csv_dialect(args))
    from ..studies.datasets import digits

    pixels, labels = digits()
    return labelled_records(pixels.reshape(-1, 8, 8), labels, shape=shape, source="1,797 digits (UCI)")


def _shape(text: str) -> tuple[int, ...]:
    parts = text.lower().split("x")
    if len(parts) not in (2, 3) or not all(part.isdecimal() and int(part) > 0 for part in parts) or parts[2:] not in (
        [], ["3"]
    ):
        raise DomainError(f"--shape must be HxW, or HxWx3 in colour; got {text!r}. Write 28x28, say.")
    return tuple(map(int, parts))


def _model(args: argparse.Namespace, data: LabelledRecords) -> Any:
    from ..studies.leakage.layered_models import MultilayerPerceptron, SoftmaxRegression

    width, classes = data.records.shape[1], len(data.classes)
    if args.model == "softmax":
        for name in ("hidden", "activation"):
            if getattr(args, name) is not None:
                raise DomainError(f"--{name} must be left out for softmax regression; got it. Add --model mlp.")
        return SoftmaxRegression(width, classes)
    texts = (args.hidden or "32").split(",")
    if not all(text.strip().isdecimal() and int(text) > 0 for text in texts):
        raise DomainError(f"--hidden must be whole numbers, 1 or more; got {args.hidden!r}. Write 64,32, say.")
    return MultilayerPerceptron(width, [int(text) for text in texts], classes, activation=args.activation or "sigmoid")


def _attack(name: str, data: LabelledRecords, pool: Any, others: Any) -> Any:
    from ..studies.leakage.gradient_inversion import GradientMatching

    if name == "matching":
        return GradientMatching()
    if len(others) < 2:
        raise DomainError(
            f"--pool must leave at least 2 records as a prior; got {len(pool)} candidates of {len(data.records)} "
            "records. Take fewer candidates, or another --attack."
        )
    return GradientMatching(public_records=data.records[others])


def _grid(texts: Any, batch: int) -> dict[str, Protection]:
    """Protections by name; a text with lists or ranges stands for one of each value."""
    from ..studies.leakage.protections import Protection

    result: dict[str, Protection] = {}
    for text in texts:
        choices = [_choices(part.strip(), text, batch) for part in text.split("+")]
        for combination in itertools.product(*choices):
            names = [name for name, _ in combination]
            words: dict[str, Any] = {}
            for _, values in combination:
                if words.keys() & values.keys() or (names != ["none"] and "none" in names):
                    raise DomainError(
                        f"--protection must name each protection once, and none alone; got {text!r}. Repeat "
                        "--protection for another."
                    )
                words |= values
            result[" + ".join(names)] = Protection(**words)
    return result


def _choices(part: str, text: str, batch: int) -> list[tuple[str, dict[str, Any]]]:
    """Name and arguments of each protection that a part of a text stands for."""
    kind, _, values = part.replace("laplace:scale=", "laplace:").partition(":")
    if part == "none":
        return [("none", {})]
    if kind == "dp-sgd":
        first, _, values = values.partition(":")
        clip = _numbers(first, text)
        return [
            (f"DP-SGD, clip {c:.3g}, multiplier {z:.3g}",
             {"clip_example": c, "noise": "gaussian", "scale": z * c / batch, "every_step": True})
            for c in clip for z in _numbers(values, text)
        ]
    makers: dict[str, Any] = {
        "gaussian": lambda x: (f"gaussian {x:.3g}", {"noise": "gaussian", "scale": x}),
        "laplace": lambda x: (f"laplace {x:.3g}", {"noise": "laplace", "scale": x}),
        "clip": lambda x: (f"clip {x:.3g}", {"clip_example": x}),
        "clip-mean": lambda x: (f"clip mean {x:.3g}", {"clip_batch": x}),
        "largest": lambda x: (f"largest {100 * x:.3g} %", {"keep_fraction": x}),
        "levels": lambda x: (f"{x:.12g} levels", {"levels": int(x) if x == int(x) else x}),
    }
    if kind not in makers:
        raise DomainError(f"--protection must be a known protection; got {text!r}. {_FORMS}")
    return [makers[kind](x) for x in _numbers(values, text)]


def _numbers(values: str, text: str) -> list[float]:
    import numpy as np

    from ..base.grids import parse_grid

    if not values.strip():
        raise DomainError(f"--protection must have a number after each colon; got {text!r}. {_FORMS}")
    grid = parse_grid("--protection", values, "positive and finite", lambda x: (x > 0) & (x < np.inf), _FORMS)
    if grid.count > 1000:
        raise DomainError(f"--protection must stand for at most 1,000 values; got {grid.count} in {text!r}. {_FORMS}")
    return [float(x) for x in grid.build()]


def _table(study: LeakageStudy) -> str:
    from ..base.table import aligned
    from ..studies.leakage.leakage_pages import grouped_remarks, text_rows
    from ..studies.membership.studies import shown

    head = ("protection", "C1", "exact C1", "recovered", "best", "distortion")
    lines = aligned([head, *(row[: len(head)] for row in text_rows(study))])
    lines += ["", f"Attacks that name records at random have a C1 of {shown(study.outcomes[0].estimate.c1_null)}."]
    lines += [f"Of {', '.join(names)}: {text}." for text, names in grouped_remarks(study).items()]
    return "\n".join(lines)
