"""``fastpriv membership``: who of a panel is in, as attacks see it through several defences."""

from __future__ import annotations

import argparse
import re
import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ..base.errors import DomainError
from . import shared_options

if TYPE_CHECKING:
    from ..studies.membership.noises import Noise
    from ..studies.membership.panels import Panel
    from ..studies.membership.priors import MembershipPrior
    from ..studies.membership.studies import AttackStudy

_POOL = 16  # people who may be members, unless told otherwise: few enough for the exact attack on 1,000 releases
_ATTRIBUTES = 24  # attributes of the simulated genotypes that are released, unless told otherwise
_OWN_ATTRIBUTES = 1000  # the same of a file, which is taken whole up to here: a run of about two minutes of two cores
_NAME_WIDTH = 60  # columns of a terminal for the name of the file; a longer one is shortened
_UTILITY = 0.06  # mean absolute noise of the default defences: less than a constant loses, and attacks err
_MISSING = {"error": "raise", "drop": "drop_attributes", "zero": "as_zero"}  # --missing, and the word of read_panel
_SETUP_SEED = 0x6D656D62  # keeps the split of people apart from the releases of the same seed


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command to its parser."""
    parser.description = (
        "Attacks on the membership of people whose frequencies are released, against several defences. Prints a table; "
        "writes it (CSV, JSON, Parquet), ROC curves (a picture), and one page (HTML) with all of it."
    )
    add = parser.add_argument
    add("file", nargs="?", metavar="FILE", help=".npy, .npz, .csv, .bed or .vcf: one row a person, one column a binary "
        "attribute (default: simulated genotypes that ship)")
    add("--counted-allele", metavar="ALLELE", help="what a 1 counts in .bed and .vcf: A1, A2, ref, alt or minor")
    add("--coding", choices=("binary", "carrier", "homozygous"), help="how copies of the allele become a bit")
    add("--missing", choices=tuple(_MISSING), default="error", help="missing genotypes: an error, drop "
        "the attributes that have any, or read them as 0 (default: error)")
    add("--references", metavar="FILE", help="people who are no members (default: those of FILE beyond the pool)")
    add("--pool", metavar="K", type=int, default=_POOL, help=f"people who may be members, drawn at random (default: "
        f"{_POOL}; up to 24 are attacked exactly)")
    add("--attributes", metavar="M", type=int, help=f"attributes that are released, drawn among those that vary "
        f"(default: all of FILE, up to {_OWN_ATTRIBUTES:,}; {_ATTRIBUTES} without FILE; 0 for all)")
    prior = parser.add_mutually_exclusive_group()
    prior.add_argument("--members", metavar="N", type=int, help="how many are members (default: half of the pool)")
    prior.add_argument("--probability", metavar="Q", type=float, help="probability with which each is a member")
    add("--noise", metavar="NOISE", action="append", help="none, gaussian:SIGMA, laplace:epsilon=E, laplace:scale=B, "
        "linf:epsilon=E or linf:scale=B; may be repeated (default: none, and the three kinds at the same utility loss)")
    add("--utility", metavar="LOSS", type=float, default=_UTILITY, help=f"mean absolute noise of the default defences "
        f"(default: {_UTILITY})")
    add("--clip", action="store_true", help="releases are cut to [0, 1]")
    add("--attack", metavar="NAME", action="append", help="bayes, fixed, adaptive, score, tree, svm, logistic or "
        "network; may be repeated (default: the first four)")
    add("--releases", metavar="R", type=int, default=1000, help="releases of each defence (default: 1000)")
    add("--training", metavar="R", type=int, default=1000, help="releases on which attacks are trained (default: 1000)")
    add("--fpr", metavar="RATE", type=float, default=1e-3, help="at which the TPR is evaluated (default: 0.001)")
    add("--gamma", metavar="G", type=float, default=0.5, help="weight of false claims in the BWMA (default: 0.5)")
    shared_options.add_file_options(parser, "membership", "confidence", "n_jobs", seed="seed (default: 0)")
    parser.epilog = "Example: fastpriv membership panel.csv --members 8 --noise gaussian:0.2 --noise laplace:epsilon=60"
    parser.set_defaults(
        seed=0, large="the releases must fit into memory; got less memory than they need. Take fewer --releases.",
    )


def run(args: argparse.Namespace) -> int:
    """Compute, print and write; return the exit code."""
    from ..studies.membership.studies import StudyOptions, attack_study, save_study

    figure = shared_options.figure_format(args)
    out = shared_options.directory_of_files(args)
    if args.seed < 0:
        raise DomainError(f"--seed must be at least 0; got {args.seed}. Take 0.")
    panel, references, drawn = _people(args)
    prior, size = _prior_and_size(args, panel.n_people)
    defences = _defences(args, panel.n_attributes, size)
    shared_options.make_directory(out)
    if not args.json and not args.quiet:  # before the work, and before any number
        shared_options.print_text(drawn + "\n\n")
        sys.stdout.flush()
    options = StudyOptions(
        attacks=args.attack or ["bayes", "fixed", "adaptive", "score"], n_releases=args.releases,
        n_training=args.training, clip=args.clip, fpr=args.fpr, gamma=args.gamma, confidence=args.confidence,
    )
    study = attack_study(
        panel, references, prior, defences, options, rng=args.seed, n_jobs=args.n_jobs, progress=not args.quiet
    )
    study = replace(study, settings={**study.settings, "data": drawn})
    written = [] if out is None else save_study(study, out, figure=figure)
    return shared_options.print_result(args, study, _table(study), written)


def _people(args: argparse.Namespace) -> tuple[Panel, Panel, str]:
    """The pool and the references, of attributes that vary among them, and a sentence of what was drawn."""
    import numpy as np

    from ..studies.membership.files import read_panel

    words = {"counted_allele": args.counted_allele, "coding": args.coding, "missing": _MISSING[args.missing]}
    if args.file is None:
        from ..studies.datasets import genotypes
        from ..studies.membership.panels import Panel

        people = Panel(**genotypes())
    else:
        people = read_panel(args.file, **words)
    others = None if args.references is None else read_panel(args.references, **words)
    least = 2 if others is None else 0  # references that the score needs
    if not 2 <= args.pool <= people.n_people - least:
        raise DomainError(
            f"--pool must be from 2 to {people.n_people - least}, of {people.n_people} people; got {args.pool}. Leave "
            "people as references, or name a file with --references."
        )
    random = np.random.default_rng([args.seed, _SETUP_SEED])
    order = random.permutation(people.n_people)
    pool = people.select(people=np.sort(order[: args.pool]))
    remainder = people.select(people=np.sort(order[args.pool :])) if others is None else others
    if remainder.n_attributes != pool.n_attributes:
        raise DomainError(
            f"--references must have the {pool.n_attributes} attributes of FILE; got {remainder.n_attributes}. Select "
            "the same attributes of both."
        )
    total = pool.counts(np.ones(pool.n_people, dtype=bool)) + remainder.counts(np.ones(remainder.n_people, dtype=bool))
    varying = np.flatnonzero((total > 0) & (total < pool.n_people + remainder.n_people))
    count = args.attributes
    if count is None:
        count = _ATTRIBUTES if args.file is None else _OWN_ATTRIBUTES
    if count < 0:
        raise DomainError(f"--attributes must be at least 0; got {count}. Take 0 for all.")
    if not varying.size:
        raise DomainError("FILE must have attributes that vary; got none that does. Check the file.")
    result = varying.size
    if 0 < count < result:
        varying = np.sort(random.choice(varying, count, replace=False))
    drawn = _sentence(args, people.n_people, remainder.n_people, varying.size, result, people.n_attributes)
    return pool.select(attributes=varying), remainder.select(attributes=varying), drawn


def _sentence(
    args: argparse.Namespace, people: int, references: int, released: int, varying: int, attributes: int
) -> str:
    """What of the data takes part, and what was drawn at random."""
    from ..base.escaping import printable

    name = "the simulated genotypes that ship" if args.file is None else printable(args.file, _NAME_WIDTH)
    if args.pool < people:
        pool = f"{args.pool} of {people:,} people drawn at random (--pool) may be members"
    else:
        pool = f"all {people:,} people may be members"
    others = "the others are references" if args.references is None else f"{references:,} references of a file"
    if released < varying:
        chosen = f"{released:,} attributes drawn at random of the {varying:,} that vary (--attributes; 0 takes all)"
    elif varying < attributes:
        chosen = f"all {varying:,} attributes that vary, of {attributes:,}"
    else:
        chosen = f"all {varying:,} attributes"
    return f"Data: {name}: {pool}; {others}; {chosen}."


def _prior_and_size(args: argparse.Namespace, people: int) -> tuple[MembershipPrior, float]:
    """The prior, and how many members it has on average."""
    from ..studies.membership.priors import BernoulliMembership, FixedSizeMembership

    if args.probability is not None:
        return BernoulliMembership(args.probability), people * args.probability
    members = people // 2 if args.members is None else int(args.members)
    return FixedSizeMembership(members), members


def _defences(args: argparse.Namespace, attributes: int, size: float) -> dict[str, Noise]:
    """Names and noises."""
    import math

    from ..studies.membership.noises import GaussianNoise, LaplaceNoise, LInfinityNoise, NoNoise

    if args.noise is None:
        if not (args.utility > 0 and math.isfinite(args.utility)):
            raise DomainError(f"--utility must be positive and finite; got {args.utility}. Take {_UTILITY}.")
        # E|y_j| is sigma sqrt(2 / pi), c, and c (m + 1) / 2
        return {
            "none": NoNoise(), "Gaussian": GaussianNoise(args.utility * math.sqrt(math.pi / 2)),
            "Laplace": LaplaceNoise(args.utility), "L-infinity": LInfinityNoise(2 * args.utility / (attributes + 1)),
        }
    n = max(1, math.floor(size))
    makers: dict[str, Any] = {
        "gaussian:": GaussianNoise, "gaussian:sigma=": GaussianNoise, "laplace:scale=": LaplaceNoise,
        "laplace:epsilon=": lambda x: LaplaceNoise.from_epsilon(x, n, attributes), "linf:scale=": LInfinityNoise,
        "linf:epsilon=": lambda x: LInfinityNoise.from_epsilon(x, n, attributes),
    }
    result: dict[str, Noise] = {}
    for text in args.noise:
        number = re.split("[:=]", text)[-1]
        kind = text.removesuffix(number)
        if text == "none":
            result[text] = NoNoise()
            continue
        try:
            result[text] = makers[kind](float(number))
        except (KeyError, ValueError) as error:
            if isinstance(error, DomainError):
                raise
            raise DomainError(
                f"--noise must be none, gaussian:SIGMA, laplace:epsilon=E, laplace:scale=B, linf:epsilon=E or "
                f"linf:scale=B; got {text!r}. Write laplace:epsilon=60 for the privacy of the whole release, or "
                "laplace:scale=0.05 for the scale of the noise."
            ) from None
    return result


def _table(study: AttackStudy) -> str:
    from ..base.table import aligned
    from ..studies.membership.studies import shown

    head = ("defence", "attack", "AUC", f"TPR at FPR {study.settings['fpr']:g}", "advantage",
            f"BWMA, gamma={study.settings['gamma']:g}", "utility loss")
    lines = aligned(
        [head, *((outcome.defence, outcome.attack, *map(shown, outcome.numbers())) for outcome in study.outcomes)]
    )
    lines += ["", f"A constant release would lose {shown(study.constant_loss)} and say nothing (AUC 0.5)."]
    lines += [f"Of {len(names)} rows: {text}." for text, names in study.remarks().items()]
    return "\n".join(lines)
