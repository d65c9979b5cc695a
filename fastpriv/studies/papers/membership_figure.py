"""The comparisons (a) to (f) of figure 2 of the paper on Bayes-Nash generative privacy, each with what it claims.

They run at a size where the Bayes attack is exact, or enclosed: noise with a likelihood is attacked by enumeration, a
response that is a function of the membership by looking its releases up, a trained generator by mixtures over seeds.

Source: Zhang, Venkatesaramani, De, Malin and Vorobeychik 2024, Bayes-Nash generative privacy against membership
inference attacks, figure 2.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import time
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from ... import __version__
from ...base import parallel, random_streams, validate
from ...base.errors import DomainError
from ...base.estimate import Result
from ...base.parallel import Progress
from ...base.random_streams import RNGLike
from ...base.store import ResultStore
from ...base.table import CellType, Table
from ..membership.panels import Panel
from .figure_comparisons import NETWORKS, FigureSetup, PaperComparison, Unit, comparison, units_of

__all__ = ["PaperComparison", "PaperComparisons", "paper_comparisons"]

_PEOPLE, _ATTRIBUTES, _FEW = 16, 24, 10  # people of enumerated posteriors, attributes, people of other games
_FEW_ATTRIBUTES = 8  # of the other games: Gaussian noise does not tell everything then
_LETTERS = "abcdef"  # of the panels


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class PaperComparisons(Table, Result):
    """The panels that were computed.

    Parameters
    ----------
    comparisons : tuple of PaperComparison
        In order.
    description : str
        Sizes.
    seconds : float
        Time that this call took.

    Examples
    --------
    >>> from fastpriv import datasets
    >>> from fastpriv.membership import Panel, paper_comparisons
    >>> paper_comparisons(Panel(**datasets.genotypes()), panels="b", n_releases=200, rng=1).description
    '16 people, 8 of them members, 24 attributes, 200 releases each; ...'
    """

    comparisons: tuple[PaperComparison, ...]
    description: str
    seconds: float

    def column_types(self) -> dict[str, CellType]:
        """The columns of the table of AUCs."""
        return dict.fromkeys(("panel", "defence", "attack", "auc", "auc_lower", "auc_upper"), "")

    def rows(self) -> list[tuple[Any, ...]]:
        """One row an attack on a defence of a panel."""
        return [(one.panel, defence, attack, *auc.floats()) for one in self.comparisons
                for defence, attack, auc in one.aucs]  # fmt: skip

    def document(self) -> dict[str, Any]:
        """Plain types for JSON, without the ROC curves and the time."""
        return {"description": self.description, "comparisons": [
            {
                "panel": one.panel, "claim": one.claim, "setup": one.setup, "remark": one.remark,
                "aucs": [{"defence": defence, "attack": attack} | auc.to_dict() for defence, attack, auc in one.aucs],
                "verdicts": [{"claim": claim, "found": found} for claim, found in one.verdicts],
            } for one in self.comparisons
        ]}  # fmt: skip

    def __repr__(self) -> str:
        lines = [self.description]
        for one in self.comparisons:
            lines.append(f"\n({one.panel}) {one.claim}")
            lines += [f"    {defence}, {attack}: AUC {auc:.3f}" for defence, attack, auc in one.aucs]
            lines += [f"  * {claim}: {found}" for claim, found in one.verdicts]
            lines += [f"  {one.remark}"] if one.remark else []
        return "\n".join(lines)


def paper_comparisons(
    panel: Panel, adult: Panel | None = None, *, panels: str = _LETTERS, n_releases: int = 1000,
    networks: str = "small", rng: RNGLike = None, store: str | os.PathLike[str] | None = None,
    n_jobs: int | None = None, progress: Progress = None,
) -> PaperComparisons:  # fmt: skip
    """Run the comparisons of figure 2 again, with intervals, and say of each claim whether it holds here.

    Parameters
    ----------
    panel : Panel
        Genotypes of at least 40 people with at least 24 attributes that vary; people and attributes are drawn from it.
    adult : Panel, optional
        Binary attributes of other people, for comparison (e), which is left out without it.
    panels : str, default "abcdef"
        Which comparisons.
    n_releases : int, default 1000
        Releases of each defence, at least 100.
    networks : {"small", "paper"}
        Networks of the generators and of their attackers: "small" trains three of two layers of 128 for each game,
        "paper" one with the layers of the paper, for 600 steps, which takes an hour.
    rng : int, Generator or None
        Source of random numbers.
    store : path-like, optional
        A file that keeps the scores of each defence: the same call goes on where it was stopped. It needs an integer
        ``rng``. Files ``<store>-<number>.pt`` beside it hold the trainings that are not finished.
    n_jobs : int, optional
        Number of threads.
    progress : bool or callable, optional
        Whether a bar counts defences, or a function of the number done and the total.

    Returns
    -------
    PaperComparisons

    Raises
    ------
    DomainError
        For unknown letters and networks, panels that are too small, a store without an integer seed or of another call.

    Notes
    -----
    All defences of a comparison have the same utility loss. An order holds where its intervals, of level 0.95 each, do
    not overlap, and is not decided where they do. A generator stands for three, trained with seeds of their own: its
    AUCs are means, with intervals for the mean of these three. Without PyTorch (d), (e), (f) and the generator of (a)
    are not run, without scikit-learn the classifiers of (d); ``remark`` says so.

    **Accuracy** as ``evaluate_attack``; ``tests/membership/test_paper_comparisons.py``.

    Source: the head of fastpriv/studies/papers/membership_figure.py.

    Examples
    --------
    >>> from fastpriv import datasets
    >>> from fastpriv.membership import Panel, paper_comparisons
    >>> found = paper_comparisons(Panel(**datasets.genotypes()), panels="b", n_releases=400, rng=1)
    >>> found.comparisons[0].verdicts[0]
    ('Bayes above adaptive LRT', 'holds: 0.99... > 0.8...')
    """
    validate.instance("panel", panel, Panel)
    if adult is not None:
        validate.instance("adult", adult, Panel)
    count = validate.count("n_releases", n_releases, 100, validate.MOST_ENTRIES)
    if not isinstance(panels, str) or not panels or set(panels) - set(_LETTERS):
        raise DomainError(f"panels must be letters from a to f; got {validate.shown(panels)}. Write 'abcdef' for all.")
    sizes = NETWORKS[validate.choice("networks", networks, tuple(NETWORKS))]
    parallel.checked(n_jobs, progress)
    if store is not None and not isinstance(rng, (int, np.integer)):
        raise DomainError(f"rng must be an integer with a store; got {validate.shown(rng)}. Pass rng=0, say.")
    root = random_streams.root(rng)
    start = time.perf_counter()
    torch, sklearn = (find_spec(name) is not None for name in ("torch", "sklearn"))
    pool, others = _drawn("panel", panel, _PEOPLE, _ATTRIBUTES, _seed(root, 0))
    columns = np.arange(min(_FEW_ATTRIBUTES, pool.n_attributes))
    few, few_others = pool.select(people=np.arange(_FEW), attributes=columns), others.select(attributes=columns)
    third, third_others = (None, None) if adult is None else _drawn(
        "adult", adult, _FEW, _FEW_ATTRIBUTES, _seed(root, 1))  # fmt: skip
    setting = FigureSetup(pool, others, few, few_others, third, third_others, sizes, torch, count, n_jobs)
    chosen = sorted(set(panels))
    every = list(dict.fromkeys(name for letter in _LETTERS for name in units_of(letter, setting)))
    makers = {name: maker for letter in chosen for name, maker in units_of(letter, setting).items()}
    identity = {"version": __version__, "comparisons": json.dumps(
        [networks, sizes, torch, sklearn, count, int(rng) if isinstance(rng, (int, np.integer)) else None, _digest(
            [one for one in (pool, others, third, third_others) if one is not None])])}  # fmt: skip
    report, close = parallel.progress_reporter(progress, len(makers))
    found: dict[str, Unit] = {}
    try:
        with nullcontext() if store is None else ResultStore.open(store, identity=identity) as kept:
            for done, (name, maker) in enumerate(makers.items(), start=1):
                key = every.index(name)
                payload = None if kept is None else kept.get(key)
                if kept is None or payload is None:
                    checkpoint = None if kept is None else f"{os.fspath(store)}-{key}.pt"  # type: ignore[arg-type]
                    found[name] = maker(_seed(root, 2 + key), found, checkpoint)
                    if kept is not None:
                        kept.put_many([(key, _packed(found[name]))])
                        with suppress(FileNotFoundError):
                            Path(str(checkpoint)).unlink()
                else:
                    found[name] = kept.unpacked(payload, _unpacked)
                report(done)
    finally:
        close()
    description = (
        f"{_PEOPLE} people, {_PEOPLE // 2} of them members, {_ATTRIBUTES} attributes, {count:,} releases each; all but "
        f"(b): {_FEW} people, {_FEW // 2} of them members, {_FEW_ATTRIBUTES} attributes. Networks: {networks}."
    )
    comparisons = tuple(comparison(letter, setting, found) for letter in chosen)
    return PaperComparisons(comparisons, description, time.perf_counter() - start)


def _seed(root: Any, key: int) -> np.random.SeedSequence:
    return np.random.SeedSequence(random_streams.stream_words(root, (key,), 2).tolist())


def _drawn(name: str, panel: Panel, people: int, attributes: int, seed: Any) -> tuple[Panel, Panel]:
    """People and references of attributes that vary, but not rarely."""
    random = np.random.default_rng(seed)
    p = panel.frequencies()
    common = np.flatnonzero((p >= 0.05) & (p <= 0.95))
    if panel.n_people < 40 or common.size < 2:
        raise DomainError(
            f"{name} must have at least 40 people and 2 attributes of frequency 0.05 to 0.95; got {panel.n_people} and "
            f"{common.size}. Give a larger one."
        )
    columns = np.sort(random.choice(common, min(attributes, common.size), replace=False))
    order = random.permutation(panel.n_people)[:1000]
    pool = panel.select(people=np.sort(order[:people]), attributes=columns)
    return pool, panel.select(people=np.sort(order[people:]), attributes=columns)


def _digest(panels: list[Panel]) -> str:
    digest = hashlib.blake2b(digest_size=16)
    for one in panels:
        digest.update(repr((one.n_people, one.n_attributes)).encode() + one.packed.tobytes())
    return digest.hexdigest()


def _packed(unit: Unit) -> bytes:
    """A unit as the bytes of an archive of arrays."""
    stream = io.BytesIO()
    scores = {f"score {i}": one for i, one in enumerate(unit.scores.values())}
    titles = np.array(json.dumps(list(unit.scores)))
    np.savez(stream, titles=titles, membership=unit.membership, losses=unit.losses, allow_pickle=False, **scores)
    return stream.getvalue()


def _unpacked(payload: bytes) -> Unit:
    with np.load(io.BytesIO(payload), allow_pickle=False) as found:
        titles = json.loads(str(found["titles"]))
        scores = {title: found[f"score {i}"] for i, title in enumerate(titles)}
        return Unit(found["membership"], found["losses"], scores)
