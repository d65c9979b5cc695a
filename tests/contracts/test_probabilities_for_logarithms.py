"""``posterior`` takes logarithms, and warns of numbers that look like probabilities."""

import subprocess
import sys

import numpy as np
import pytest

from fastpriv import posterior
from fastpriv.channels import DenseLikelihood, ProductLikelihood
from fastpriv.cli import main

TEXT = r"likelihood must hold natural logarithms; got \d+ numbers in \[0, 1\] that sum to 1.*Pass log=False \(--plain\)"
PROBABILITIES = {
    "list": [0.1, 0.2, 0.7],
    "zeros": [0.0, 0.5, 0.5],
    "one sure": [0.0, 1.0],
    "float32": np.array([0.1, 0.2, 0.7], dtype=np.float32),
    "float16": np.array([0.25, 0.75], dtype=np.float16),
    "integers": np.array([0, 1, 0]),
    "many": np.random.default_rng(1).dirichlet(np.ones(600_000)),  # three blocks
    "nearly one": [0.1, 0.2, 0.7 + 1e-12],
}
LOGARITHMS = {
    "logs": np.log([0.1, 0.2, 0.7]),
    "no sum": [0.9, 0.2, 0.3],
    "not near enough": [0.1, 0.2, 0.7 + 1e-6],
    "above": [1.5, -0.5, 0.0],
    "all alike": [0.0, 0.0, 0.0],
    "one secret": [1.0],
    "less one": np.array([0.1, 0.2, 0.7]) - 1.0,
    "a last entry below": np.append(np.random.default_rng(1).dirichlet(np.ones(600_000)), -1e-9),
}


@pytest.mark.parametrize("name", PROBABILITIES)
def test_probabilities_are_warned_of(name, tmp_path):
    numbers = PROBABILITIES[name]
    with pytest.warns(UserWarning, match=TEXT) as told:
        posterior(numbers)
    assert told[0].filename == __file__
    with pytest.warns(UserWarning, match=TEXT):
        posterior(DenseLikelihood(numbers))
    np.save(tmp_path / "a.npy", np.asarray(numbers))
    with pytest.warns(UserWarning, match=TEXT):
        posterior(tmp_path / "a.npy")
    posterior(numbers, log=False)  # a warning would be an error here


@pytest.mark.parametrize("name", LOGARITHMS)
def test_logarithms_are_not(name, tmp_path):
    posterior(LOGARITHMS[name])
    np.save(tmp_path / "a.npy", np.asarray(LOGARITHMS[name]))
    posterior(tmp_path / "a.npy")


def test_the_remedy_changes_the_evidence_alone():
    plain = posterior(np.array([0.1, 0.2, 0.7]) - 1.0)
    with pytest.warns(UserWarning, match=TEXT):
        warned = posterior([0.1, 0.2, 0.7])
    assert warned.top.probabilities == pytest.approx(plain.top.probabilities, rel=1e-14)
    assert posterior([0.1, 0.2, 0.7], log=False).top.probabilities[0] == pytest.approx(0.7, rel=1e-14)
    assert warned.top.probabilities[0] == pytest.approx(0.464, abs=5e-4)


def test_factors_are_looked_at_too():
    with pytest.warns(UserWarning, match=TEXT):
        posterior(ProductLikelihood([[-1.0, -2.0], [0.25, 0.75]]))


def test_the_command_warns_on_one_line(tmp_path, capsys):
    np.save(tmp_path / "a.npy", np.array([0.1, 0.2, 0.7]))
    words = [sys.executable, "-m", "fastpriv", "posterior", str(tmp_path / "a.npy"), "--quiet"]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    assert done.stderr.startswith("fastpriv: warning: likelihood must hold natural logarithms; got 3 numbers")
    assert done.stderr.count("\n") == 1
    assert main([*words[3:], "--plain"]) == 0
    assert capsys.readouterr().err == ""
