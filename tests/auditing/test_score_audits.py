"""Audits of scores: which counts each choice takes, ties, orders, errors; figure."""

import numpy as np
import pytest

from fastpriv import DomainError, figures
from fastpriv.errors import ShapeError
from fastpriv.studies.auditing import OneRun, RepeatedRuns, audit_epsilon, audit_gaussian_dp, audit_scores

RNG = np.random.default_rng(5)
MEMBER = RNG.random(600) < 0.5
SCORES = RNG.normal(size=600) + 1.5 * MEMBER


def test_a_threshold_that_is_passed_gives_the_bounds_of_its_counts():
    audit = audit_scores(SCORES, MEMBER, threshold=1.2, delta=1e-3)
    claimed = SCORES >= 1.2
    runs = RepeatedRuns((claimed & MEMBER).sum(), MEMBER.sum(), (claimed & ~MEMBER).sum(), (~MEMBER).sum())
    assert audit.epsilon.lower == audit_epsilon(runs, delta=1e-3).lower
    assert audit.mu.lower == audit_gaussian_dp(runs).lower
    assert audit.epsilon.value == audit_epsilon(runs, delta=1e-3).value
    assert (audit.selection, audit.audited.tolist()) == ("fixed", [1.2])
    assert audit.pointwise.lower.tolist() == [audit.epsilon.lower]


def test_ranks_that_are_fixed_share_the_error():
    audit = audit_scores(SCORES, MEMBER)
    n1, n0 = int(MEMBER.sum()), int((~MEMBER).sum())
    inside, outside = np.sort(SCORES[MEMBER]), np.sort(SCORES[~MEMBER])[::-1]
    ranks = [[k for k in (0, 1, 2, 4, 8, 16, 32, 64, 128, 256) if 2 * k <= n] for n in (n0, n1)]
    total = len(ranks[0]) + len(ranks[1])
    level = 1 - 0.05 / total
    runs = [RepeatedRuns((inside > outside[k]).sum(), n1, k, n0) for k in ranks[0]]
    runs += [RepeatedRuns(n1 - k, n1, (outside >= inside[k]).sum(), n0) for k in ranks[1]]
    best = max(audit_epsilon(one, confidence=level).lower for one in runs)
    assert audit.epsilon.lower <= best * (1 + 1e-12)
    assert audit.epsilon.lower == pytest.approx(best, rel=0.05)  # the screening may take a neighbour of the best
    assert audit.epsilon.lower < audit.pointwise.lower.max()


def test_ties_count_as_their_rank():
    """All scores are equal but one: the rank of the threshold counts, not the claims that exceed it."""
    scores = np.zeros(200)
    member = np.arange(200) < 100
    scores[0] = 1.0
    audit = audit_scores(scores, member)
    assert audit.epsilon.lower == 0.0
    separated = audit_scores(member.astype(float), member)
    assert 2.0 < separated.epsilon.lower < audit_epsilon(RepeatedRuns(100, 100, 0, 100)).lower


@pytest.mark.slow
def test_one_run_guesses_at_both_ends():
    audit = audit_scores(SCORES, MEMBER, design="one_run", guesses=101, delta=1e-4)
    order = np.argsort(-SCORES)
    correct = MEMBER[order[:51]].sum() + (~MEMBER[order[-50:]]).sum()
    assert audit.epsilon.lower == audit_epsilon(OneRun(correct, 101, 600), delta=1e-4).lower
    assert audit.mu.lower == audit_gaussian_dp(OneRun(correct, 101, 600)).lower
    several = audit_scores(SCORES, MEMBER, design="one_run")
    assert several.audited.tolist() == [18, 37, 75, 150, 300, 600]
    best = 0.0
    for r in (18, 37, 75, 150, 300, 600):
        correct = MEMBER[order[: -(-r // 2)]].sum() + (~MEMBER[order[600 - r // 2 :]]).sum()
        best = max(best, audit_epsilon(OneRun(correct, r, 600), confidence=1 - 0.05 / 6).lower)
    assert several.epsilon.lower == pytest.approx(best, rel=1e-12)


def test_ties_of_one_run_do_not_tell_the_order_of_rows():
    member = np.arange(400) < 200
    assert audit_scores(np.zeros(400), member, design="one_run").epsilon.lower == 0.0


@pytest.mark.slow
def test_rows_are_audits_of_their_own():
    member = np.stack([MEMBER, ~MEMBER])
    scores = np.stack([SCORES, -SCORES])
    for words in ({}, {"selection": "split"}, {"selection": "as_published"}, {"design": "one_run"}, {"threshold": 0.3}):
        both = audit_scores(scores, member, **words)
        assert both.pointwise is None
        assert both.audited.size == 0
        for row in range(2):
            one = audit_scores(scores[row], member[row], **words)
            assert (both.epsilon.lower[row], both.mu.lower[row]) == (one.epsilon.lower, one.mu.lower)
            assert one.epsilon.kind == ("heuristic" if "as_published" in words.values() else "statistical")


def test_scores_that_separate_find_more():
    rng = np.random.default_rng(2)
    member = rng.random(1000) < 0.5
    weak, strong = (audit_scores(rng.normal(size=1000) + shift * member, member).mu.lower for shift in (0.5, 3.0))
    assert 0.1 < weak < 0.5 < 2.0 < strong < 3.0


def test_what_is_refused():
    with pytest.raises(ShapeError, match=r"scores must be of shape \(n,\) or \(A, n\)"):
        audit_scores(0.5, [True])
    with pytest.raises(DomainError, match="scores must be numbers; got nan"):
        audit_scores([0.5, np.nan], [True, False])
    with pytest.raises(ShapeError, match="membership must"):
        audit_scores([0.5, 0.1], [True, False, True])
    with pytest.raises(ShapeError, match="membership must be of the shape of scores"):
        audit_scores([0.5, 0.1], [[True, False], [True, True]])
    with pytest.raises(DomainError, match="membership must have members and non-members; got no non-members"):
        audit_scores([0.5, 0.1], [True, True])
    with pytest.raises(DomainError, match=r"got no members in audit 1 \(1 of 2 audits\)"):
        audit_scores([[0.5, 0.1], [0.5, 0.1]], [[True, False], [False, False]])
    with pytest.raises(DomainError, match="membership must come from fair coins in one run; got 599 members of 600"):
        audit_scores(SCORES, np.arange(600) > 0, design="one_run")
    with pytest.raises(DomainError, match="guesses must be left out for repeated runs"):
        audit_scores(SCORES, MEMBER, guesses=10)
    with pytest.raises(DomainError, match="threshold must be left out for one run"):
        audit_scores(SCORES, MEMBER, threshold=0.5, design="one_run")
    with pytest.raises(DomainError, match="selection must be simultaneous or as_published for one run"):
        audit_scores(SCORES, MEMBER, selection="split", design="one_run")
    with pytest.raises(DomainError, match="guesses must be an integer"):
        audit_scores(SCORES, MEMBER, guesses=601, design="one_run")
    with pytest.raises(DomainError, match="design must be one of"):
        audit_scores(SCORES, MEMBER, design="two_runs")
    with pytest.raises(DomainError, match="delta must be between 0 and 1"):
        audit_scores(SCORES, MEMBER, delta=-1.0)


@pytest.mark.slow
def test_figure():
    pytest.importorskip("matplotlib")
    for words in ({}, {"design": "one_run"}, {"selection": "as_published"}):
        audit = audit_scores(SCORES, MEMBER, delta=1e-2, **words)
        ax = figures.audit(audit, truth=2.0, title="Title")
        texts = [text.get_text() for text in ax.get_legend().get_texts()]
        assert texts[0] == "lower bound at each alone"
        assert ("FALSE" in texts[1]) == (audit.epsilon.kind == "heuristic")
        assert texts[2] == "truth"
        assert ax.get_lines()[1].get_ydata()[0] == audit.epsilon.lower
        assert ax.get_lines()[0].get_ydata().tolist() == audit.pointwise.lower.tolist()
    with pytest.raises(DomainError, match="result must be a ScoreAudit of one audit"):
        figures.audit(audit_scores(np.stack([SCORES, SCORES]), MEMBER))
    with pytest.raises(DomainError, match="truth must be at least 0"):
        figures.audit(audit_scores(SCORES, MEMBER), truth=-1.0)
