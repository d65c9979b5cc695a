"""The comparisons of the paper's figure: orders are read from intervals, and exact attacks are not beaten."""

import doctest
import itertools
from pathlib import Path

import numpy as np
import pytest

from fastpriv import DomainError, Estimate, datasets
from fastpriv.membership import GaussianNoise, GeneratorNoise, Panel, paper_comparisons, paper_statements
from fastpriv.membership.paper_figure import _of_function, _order
from fastpriv.membership.study_page import save_paper

GENOTYPES = datasets.genotypes()


def number(value, lower, upper):
    return Estimate(value, lower, upper, kind="statistical", unit="probability", method="given", confidence=0.95)


def test_orders_are_read_from_intervals():
    high, low, wide = number(0.9, 0.85, 0.95), number(0.6, 0.55, 0.65), number(0.7, 0.6, 0.9)
    assert _order(("a", high), ("b", low)) == ("a above b", "holds: 0.900 > 0.600")
    assert _order(("a", low), ("b", high)) == ("a above b", "does not hold: 0.600 < 0.900")
    assert _order(("a", high), ("b", wide), "text") == ("text", "not decided at this size: 0.900 and 0.700")


def test_a_function_of_the_membership_is_looked_up():
    bits = np.random.default_rng(1).random((30, 6)) < 0.5
    pool, others = Panel(bits[:6]), Panel(bits[6:])
    frequencies = {members: bits[list(members)].mean(axis=0) for members in itertools.combinations(range(6), 3)}
    constant = GeneratorNoise(lambda b, nu: 0.5 - pool.counts(b) / 3, 1)
    _, posterior, loss = _of_function(pool, others, constant, 50, np.random.SeedSequence(1))
    assert np.all(posterior == 0.5)
    assert loss == pytest.approx(np.mean([np.abs(0.5 - f).mean() for f in frequencies.values()]), rel=0.1)
    shift = GeneratorNoise(lambda b, nu: (b @ np.arange(6.0))[:, None] / 100 * np.ones(6), 1)
    simulated, posterior, _ = _of_function(pool, others, shift, 50, np.random.SeedSequence(1))
    released = {m: (f + sum(m) / 100).round(9).tobytes() for m, f in frequencies.items()}
    for row, b in zip(posterior, simulated.membership, strict=True):
        mine = tuple(np.flatnonzero(b))
        same = [m for m in released if released[m] == released[mine]]
        assert np.allclose(row, np.mean([np.isin(np.arange(6), m) for m in same], axis=0))


def test_panels(tmp_path):
    found = paper_comparisons(GENOTYPES, GENOTYPES.select(people=np.arange(200)), panels="bcef", n_releases=300, rng=1)
    assert [one.panel for one in found.comparisons] == ["b", "c", "e", "f"]
    for one in found.comparisons[:3]:
        aucs = {attack: auc for _, attack, auc in one.aucs}
        assert max(aucs.values(), key=lambda auc: auc.value) is aucs["Bayes"]
    whole, some = (auc for _, _, auc in found.comparisons[3].aucs)
    assert some.upper < whole.lower
    assert "(c) Four attackers" in repr(found)
    again = paper_comparisons(GENOTYPES, panels="c", n_releases=300, rng=1)
    assert again.comparisons[0].aucs == found.comparisons[1].aucs
    paths = save_paper(found, paper_statements(), tmp_path)
    page = paths[-1].read_text()
    assert "Theorem 12, (2) to (1)" in page
    assert "(f) Equal weighted utility loss" in page
    assert len(paths[0].read_text().splitlines()) == 1 + sum(len(one.aucs) for one in found.comparisons)


def test_without_data_of_adult():
    found = paper_comparisons(GENOTYPES, panels="e", n_releases=100, rng=1)
    assert found.comparisons[0].aucs == ()
    assert "no data" in found.comparisons[0].remark


def test_bad_arguments():
    with pytest.raises(DomainError, match=r"^panels must be letters from a to f; got 'ag'\. Write 'abcdef' for all\.$"):
        paper_comparisons(GENOTYPES, panels="ag")
    with pytest.raises(DomainError, match=r"^panel must have at least 40 people and 2 attributes of frequency"):
        paper_comparisons(GENOTYPES.select(people=np.arange(20)))
    with pytest.raises(DomainError, match=r"^panel must be a .*Panel"):
        paper_comparisons(GaussianNoise(1.0))


def test_the_examples_of_the_documentation():
    path = Path(__file__).parents[2] / "docs" / "membership.md"
    found = doctest.testfile(str(path), module_relative=False, optionflags=doctest.ELLIPSIS)
    assert found.attempted > 10
    assert not found.failed
