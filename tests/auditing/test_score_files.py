"""Files of scores, and the command that audits them."""

import json

import numpy as np
import pytest

from fastpriv import DomainError
from fastpriv.base.numerics import rounded_down
from fastpriv.cli import main
from fastpriv.errors import SamplingWarning
from fastpriv.studies.auditing import OneRun, RepeatedRuns, audit_epsilon, audit_scores, read_scores

RNG = np.random.default_rng(8)
MEMBER = RNG.random(300) < 0.5
SCORES = RNG.normal(size=300) + 2.0 * MEMBER


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "scores.csv"
    rows = (f"{score!r},{int(member)}\n" for score, member in zip(SCORES.tolist(), MEMBER, strict=True))
    path.write_text("score,member\n" + "".join(rows))
    return path


@pytest.mark.parametrize(
    ("inside", "outside"), [("True", "False"), ("in", "out"), ("1", "-1"), (" Member", "non-member")]
)
def test_words_of_memberships(tmp_path, inside, outside):
    path = tmp_path / "words.csv"
    path.write_text(f"name,membership,loss\nA,{inside},0.5\nB,{outside},0.25\n")
    scores, member = read_scores(path, score="loss", member="membership")
    assert scores.tolist() == [0.5, 0.25]
    assert member.tolist() == [True, False]


@pytest.mark.slow
def test_formats_say_the_same(tmp_path, table):
    scores, member = read_scores(table)
    assert scores.tolist() == SCORES.tolist()
    assert member.tolist() == MEMBER.tolist()
    np.savez(tmp_path / "scores.npz", scores=np.stack([SCORES, SCORES]), membership=np.where(MEMBER, 1, -1))
    scores, member = read_scores(tmp_path / "scores.npz")
    assert scores.shape == (2, 300)
    assert member.tolist() == MEMBER.tolist()
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    pandas.DataFrame({"x": SCORES, "score": SCORES, "member": MEMBER}).to_parquet(tmp_path / "scores.parquet")
    scores, member = read_scores(tmp_path / "scores.parquet")
    assert scores.tolist() == SCORES.tolist()
    assert member.tolist() == MEMBER.tolist()


def test_dialects_of_score_files(tmp_path, capsys):
    path = tmp_path / "scores.txt"
    path.write_text("score;member\n0,5;in\n0,25;out\n", encoding="utf-16")
    scores, member = read_scores(path, sep=";", decimal=",", encoding="utf-16")
    assert scores.tolist() == [0.5, 0.25]
    assert member.tolist() == [True, False]
    assert main(["audit", str(path), "--sep", ";", "--encoding", "utf-16", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["members"] == 1
    path.write_text("score,member\n0.5,in\n-,out\n")
    with pytest.raises(DomainError, match="column must have no missing values"):
        read_scores(path, na="-")
    np.savez(tmp_path / "scores.npz", scores=SCORES, membership=MEMBER)
    with pytest.raises(DomainError, match="na must be left out for an archive; got '-'. Drop it."):
        read_scores(tmp_path / "scores.npz", na="-")


@pytest.mark.thread_unsafe  # its threads would write one file
def test_what_is_wrong_with_a_file(tmp_path, table):
    with pytest.raises(FileNotFoundError):
        read_scores(tmp_path / "none.csv")
    with pytest.raises(FileNotFoundError, match="path must be a file"):
        read_scores(tmp_path / "none.npz")
    with pytest.raises(DomainError, match="path must be a file with a column 'loss'; got score, member"):
        read_scores(table, score="loss")
    table.write_text("score,member\n1,1\n2,maybe\n")
    with pytest.raises(DomainError, match="path must have memberships 1 and 0; got 'maybe' at row 2"):
        read_scores(table)
    table.write_text("score,member\nhigh,1\n2,0\n")
    with pytest.raises(DomainError, match="column must be numbers; got 'high' at row 1"):
        read_scores(table)
    np.savez(tmp_path / "a.npz", scores=SCORES)
    with pytest.raises(DomainError, match="path must be an archive with the array 'membership'; got scores"):
        read_scores(tmp_path / "a.npz")
    (tmp_path / "b.npz").write_bytes((tmp_path / "a.npz").read_bytes()[:-30])
    with pytest.raises(DomainError, match="path must be whole"):
        read_scores(tmp_path / "b.npz")


def test_command(table, capsys, tmp_path):
    assert main(["audit", str(table), "--delta", "0.01"]) == 0
    text = capsys.readouterr().out
    want = audit_scores(SCORES, MEMBER, delta=0.01)
    assert f"epsilon >= {rounded_down(want.epsilon.lower, 6)} nats at delta = 0.01" in text
    assert f"mu >= {rounded_down(want.mu.lower, 6)}" in text
    assert "claim" not in text
    assert main(["audit", str(table), "--one-run", "--guesses", "40", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    want = audit_scores(SCORES, MEMBER, design="one_run", guesses=40)
    assert found["epsilon"]["lower"] == want.epsilon.lower
    assert found["mu"]["confidence"] == 0.95
    assert "claim" not in found
    assert main(["audit", str(table), "--selection", "as_published"]) == 0
    assert "FALSE as published" in capsys.readouterr().out
    assert main(["audit", str(table), "--one-run", "--threshold", "1"]) == 2
    assert "threshold must be left out for one run" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.parametrize("claim", [0.0, 0.1, 9.0, np.inf])
@pytest.mark.parametrize("one_run", [False, True])
def test_command_says_whether_a_claim_is_refuted(table, capsys, tmp_path, claim, one_run):
    words = ["audit", str(table), "--claim", str(claim), *(["--one-run"] if one_run else [])]
    want = audit_scores(SCORES, MEMBER, design="one_run" if one_run else "repeated_runs")
    refuted = bool(want.epsilon.lower > claim)
    assert main(words) == int(refuted)
    line = capsys.readouterr().out.splitlines()[-1]
    bound = rounded_down(float(want.epsilon.lower), 4)
    assert line.startswith(
        f"claim epsilon = {claim:g} at delta = 0 is {'refuted' if refuted else 'not refuted'} at confidence 0.95 "
        f"(at least {bound}): "
    )
    assert float(bound) <= want.epsilon.lower
    if one_run:
        assert line.endswith("{} right of {} guesses about {} canaries".format(*want.counts))
        assert want.counts.tolist()[2] == 300
        run = OneRun(*want.counts)
    else:
        assert line.endswith("{} of {} members and {} of {} non-members claimed".format(*want.counts))
        assert want.counts[[1, 3]].tolist() == [MEMBER.sum(), (~MEMBER).sum()]
        run = RepeatedRuns(*want.counts)
    tried = 5 if one_run else 16  # numbers of guesses, or thresholds, that share the error
    assert audit_epsilon(run, confidence=1 - 0.05 / tried).lower == pytest.approx(want.epsilon.lower, rel=1e-9)
    assert main([*words, "--json"]) == int(refuted)
    found = json.loads(capsys.readouterr().out)
    assert (found["refuted"], found["verdict"]) == (refuted, line)
    assert found["claim"] == (claim if np.isfinite(claim) else "inf")  # as json_safe writes it for all commands
    assert (found["members"], found["non_members"]) == (MEMBER.sum(), (~MEMBER).sum())
    assert found["counts"] == want.counts.tolist()
    pytest.importorskip("matplotlib")
    assert main([*words, "--figure", str(tmp_path / "a.svg")]) == int(refuted)
    drawn = (tmp_path / "a.svg").read_text()
    assert line.partition(": ")[0] in drawn  # matplotlib writes each text as a comment
    assert "truth" not in drawn


def test_command_says_false_of_what_is_false(table, capsys):
    assert main(["audit", str(table), "--selection", "as_published", "--claim", "0.1"]) == 1
    assert "is refuted as published, which is FALSE (at least" in capsys.readouterr().out


def test_command_of_several_audits(tmp_path, capsys):
    path = tmp_path / "two.npz"
    np.savez(path, scores=np.stack([SCORES, SCORES]), membership=MEMBER)
    assert main(["audit", str(path)]) == 2
    assert "FILE must have the scores of one audit to print; got 2 audits" in capsys.readouterr().err
    assert main(["audit", str(path), "--json", "--claim", "1"]) == 2
    assert "claim must be judged by one audit; got 2 audits" in capsys.readouterr().err
    assert main(["audit", str(path), "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)["counts"]) == 2
    assert main(["audit", str(path), "--json", "--claim", "-1"]) == 2
    assert "claim must be at least 0; got -1" in capsys.readouterr().err


def test_scores_of_the_wrong_sign(tmp_path, capsys):
    path = tmp_path / "losses.npz"
    np.savez(path, scores=-SCORES, membership=MEMBER)
    assert main(["audit", str(path)]) == 0
    out, err = capsys.readouterr()
    assert "epsilon >= 0 nats" in out
    assert err.startswith("fastpriv: warning: scores must be higher for members, and here members score lower (AUC 0.0")
    assert err.endswith("pass -scores.\n")
    for design in ("repeated_runs", "one_run"):
        with pytest.warns(SamplingWarning, match="members score lower .* pass -scores"):
            audit_scores(-SCORES, MEMBER, design=design)
        with pytest.warns(SamplingWarning, match="members score lower"):
            audit_scores(np.stack([-SCORES, -SCORES]), MEMBER, design=design)
    audit_scores(np.zeros(300), MEMBER)  # no warning where members score like others
    audit_scores(RNG.normal(size=(200, 300)), MEMBER)
