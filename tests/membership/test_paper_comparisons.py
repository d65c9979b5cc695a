"""The comparisons of the paper's figure: orders are read from intervals, and exact attacks are not beaten."""

import doctest
import itertools
import json
from pathlib import Path

import numpy as np
import pytest

from fastpriv import DomainError, Estimate
from fastpriv.studies import datasets
from fastpriv.studies.membership import GaussianNoise, GeneratorNoise, Panel
from fastpriv.studies.papers import figure_comparisons, membership_figure, paper_comparisons, paper_statements
from fastpriv.studies.papers.figure_comparisons import Networks, Unit, _mean_auc, _order, looked_up
from fastpriv.studies.papers.membership_page import save_paper

GENOTYPES = Panel(**datasets.genotypes())


def number(value, lower, upper):
    return Estimate(value, lower, upper, kind="statistical", unit="probability", method="given", confidence=0.95)


def test_orders_are_read_from_intervals():
    high, low, wide = number(0.9, 0.85, 0.95), number(0.6, 0.55, 0.65), number(0.7, 0.6, 0.9)
    assert _order(("a", high), ("b", low)) == ("a above b", "holds: 0.900 > 0.600")
    assert _order(("a", low), ("b", high)) == ("a above b", "does not hold: 0.600 < 0.900")
    assert _order(("a", high), ("b", wide), "text") == ("text", "not decided at this size: 0.900 and 0.700")


def test_a_function_of_the_membership_is_looked_up():
    bits = np.random.default_rng(1).random((30, 6)) < 0.5
    pool = Panel(bits[:6])
    frequencies = {members: bits[list(members)].mean(axis=0) for members in itertools.combinations(range(6), 3)}
    constant = GeneratorNoise(lambda b, nu: 0.5 - pool.counts(b) / 3, 1)
    _, posterior, losses = looked_up(pool, constant, 50, np.random.SeedSequence(1))
    assert np.all(posterior == 0.5)
    assert losses.mean() == pytest.approx(np.mean([np.abs(0.5 - f).mean() for f in frequencies.values()]), rel=0.1)
    shift = GeneratorNoise(lambda b, nu: (b @ np.arange(6.0))[:, None] / 100 * np.ones(6), 1)
    simulated, posterior, _ = looked_up(pool, shift, 50, np.random.SeedSequence(1))
    released = {m: (f + sum(m) / 100).round(9).tobytes() for m, f in frequencies.items()}
    for row, b in zip(posterior, simulated.membership, strict=True):
        mine = tuple(np.flatnonzero(b))
        same = [m for m in released if released[m] == released[mine]]
        assert np.allclose(row, np.mean([np.isin(np.arange(6), m) for m in same], axis=0))


@pytest.mark.slow
def test_the_exact_attacker_is_enclosed_by_two_mixtures():
    rng = np.random.default_rng(1)
    b = rng.random((600, 4)) < 0.5
    low, high = (b + spread * rng.standard_normal(b.shape) for spread in (1.0, 0.6))
    scores = {"Bayes, drawing seeds": low, "Bayes, told the seeds": high}
    one = _mean_auc([Unit(b, np.zeros(600), scores)], "Bayes")
    both = [_mean_auc([Unit(b, np.zeros(600), {"a": x})], "a") for x in (low, high)]
    assert one.lower <= both[0].lower < both[0].value < one.value < both[1].value < both[1].upper <= one.upper
    pair = _mean_auc([Unit(b, np.zeros(600), {"a": x}) for x in (low, high)], "a")
    assert pair.value == pytest.approx((both[0].value + both[1].value) / 2)
    assert pair.confidence == 0.95


@pytest.mark.slow
def test_panels_without_generators(tmp_path, monkeypatch):
    found_spec = membership_figure.find_spec
    monkeypatch.setattr(membership_figure, "find_spec", lambda name: None if name == "torch" else found_spec(name))
    monkeypatch.setattr(membership_figure, "_FEW", 8)  # 70 memberships to respond to, and not 252
    adult = GENOTYPES.select(people=np.arange(200))
    found = paper_comparisons(GENOTYPES, adult, n_releases=100, rng=1, store=tmp_path / "store")
    assert [one.panel for one in found.comparisons] == list("abcdef")
    for one in found.comparisons[:3]:
        aucs = {attack: auc for _, attack, auc in one.aucs}
        assert max(aucs.values(), key=lambda auc: auc.value) is aucs["Bayes"]
    for one in found.comparisons[3:]:
        assert one.aucs == one.verdicts == one.curves == ()
        assert one.remark.startswith("Not run: a trained generator needs PyTorch")
    assert "needs PyTorch" in found.comparisons[0].remark
    assert "(c) Four attackers" in repr(found)
    seen = []
    again = paper_comparisons(GENOTYPES, adult, n_releases=100, rng=1, store=tmp_path / "store",
                              progress=lambda done, total: seen.append((done, total)))  # fmt: skip
    assert again.comparisons == found.comparisons
    assert seen[-1] == (5, 5)
    with pytest.raises(DomainError, match="store"):
        paper_comparisons(GENOTYPES, adult, n_releases=101, rng=1, store=tmp_path / "store")
    paths = save_paper(found, paper_statements(), tmp_path)
    page = paths[-1].read_text()
    assert "Theorem 12, (2) to (1)" in page
    assert "(f) Equal weighted utility loss" in page
    assert len(paths[0].read_text().splitlines()) == 1 + sum(len(one.aucs) for one in found.comparisons)
    document = json.loads(paths[2].read_text())
    assert document["comparisons"][1]["aucs"][0]["attack"] == "Bayes"
    assert len(document["statements"]) == 9


def test_panels_of_generators_and_a_run_that_was_killed(tmp_path, monkeypatch):
    pytest.importorskip("torch")
    pytest.importorskip("sklearn")
    tiny = Networks((8,), (8,), (8,), (8,), 30, 2)
    monkeypatch.setitem(membership_figure.NETWORKS, "small", tiny)
    monkeypatch.setattr(figure_comparisons, "_MIXTURE", 16)

    def stop(done, total):
        if done == 4:
            raise KeyboardInterrupt

    words = {"adult": GENOTYPES.select(people=np.arange(200)), "panels": "adef", "n_releases": 100, "rng": 1}
    whole = paper_comparisons(GENOTYPES, **words)
    with pytest.raises(KeyboardInterrupt):
        paper_comparisons(GENOTYPES, **words, store=tmp_path / "a", progress=stop)
    found = paper_comparisons(GENOTYPES, **words, store=tmp_path / "a")
    assert found.comparisons == whole.comparisons
    assert not list(tmp_path.glob("*.pt"))
    titles = [{attack for _, attack, _ in one.aucs} for one in found.comparisons]
    assert titles[1] >= {"Bayes", "decision trees", "SVM", "network, fresh", "network, trained with it", "any"}
    assert titles[2] >= {"Bayes", "adaptive LRT", "fixed LRT", "score"}
    for one in found.comparisons:
        assert "Means over 2 generators" in one.remark
        assert any(defence.startswith("generator (loss ") for defence, _, _ in one.aucs)
    json.dumps(found.document())


def test_without_data_of_adult():
    found = paper_comparisons(GENOTYPES, panels="e", n_releases=100, rng=1)
    assert found.comparisons[0].aucs == ()
    assert "no data" in found.comparisons[0].remark


def test_bad_arguments():
    with pytest.raises(DomainError, match=r"^panels must be letters from a to f; got 'ag'\. Write 'abcdef' for all\.$"):
        paper_comparisons(GENOTYPES, panels="ag")
    with pytest.raises(DomainError, match=r"^panel must have at least 40 people and 2 attributes of frequency"):
        paper_comparisons(GENOTYPES.select(people=np.arange(20)))
    with pytest.raises(DomainError, match=r"^networks must be one of small, paper; got 'large'"):
        paper_comparisons(GENOTYPES, networks="large")
    with pytest.raises(DomainError, match=r"^rng must be an integer with a store; got None"):
        paper_comparisons(GENOTYPES, store="store")
    with pytest.raises(DomainError, match=r"^panel must be a .*Panel"):
        paper_comparisons(GaussianNoise(1.0))


def test_the_examples_of_the_documentation():
    path = Path(__file__).parents[2] / "docs" / "membership.md"
    found = doctest.testfile(str(path), module_relative=False, optionflags=doctest.ELLIPSIS)
    assert found.attempted > 10
    assert not found.failed
