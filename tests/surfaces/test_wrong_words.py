"""Every option of the command line with words that cannot be meant: exit code 2 and one sentence, no traceback."""

import argparse

import numpy as np
import pytest

from fastpriv import GaussianMixture
from fastpriv.cli.main import main, program_parser
from fastpriv.distributions import write_mixture

WORDS = (
    "x", "", "-1", "0", "nan", "inf", "1e400", "0x10", "1:2:1000000000000", "2..1:3", "a,b", ",", "1,2,", "9" * 30,
    "nowhere/at/all.csv", "\u00e9",
)


def commands(tmp_path):
    """A valid command line for each subcommand, without the options."""
    (tmp_path / "ages.csv").write_text("age\n31\n40\n40\n58\n")
    (tmp_path / "jobs.csv").write_text("job,zip\nnurse,1\nclerk,2\nnurse,3\n")
    write_mixture(tmp_path / "p.json", GaussianMixture.single(0.0, 1.0))
    write_mixture(tmp_path / "q.json", GaussianMixture.single(1.0, 1.0))
    np.save(tmp_path / "l.npy", [0.0, -1.0, -2.0])
    quick = ["--quiet", "--figure-format", "none", "--format", "csv"]
    return {
        "assess": ["ages.csv", "--sigma", "1", "--epsilon", "1", "--out", "report", *quick],
        "divergence": ["p.json", "q.json"], "posterior": ["l.npy"], "convert": ["abp", "--from", "mbp", "--xi", "1"],
        "figures": ["figure9"],
    }


def options(command):
    (group,) = (one for one in program_parser()._actions if isinstance(one, argparse._SubParsersAction))
    for action in group.choices[command]._actions:
        if action.option_strings and action.nargs != 0:
            yield action.option_strings[-1]


def wrong(tmp_path, every, first=0):
    cases = [
        [name, *base, option, word]
        for name, base in commands(tmp_path).items() for option in options(name) for word in WORDS
        if option != "--out" or "/" in word
    ]
    return cases[first::every]


def said_of(words, capsys):
    """What is wrong with how a command line takes its words; None for nothing."""
    try:
        code = main(words)
    except SystemExit as end:  # by argparse
        code = end.code
    except Exception as error:
        return f"{words}: {type(error).__name__}: {error}"
    text = capsys.readouterr().err
    if code not in (0, 2):
        return f"{words}: code {code}"
    if code == 2 and not (text.startswith("fastpriv: error: ") and text.count("\n") == 1 and "Traceback" not in text):
        return f"{words}: {text!r}"
    return None


def test_wrong_words_are_told_in_one_sentence(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    faults = [fault for words in wrong(tmp_path, 11) if (fault := said_of(words, capsys))]
    assert not faults, "\n".join(faults)


@pytest.mark.slow
def test_all_wrong_words_are_told_in_one_sentence(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    faults = [fault for words in wrong(tmp_path, 1) if (fault := said_of(words, capsys))]
    assert not faults, "\n".join(faults)
