"""What people get wrong at first: each mistake is one sentence that names the remedy."""

import numpy as np
import pytest

import fastpriv
from fastpriv import Channel, RandomizedResponse, cli, notions
from fastpriv.base.errors import DomainError

CHANNEL = Channel([[0.8, 0.2], [0.1, 0.9]])


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: fastpriv.posterior(CHANNEL), r"got a channel, Channel.*Pass channel\.column\(release\)"),
        (lambda: notions.ldp_epsilon(CHANNEL, [0.5, 0.5]), "got a channel.*The prior goes first, then the channel"),
        (lambda: fastpriv.assess([1, 2], mechanism="geometrik"), "Did you mean geometric?"),
        (
            lambda: fastpriv.assess(mechanism=[[0.8, 0.2], [0.1, 0.9]]),
            r"Wrap rows .* in fastpriv\.Channel",
        ),
        (lambda: fastpriv.assess([1, 2], mechanism=[[0.5, 0.5]]), "mechanism must be a name or a channel, or a"),
        (lambda: fastpriv.channel_capacity(CHANNEL, unit="bit"), "Did you mean bits?"),
        (lambda: fastpriv.conversions.convert("mpb", "ldp", epsilon=1.0), "Did you mean mbp?"),
        (lambda: CHANNEL.sample([0, 5]), r"got 5 at index 1 \(1 of 2 entries\). Count from 0."),
    ],
)
def test_the_remedy_is_named(call, said):
    with pytest.raises(DomainError, match=said):
        call()


def said_by(capsys, *words):
    assert cli.main(list(words)) == 2
    return capsys.readouterr().err


def test_a_mechanism_that_is_none_is_said_before_any_file_is_read(capsys):
    assert "mechanism must be one of" in said_by(capsys, "assess", "nothing.csv", "--mechanism", "rrr")


def test_names_where_noise_needs_numbers(tmp_path, capsys):
    (tmp_path / "race.csv").write_text("race\nwhite\nblack\n")
    assert "or a mechanism for categories, such as rr" in said_by(capsys, "assess", str(tmp_path / "race.csv"))


def test_rows_with_names(tmp_path):
    (tmp_path / "named.csv").write_text(",a,b\nwhite,0.5,0.5\nblack,0.1,0.9\n")
    with pytest.raises(DomainError, match=r"line 2 must be numbers.*got 'white' \(leave out names of rows\)"):
        fastpriv.channels.read_channel(tmp_path / "named.csv")


def test_a_directory_that_is_not_there(tmp_path, capsys):
    np.save(tmp_path / "l.npy", [0.0, -1.0])
    text = said_by(capsys, "posterior", str(tmp_path / "l.npy"), "--out", str(tmp_path / "none" / "p.npy"), "--quiet")
    assert f"got '{tmp_path / 'none' / 'p.npy'}': No such file or directory. Make its directory first" in text


def test_a_posterior_prints_in_a_line():
    text = repr(fastpriv.posterior(RandomizedResponse(2**200, 1.0).column(3)))
    assert text.startswith("Posterior(size=")
    assert ", xi=1 [0.9999999, 1.000001], " in text
    assert len(text) < 400
