"""Files of scores, and the command that audits them."""

import json

import numpy as np
import pytest

from fastpriv import DomainError
from fastpriv.auditing import audit_scores, read_scores
from fastpriv.cli import main

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
    assert f"epsilon >= {want.epsilon.lower:.6g} nats at delta = 0.01" in text
    assert f"mu >= {want.mu.lower:.6g}" in text
    assert main(["audit", str(table), "--one-run", "--guesses", "40", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    want = audit_scores(SCORES, MEMBER, design="one_run", guesses=40)
    assert found["epsilon"]["lower"] == want.epsilon.lower
    assert found["mu"]["confidence"] == 0.95
    assert main(["audit", str(table), "--claim", "0.1"]) == 1
    assert main(["audit", str(table), "--selection", "as_published"]) == 0
    assert "FALSE as published" in capsys.readouterr().out
    assert main(["audit", str(table), "--one-run", "--threshold", "1"]) == 2
    assert "threshold must be left out for one run" in capsys.readouterr().err


def test_command_draws(table, tmp_path):
    pytest.importorskip("matplotlib")
    assert main(["audit", str(table), "--figure", str(tmp_path / "a.svg"), "--claim", "9"]) == 0
    assert "lower bound, simultaneous" in (tmp_path / "a.svg").read_text() or (tmp_path / "a.svg").stat().st_size > 5000
