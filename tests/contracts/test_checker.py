"""Certificates are proved by tools/checker, which shares no code with the package; false ones are refused."""

import copy
import importlib
import json
import math
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import fastpriv
from fastpriv import (
    DomainError,
    GaussianMechanism,
    GaussianMixture,
    LaplaceMechanism,
    PoissonSampledGaussian,
    certificate,
    compose,
)

pytest.importorskip("flint")
CHECKER = Path(__file__).parents[2] / "tools" / "checker"
DIVERGENCES = ("kl_divergence", "jensen_shannon", "renyi_divergence", "hockey_stick_divergence", "total_variation")
P, Q = GaussianMixture([0.25, 0.75], [0.0, 1.0], 1.0), GaussianMixture([0.5, 0.5], [-0.5, 0.5], [1.0, 1.25])
ROWS = [[0.5, 0.5, 0.0], [0.0, 0.5, 0.5], [0.25, 0.5, 0.25]]
SAMPLED = compose(PoissonSampledGaussian(2.0, 0.125), 300)
MANY = compose([GaussianMechanism(4.0, 1.0), LaplaceMechanism(4.0), ([0.5, 0.5], [0.25, 0.75])], [4, 2, 3])
CALLS = {
    "kl_divergence": (fastpriv.kl_divergence, P, Q),
    "jensen_shannon": (fastpriv.jensen_shannon, P, Q, {"unit": "bits"}),
    "renyi_divergence": (fastpriv.renyi_divergence, P, Q, 1.5),
    "renyi below one": (fastpriv.renyi_divergence, Q, P, 0.25),
    "hockey_stick_divergence": (fastpriv.hockey_stick_divergence, P, Q, 0.25),
    "total_variation": (fastpriv.total_variation, P, Q),
    "channel_capacity": (fastpriv.channel_capacity, ROWS),
    "bac_capacity": (fastpriv.bac_capacity, 0.125, 0.25),
    "awgn_capacity": (fastpriv.awgn_capacity, 1, 1.5),
    "posterior": (fastpriv.posterior, np.array([0.0, -1.0, -2.0]), np.array([0.5, 0.25, 0.25])),
    "Gaussian": (compose(GaussianMechanism(2.0, 1.0), 3).delta, 1.0),
    "sampled Gaussian": (SAMPLED.delta, 2.0),
    "one sampled Gaussian": (compose(PoissonSampledGaussian(2.0, 0.125)).delta, 0.0625),
    "Laplace": (compose(LaplaceMechanism(2.0), 4).log_delta, 0.5),
    "outcomes": (compose(([0.5, 0.25, 0.25], [0.25, 0.5, 0.25]), 6).delta, 0.5),
    "randomized response": (compose(fastpriv.RandomizedResponse(4, 1.0), 5).delta, 1.5),
    "an infinite loss": (compose(([0.5, 0.25, 0.25], [0.5, 0.5, 0.0]), 3).delta, 0.5),
    "outcomes and Laplace": (compose([([0.5, 0.5], [0.25, 0.75]), LaplaceMechanism(4.0)], [2, 3]).delta, 0.25),
    "all kinds": (MANY.delta, 0.5),
    "epsilon": (MANY.epsilon, 1e-3),
}


@pytest.fixture(scope="module")
def reason():
    """The function that returns why a certificate is refused, "" where it is proved."""
    names = [path.stem for path in CHECKER.glob("*.py")]
    held = {name: sys.modules.pop(name) for name in names if name != "__main__" and name in sys.modules}
    sys.path.insert(0, str(CHECKER))
    try:
        spec = importlib.util.spec_from_file_location("certificate_checker", CHECKER / "__main__.py")
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(str(CHECKER))
        for name in names:
            sys.modules.pop(name, None) if name != "__main__" else None
        sys.modules.update(held)

    def refusal(statement):
        try:
            module.check(json.loads(json.dumps(statement)))
        except Exception as error:  # the command refuses by any
            return f"{type(error).__name__}: {error}"
        return ""

    return refusal


def made(call):
    function, *arguments = call
    options = arguments.pop() if isinstance(arguments[-1], dict) else {}
    return certificate(function, *arguments, **options)


@pytest.mark.parametrize("name", CALLS)
def test_a_certificate_of_each_kind_is_proved(name, reason):
    statement = made(CALLS[name])
    assert reason(statement) == ""
    (lower, upper, unit), *_ = statement["bounds"].values()
    answer = getattr(statement.answer, "capacity", getattr(statement.answer, "log_evidence", statement.answer))
    assert (float.fromhex(lower), float.fromhex(upper), unit) == (answer.lower, answer.upper, answer.unit)


def test_the_checker_imports_flint_alone():
    code = "import sys; sys.path.insert(0, sys.argv[1]); import compositions, capacities, posteriors; "
    code += "print(*sys.modules)"
    result = subprocess.run([sys.executable, "-c", code, str(CHECKER)], capture_output=True, text=True, check=True)
    assert "flint" in result.stdout.split()
    assert not {"numpy", "fastpriv"} & {name.partition(".")[0] for name in result.stdout.split()}


def test_the_command_says_whether_a_file_is_proved(tmp_path):
    statement = made(CALLS["bac_capacity"])
    assert statement.save(tmp_path / "proved.json") == tmp_path / "proved.json"
    statement["bounds"]["bac_capacity"][2] = "bits"
    statement.save(tmp_path / "false.json")
    (tmp_path / "other.json").write_text("[1]")
    for name, status, text in (
        ("proved", 0, "verified: bac_capacity"), ("false", 1, "refused: bac_capacity: the bracket is false"),
        ("other", 1, "refused: this is no certificate"), ("absent", 1, "refused: this is no certificate"),
    ):
        command = [sys.executable, str(CHECKER), str(tmp_path / f"{name}.json")]
        result = subprocess.run(command, capture_output=True, text=True)
        assert (result.returncode, result.stdout.startswith(text)) == (status, True), result.stdout + result.stderr


def shifted(statement):
    """A bracket as wide, just above the true one: it is false, since the truth lies in the true one."""
    false = copy.deepcopy(statement)
    for entry in false["bounds"].values():
        lower, upper = (float.fromhex(text) for text in entry[:2])
        start = math.nextafter(upper, math.inf)
        entry[:2] = start.hex(), (start + (upper - lower)).hex()
    return false


def with_other_unit(statement):
    """Nats as bits or bits as nats: false, unless the number is 0."""
    false = copy.deepcopy(statement)
    others = {"nats": "bits", "bits": "nats", "probability": "log probability", "log probability": "nats"}
    for entry in false["bounds"].values():
        entry[2] = others[entry[2]]
    return false


def with_other_hint(statement):
    """A dual point that proves another bracket."""
    false = copy.deepcopy(statement)
    name = "probabilities" if "probabilities" in false["hints"] else "output"
    weights = [float.fromhex(text) for text in false["hints"][name]]
    weights[0] = 0.9 * weights[0] if len(weights) > 1 else 0.5
    false["hints"][name] = [(weight / math.fsum(weights)).hex() for weight in weights]
    if len(weights) == 1:
        false["hints"]["radii"] = [(0.5 * float.fromhex(false["hints"]["radii"][0])).hex()]
    return false


TAMPERED = [
    *((name, shifted) for name in CALLS if name not in ("all kinds", "posterior")),
    ("kl_divergence", with_other_unit), ("channel_capacity", with_other_unit), ("Laplace", with_other_unit),
    ("channel_capacity", with_other_hint), ("awgn_capacity", with_other_hint),
]


@pytest.mark.parametrize(("name", "tamper"), TAMPERED)
def test_false_certificates_are_refused(name, tamper, reason):
    assert reason(tamper(made(CALLS[name])))


@pytest.mark.parametrize(("change", "expected"), [
    (lambda s: s["inputs"].update(a="0x1.8p-3"), "the bracket is false"),
    (lambda s: s["inputs"].update(a="0x1p+1"), "a and b must be between 0 and 1"),
    (lambda s: s["inputs"].update(a="inf"), "numbers must be finite"),
    (lambda s: s.update(version=2), "version 1"),
    (lambda s: s.update(bounds={}), "and bounds"),
    (lambda s: s["bounds"].update(kl_divergence=s["bounds"]["bac_capacity"]), "do not belong to bac_capacity"),
    (lambda s: s["bounds"]["bac_capacity"].__setitem__(2, "probability"), "the unit must not be"),
    (lambda s: s["bounds"]["bac_capacity"].__setitem__(0, "0x1p+0"), "at most the upper one"),
])
def test_statements_that_are_none_are_refused(change, expected, reason):
    statement = made(CALLS["bac_capacity"])
    change(statement)
    assert expected in reason(statement)


def test_answers_without_a_proof_have_no_certificate():
    plane = GaussianMixture([0.5, 0.5], [[0, 0], [1, 2]], [[1.0, 2.0], [2.0, 1.0]])
    for message, function, *arguments in (
        (r"^function must be one whose answers have certificates; got .*abs.*Pass one of kl_divergence", abs, 1),
        (r"^p must be a GaussianMixture in one dimension for a certificate; got", fastpriv.kl_divergence, plane, plane),
        (r"^p must be a GaussianMixture in one dimension", fastpriv.kl_divergence, [0.5, 0.5], [0.25, 0.75]),
        (r"^hockey_stick_divergence must be one finite number", fastpriv.hockey_stick_divergence, P, Q, [0.0, 1.0]),
        (r"^renyi_divergence must be one finite number a call", fastpriv.renyi_divergence, Q, P, 1e3),
        (r"^order must be made of finite doubles", fastpriv.renyi_divergence, P, P, math.inf),
        (r"^channel must be an array with one row", fastpriv.channel_capacity, fastpriv.RandomizedResponse(3, 1.0)),
        (r"^dimension and method must be 1 and by single spheres", fastpriv.awgn_capacity, 2, 1.0),
        (r"^release must be Gaussian noise", compose(GaussianMechanism(1.0, 1.0).delta).delta, 1.0),
        (r"^composition must be known by its pairs", compose(fastpriv.pairs.RenyiDP(2.0, 1.0)).delta, 1.0),
    ):
        with pytest.raises(DomainError, match=message):
            certificate(function, *arguments)
    with pytest.raises(DomainError, match="^function must return proved bounds; got kl_divergence .*certified=True"):
        certificate(fastpriv.kl_divergence, plane, GaussianMixture.single([0.0, 0.0], 1.0), rng=1, max_samples=1024)
    with pytest.raises(DomainError, match="^likelihood must be an array of logarithms"):
        certificate(fastpriv.posterior, [0.5, 0.25], log=False)
    with pytest.raises(DomainError, match="complement_a and complement_b must be None for a certificate"):
        certificate(fastpriv.bac_capacity, 1.0, 0.5, complement_a=1e-300)


def random_mixture(rng):
    size = int(rng.integers(1, 4))
    return GaussianMixture(rng.dirichlet(np.ones(size)), 3 * rng.normal(size=size), np.exp(0.5 * rng.normal(size=size)))


def random_rows(rng):
    inputs, outputs = rng.integers(2, 6, size=2)
    return rng.dirichlet(np.full(outputs, rng.choice([0.3, 1.0, 10.0])), inputs)


def random_release(rng, kind):
    """A pair and how often it is released."""
    if kind == "gaussian":
        return GaussianMechanism(float(rng.integers(2, 64)), 1.0), int(rng.integers(1, 50))
    if kind == "laplace":
        return LaplaceMechanism(float(np.exp(2 * rng.random()) + 0.5)), int(rng.integers(1, 20))
    if kind == "sampled":
        mechanism = PoissonSampledGaussian(float(1.0 + 2 * rng.random()), float(0.02 + 0.2 * rng.random()))
        return mechanism, int(rng.integers(100, 1000))
    return tuple(rng.dirichlet(np.ones(3), 2)), int(rng.integers(1, 12))


def random_call(rng, kind):
    """A function and its arguments."""
    unit = {"unit": str(rng.choice(["nats", "bits"]))}
    if kind in DIVERGENCES:
        numbers = {"renyi_divergence": [float(rng.choice([0.3, 0.8, 1.05]))],
                   "hockey_stick_divergence": [float(2 * rng.random() - 0.5)]}.get(kind, [])
        options = {} if kind in ("hockey_stick_divergence", "total_variation") else unit
        q = random_mixture(rng)
        q = GaussianMixture(q.weights, q.means, 3 * q.sigmas) if kind == "renyi_divergence" else q
        return getattr(fastpriv, kind), random_mixture(rng), q, *numbers, options
    if kind == "channel_capacity":
        return fastpriv.channel_capacity, random_rows(rng), unit
    if kind == "bac_capacity":
        return fastpriv.bac_capacity, float(rng.random()), float(rng.random()), unit
    if kind == "awgn_capacity":
        return fastpriv.awgn_capacity, 1, float(0.05 + 2.2 * rng.random()), unit
    if kind == "posterior":
        size = int(rng.integers(2, 40))
        return fastpriv.posterior, 3 * rng.normal(size=size), rng.dirichlet(np.ones(size))
    kinds = {"mixed": ["gaussian", "laplace", "outcomes"]}.get(kind, [kind])
    releases = [random_release(rng, item) for item in kinds]
    composed = compose([pair for pair, _ in releases], [count for _, count in releases])
    if rng.random() < 0.25:
        return composed.epsilon, float(10.0 ** rng.integers(-8, -2)), {"direction": "worst"}
    return composed.delta, float(np.round(2 * rng.random(), 3)), {"direction": "forward"}


#: kind -> number of random answers that are proved
NUMBERS = {
    **dict.fromkeys(DIVERGENCES, 90), "channel_capacity": 130, "bac_capacity": 100, "awgn_capacity": 40,
    "posterior": 100, "gaussian": 50, "laplace": 40, "outcomes": 40, "mixed": 30, "sampled": 20,
}


def with_other_input(statement, call, rng):
    """The bounds of one call with the inputs of another, whose proved bounds are disjoint; None where they overlap."""
    other = made(call)
    false = {**copy.deepcopy(statement), "inputs": other["inputs"]}
    (low, high, unit), *_ = statement["bounds"].values()
    (other_low, other_high, other_unit), *_ = other["bounds"].values()
    numbers = [float.fromhex(text) for text in (low, high, other_low, other_high)]
    return false if unit == other_unit and (numbers[1] < numbers[2] or numbers[3] < numbers[0]) else None


def with_other_digit(statement, rng):
    """One hexadecimal digit of both bounds changed, so that the bracket leaves the old one; None where it does not."""
    false = copy.deepcopy(statement)
    name = str(rng.choice(list(false["bounds"])))
    lower, upper, unit = false["bounds"][name]
    position = int(rng.integers(1, 13))
    digit = "0123456789abcdef"[rng.integers(16)]
    changed = []
    for text in (lower, upper):
        start = text.index(".") + position
        changed.append(text[:start] + digit + text[start + 1 :] if start < text.index("p") else text)
    numbers = [float.fromhex(text) for text in (lower, upper, *changed)]
    if not (numbers[3] < numbers[0] or numbers[1] < numbers[2]):
        return None
    false["bounds"][name] = [*changed, unit]
    return false


def generator(kind, number):
    return np.random.default_rng([3011, number, sum(map(ord, kind))])


@pytest.mark.slow
@pytest.mark.parametrize("kind", NUMBERS)
def test_random_answers_are_proved(kind, reason):
    for number in range(NUMBERS[kind]):
        statement = made(random_call(generator(kind, number), kind))
        assert reason(statement) == "", (number, statement)


@pytest.mark.slow
@pytest.mark.parametrize("kind", NUMBERS)
def test_random_false_statements_are_refused(kind, reason):
    """At least 22 of each kind: digits of bounds, inputs, units and hints."""
    refused = 0
    for number in range(10 if kind == "sampled" else 14):
        rng = generator(kind, number)
        statement = made(random_call(rng, kind))
        tampered = [with_other_digit(statement, rng), shifted(statement)]
        if kind == "sampled":  # epsilon and delta alike
            tampered.append(with_other_digit(statement, rng))
        elif statement["quantity"] not in ("delta", "epsilon"):
            tampered.append(with_other_input(statement, random_call(rng, kind), rng))
            tampered.append(with_other_unit(statement) if kind in DIVERGENCES[:3] else None)
        tampered.append(with_other_hint(statement) if statement["hints"] else None)
        for false in tampered:
            if false is not None:
                assert reason(false), (number, false)
                refused += 1
    assert refused >= 22
