"""``fastpriv compose``: tables, options, events of other accountants, pictures; one line for what is wrong."""

import csv
import io
import json
import math

import numpy as np
import pytest

from fastpriv import GaussianMechanism, GaussianMixture, compose
from fastpriv.adapters.step_tables import make_step, read_steps
from fastpriv.cli import main
from fastpriv.distributions import write_mixture

DELTA_1 = 0.12693673750664394  # of mu = 1 at epsilon 1, by mpmath (Balle and Wang 2018, theorem 8)


def said(capsys, *words):
    """The JSON document of a command."""
    assert main(["compose", *map(str, words), "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def wrong(capsys, *words):
    """The line of a command that fails."""
    assert main(["compose", *map(str, words)]) == 2
    error = capsys.readouterr().err
    assert error.startswith("fastpriv: error: ")
    assert error.count("\n") == 1
    return error


def test_one_kind_of_step(capsys):
    found = said(capsys, "--sigma", 10, "--count", 100, "--epsilon", "1", "--delta", f"0,{DELTA_1},1")
    delta, none, one, all_ = found["table"]
    assert delta["lower"] <= DELTA_1 * (1 + 1e-15)
    assert delta["upper"] >= DELTA_1 * (1 - 1e-15)
    assert delta["upper"] - delta["lower"] < 1e-12
    assert delta["log_value"] == pytest.approx(math.log(DELTA_1))
    assert none["value"] == "inf"
    assert one["value"] == pytest.approx(1.0, rel=1e-12)
    assert all_["value"] == 0.0
    assert found["steps"] == [{"kind": "gaussian", "count": 100, "sigma": 10.0, "sensitivity": 1.0}]


def test_tables_say_the_same(tmp_path, capsys):
    rows = "# noise of each part\nkind,sigma,epsilon,count\n\ngaussian,4,,16\nrandomized_response,,0.5,3\n"
    (tmp_path / "a.csv").write_text(rows)
    (tmp_path / "b.csv").write_text("\ufeff" + rows.replace(",", " ; "))
    (tmp_path / "c.toml").write_text(
        "\ufeff[[step]]\nkind = 'gaussian'\nsigma = 4\ncount = 16\n[[step]]\nkind = 'randomized_response'\n"
        "epsilon = 0.5\ncount = 3\n"
    )
    texts = set()
    for name in ("a.csv", "b.csv", "c.toml"):
        assert main(["compose", str(tmp_path / name), "--epsilon", "0:2:3", "--csv"]) == 0
        texts.add(capsys.readouterr().out)
    assert len(texts) == 1
    table = list(csv.DictReader(io.StringIO(texts.pop())))
    assert [row["at"] for row in table] == ["0.0", "1.0", "2.0"]
    expected = compose([make_step({"kind": "gaussian", "sigma": 4}).pair(),
                        make_step({"kind": "randomized_response", "epsilon": 0.5}).pair()], [16, 3])
    assert float(table[2]["upper"]) == expected.delta(2.0).upper
    assert {row["source"] for row in table} == {"fastpriv"}


def test_every_kind_of_step(tmp_path):
    write_mixture(tmp_path / "p.json", GaussianMixture([0.5, 0.5], [0.0, 1.0], 1.0))
    write_mixture(tmp_path / "q.json", GaussianMixture.single(0.0, 1.0))
    (tmp_path / "steps.csv").write_text(
        "kind,sigma,rate,scale,epsilon,delta,k,p,q,group_size,count\n"
        "sampled_gaussian,2,0.1,,,,,,,2,1e1\nlaplace,,,2,,,,,,,2\nrandomized_response,,,,1,,5,,,,1\n"
        "approximate_dp,,,,1,0.125,,,,,1\nmixtures,,,,,,,p.json,q.json,,1\ndiscrete,,,,,,,0.25 0.75,0.5 0.5,,1\n"
    )
    steps = read_steps(tmp_path / "steps.csv")
    assert [step.count for step in steps] == [10, 2, 1, 1, 1, 1]
    assert steps[0].pair().group_size == 2
    assert steps[2].pair().k == 5
    one = compose(steps[3].pair())
    assert float(one.delta(1.0).value) == pytest.approx(0.125, rel=1e-12)
    assert float(one.delta(0.0).value) == pytest.approx(0.125 + 0.875 * math.tanh(0.5), rel=1e-12)
    assert steps[4].pair()[0].means[1] == 1.0
    assert float(compose(steps[5].pair()).delta(0.0).value) == pytest.approx(0.25)
    toml = tmp_path / "one.toml"
    toml.write_text("[[step]]\nkind = 'discrete'\np = [0.25, 0.75]\nq = [0.5, 0.5]\n")
    assert np.array_equal(read_steps(toml)[0].pair()[0], steps[5].pair()[0])


def test_searches(capsys):
    target = ("--epsilon", 1, "--delta", 1e-5)
    found = said(capsys, "--count", 4, "--least-sigma", *target)["table"][0]
    assert GaussianMechanism(found["upper"] / 2, 1.0).delta(1.0).upper <= 1e-5 * (1 + 1e-12)
    assert GaussianMechanism(found["lower"] / 2, 1.0).delta(1.0).lower > 1e-5 * (1 - 1e-9)
    assert found["upper"] - found["lower"] < 1e-8
    found = said(capsys, "--sigma", 10, "--largest-count", *target)["table"][0]
    assert found["lower"] == found["upper"] == 7.0


@pytest.mark.parametrize(
    ("words", "first", "assumed"),
    [
        ("--sigma 2", "1 release: 1 x gaussian, sigma 2; direction: both have the same delta", ["count", "rate"]),
        ("--sigma 2 --count 3", "3 releases: 3 x gaussian, sigma 2; direction: both", ["rate"]),
        ("--sigma 2 --rate 0.5", "1 release: 1 x sampled gaussian, sigma 2, rate 0.5; direction: worst", ["count"]),
        ("--sigma 2 --rate 0.5 --count 3000 --direction add",
         "3,000 releases: 3,000 x sampled gaussian, sigma 2, rate 0.5; direction: backward (add a record)", []),
    ],
)
def test_the_output_says_what_was_composed_and_assumed(capsys, words, first, assumed):
    """A forgotten --count was one release without a word, and --rate no sampling."""
    said = {"count": "--count was not given: 1 release.", "rate": "--rate was not given: no sampling, rate 1."}
    assert main(["compose", *words.split(), "--epsilon", "1"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith(first)
    assert lines[1 : lines.index("")] == [said[name] for name in assumed]
    assert main(["compose", *words.split(), "--epsilon", "1", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert f"{document['composed']}; direction: {document['direction']}" == lines[0]
    assert document["assumed"] == lines[1 : lines.index("")]
    assert main(["compose", *words.split(), "--epsilon", "1", "--csv"]) == 0
    streams = capsys.readouterr()
    assert streams.err.splitlines() == [f"fastpriv: {said[name]}" for name in assumed]
    assert streams.out.startswith("source,quantity")


def test_searches_say_what_they_search(capsys):
    target = ["--epsilon", "2", "--delta", "1e-6"]
    assert main(["compose", "--rate", "0.01", *target, "--least-sigma"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "sampled gaussian, rate 0.01; direction: that of the mechanism"
    assert lines[1] == "--count was not given: 1 release."
    assert main(["compose", "--sigma", "2", "--rate", "0.1", *target, "--largest-count"]) == 0
    first = "sampled gaussian, sigma 2, rate 0.1; direction: that of the mechanism"
    assert capsys.readouterr().out.startswith(first + "\n\n")


def test_an_ordered_pair_names_its_direction_and_the_larger_one(tmp_path, capsys):
    (tmp_path / "a.csv").write_text("kind,p,q,count\ndiscrete,.5 .5,.25 .75,2\n")
    assert main(["compose", str(tmp_path / "a.csv"), "--epsilon", "0.0953"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].endswith("direction: forward, p against q as they are written")
    assert "that of q against p is larger: at epsilon = 0.0953 delta is at most 0.268755 forward" in lines[1]
    assert "and at least 0.287502 backward" in lines[1]
    assert main(["compose", str(tmp_path / "a.csv"), "--epsilon", "0.0953", "--direction", "forward"]) == 0
    assert "larger" not in capsys.readouterr().out


def test_directions(capsys):
    words = ("--sigma", 1, "--rate", 0.1, "--count", 50, "--epsilon", 1)
    values = {}
    for name in ("remove", "add", "worst"):
        values[name] = said(capsys, *words, "--direction", name)["table"][0]["value"]
    assert values["remove"] == values["worst"] > 1.01 * values["add"] > 0.0
    assert said(capsys, *words)["table"][0]["value"] == values["worst"]


@pytest.mark.slow
def test_events(tmp_path, capsys):
    sampled = {"class_name": "PoissonSampledDpEvent", "sampling_probability": 0.25,
               "event": {"class_name": "GaussianDpEvent", "noise_multiplier": 3.0}}
    history = [[3.0, 0.25, 100]]
    contents = {"list": history, "state": {"history": history, "mechanism": "rdp"}, "events": [sampled] * 100,
                "event": {"class_name": "SelfComposedDpEvent", "count": 100, "event": sampled}}
    table = said(capsys, "--sigma", 3, "--rate", 0.25, "--count", 100, "--epsilon", 2)["table"]
    for name, content in contents.items():
        (tmp_path / f"{name}.json").write_text("\ufeff" + json.dumps(content), encoding="utf-8")
        assert said(capsys, tmp_path / f"{name}.json", "--epsilon", 2)["table"] == table
    response = {"class_name": "RandomizedResponseDpEvent", "noise_parameter": 0.5, "num_buckets": 3}
    (tmp_path / "response.json").write_text(json.dumps(response))
    words = (tmp_path / "response.json", "--delta", 0, "--figure", tmp_path / "a.svg")
    # of three values the true one is released with probability 1/2 + 1/6, each other one with 1/6
    found = said(capsys, *words, "--relation", "replace_one")["table"][0]
    assert found["value"] == pytest.approx(math.log(4.0))
    assert "relation" in wrong(capsys, *words)


@pytest.mark.slow
def test_pictures(tmp_path, capsys):
    for ending, start in ((".png", b"\x89PNG"), (".svg", b"<?xml")):
        picture = tmp_path / f"curve{ending}"
        assert main(["compose", "--sigma", "5", "--count", "10", "--figure", str(picture)]) == 0
        assert picture.read_bytes().startswith(start)
        assert str(picture) in capsys.readouterr().out
    (tmp_path / "steps.toml").write_text("[[step]]\nkind = 'approximate_dp'\nepsilon = 1\ndelta = 0.5\n")
    words = ["compose", str(tmp_path / "steps.toml"), "--figure", str(tmp_path / "floor.svg"), "--quiet"]
    assert main(words) == 0  # delta has a floor of 1/2
    assert main([*words, "--epsilon", "0:2:5"]) == 0
    out = capsys.readouterr().out
    assert "at least" in out
    assert "log10" in out


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ("--epsilon 1", "FILE or --sigma must be given; got neither"),
        ("--sigma 1", "--epsilon, --delta or --figure must be given; got none"),
        ("--sigma 0 --epsilon 1", "sigma must be positive and finite; got 0.0"),
        ("--sigma 1 --rate 2 --epsilon 1", "rate must be between 0 and 1; got 2.0"),
        ("--sigma 1 --count 1.5 --epsilon 1", "count must be an integer of at least 0; got 1.5"),
        ("--sigma 1 --count nan --epsilon 1", "count must be a number; got nan"),
        ("--sigma 1 --epsilon x", "--epsilon must be finite; got 'x'"),
        ("--sigma 1 --delta 2", "--delta must be from 0 to 1; got 2"),
        ("--sigma 1 --epsilon 0:1:100001", "--epsilon must be a grid of at most 100,000 points; got 100,001"),
        ("--sigma 1 --epsilon 1 --json --csv", "--json and --csv must not be given together"),
        ("--sigma 1 --figure a.bmp", "--figure must be a name that ends in .png, .svg or .pdf; got 'a.bmp'"),
        ("--least-sigma --epsilon 1", "--least-sigma must have one --epsilon and one --delta"),
        ("--least-sigma --largest-count --epsilon 1 --delta 0.1", "--least-sigma and --largest-count must not be"),
        ("--least-sigma --sigma 1 --epsilon 1 --delta 0.1", "FILE and --sigma must be left out with --least-sigma"),
        ("--largest-count --sigma 1 --count 2 --epsilon 1 --delta 0.1", "--count must be left out with"),
        ("two.csv --largest-count --epsilon 1 --delta 0.1", "--largest-count must have one step; got others"),
        ("two.csv --sigma 1 --epsilon 1", "--sigma must be left out where FILE is given; got 1.0"),
        ("none.json --rate 1 --epsilon 1", "--rate must be left out where FILE is given; got 1.0"),
        ("two.csv --relation replace_one --epsilon 1", "--relation must be left out where FILE has no events"),
        ("none.csv --epsilon 1", "none.csv must be readable or writable; got: No such file"),
    ],
)
def test_bad_options(tmp_path, monkeypatch, capsys, words, text):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "two.csv").write_text("kind,sigma\ngaussian,1\ngaussian,2\n")
    assert text in wrong(capsys, *words.split())


HEAD = "kind,sigma,rate,epsilon,p,q,count\n"


@pytest.mark.parametrize(
    ("name", "content", "text"),
    [
        ("a.csv", "", "'a.csv' must have at least one step; got none"),
        ("a.csv", HEAD + "\ngaussian,-1\n", "line 3 of 'a.csv' must be a step; got an entry where sigma must be"),
        ("a.csv", HEAD + "gaussian,one\n", "sigma must be a number; got 'one'"),
        ("a.csv", HEAD + "gaussian\n", "sigma must be given for gaussian; got none"),
        ("a.csv", HEAD + "gaussian,1,0.5\n", "rate must be left empty for gaussian; got '0.5'"),
        ("a.csv", HEAD + "normal,1\n", "kind must be one of gaussian, sampled_gaussian"),
        ("a.csv", HEAD + "gaussian,1,,,,,,9\n", "line 2 of 'a.csv' must have 7 cells, as the first; got 8"),
        ("a.csv", HEAD + "mixtures,,,,x.json,y.json\n", "file must be an existing .npz or .json file"),
        ("a.csv", HEAD + "discrete,,,,0.5 0.5,1\n", "p and q must have one probability for each outcome; got 2 and 1"),
        ("a.csv", HEAD + "discrete,,,,0.5 0.4,1 0\n", "p must sum to 1"),
        ("a.csv", HEAD + "gaussian,1,,,,,-1\n", "count must be an integer of at least 0; got -1"),
        ("a.csv", "kind,noise\n", "columns of 'a.csv' must be among kind, count, sigma"),
        ("a.csv", "kind,sigma,sigma\n", "columns of 'a.csv' must have different names; got 'sigma' twice"),
        ("a.csv", b"\xff\xfe\x00", "'a.csv' must be text in UTF-8"),
        ("a.toml", "x =", "'a.toml' must be a TOML file"),
        ("a.toml", "[step]\nkind='gaussian'\n", "'a.toml' must have entries [[step]] and nothing else"),
        ("a.toml", "[[step]]\nkind='approximate_dp'\nepsilon=-1\n", "step 1 of 'a.toml' must be a step"),
        ("a.toml", "[[step]]\nkind='approximate_dp'\nepsilon=1\ndelta=2\n", "delta must be between 0 and 1; got 2"),
        ("a.toml", "[[step]]\nkind='discrete'\np=1\nq=[1.0]\n", "p must be a list of numbers; got 1"),
        ("a.toml", "[[step]]\nkind='gaussian'\nsigma=[1, 2]\n", "step 1 of 'a.toml' must be a step; got an entry"),
        ("a.toml", "[[step]]\nkind=['gaussian']\nsigma=1\n", "kind must be one of gaussian, sampled_gaussian"),
        ("a.json", "{", "Write it with json.dump."),
        ("a.json", "[[1, 2]]", "must be events of dp_accounting or a history of Opacus; got one where history must be"),
        ("a.json", '{"class_name": "UnsupportedDpEvent"}', "got one where event must be"),
        ("a.json", "[" * 150 + "]" * 150, "history must be a list of"),
    ],
)
def test_bad_files(tmp_path, monkeypatch, capsys, name, content, text):
    monkeypatch.chdir(tmp_path)
    (tmp_path / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    error = wrong(capsys, name, "--epsilon", "1")
    assert text in error
    assert repr(name) in error


@pytest.mark.few(15)
@pytest.mark.parametrize(
    ("words", "kind", "parameters"),
    [
        ("--step fixed_size size=64 sample=8 --sigma 2", "fixed_size", {"sample": 8, "relation": "add_or_remove"}),
        ("--step truncated_poisson sigma=2 size=64 rate=.125 cap=10", "truncated_poisson", {"cap": 10, "size": 64}),
        ("--sigma 2 --rate .125 --relation replace_one", "poisson_sampled", {"relation": "replace_one", "sigma": 2}),
        ("--step fixed_size base=laplace scale=2 size=9 sample=3", "fixed_size", {"base": "laplace", "scale": 2}),
        ("--step shuffled n=100 epsilon0=1", "shuffled", {"n": 100, "epsilon0": 1}),
        ("--step shuffled_response n=20 epsilon0=1 k=3", "shuffled_response", {"n": 20, "epsilon0": 1, "k": 3}),
        ("--step shuffled_batches sigma=4 batches=10", "shuffled_batches", {"relation": "replace_one"}),
        ("--step selected sigma=4 gamma=.5 eta=0", "selected", {"eta": 0, "base": "gaussian"}),
        ("--step bounded_range epsilon=1", "bounded_range", {"epsilon": 1}),
        ("--step permute_and_flip epsilon=1", "permute_and_flip", {"epsilon": 1}),
        ("--step discrete_gaussian sigma=2", "discrete_gaussian", {"sigma": 2, "sensitivity": 1}),
        ("--step tree_aggregation sigma=4 leaves=8", "tree_aggregation", {"leaves": 8, "sigma": 4}),
        ("--step zero_concentrated_dp rho=.1", "zero_concentrated_dp", {"rho": 0.1, "xi": 0}),
        ("--step allocation sigma=2 steps=3", "allocation", {"steps": 3}),
        ("--step balls_in_bins sigma=2 bins=3 epochs=2", "balls_in_bins", {"bins": 3, "epochs": 2}),
        ("--step banded_matrix sigma=2 bins=3 coefficients=1\u00a00.5", "banded_matrix", {"bins": 3}),
        ("--step allocated steps=3 times=2 base=laplace scale=2", "allocated", {"times": 2, "base": "laplace"}),
        ("--step cyclic_poisson sigma=2 steps=9 rate=.1 separation=2 coefficients=1\u00a00.5", "cyclic_poisson",
         {"separation": 2, "relation": "add_or_remove"}),
        ("--step separated sigma=2 steps=9 rate=.1 separation=2 coefficients=1\u00a00.5", "separated", {"steps": 9}),
        ("--step selected_of_poisson sigma=4 mean=3", "selected_of_poisson", {"mean": 3, "base": "gaussian"}),
        ("--step renyi_dp orders=2\u00a08 epsilons=0.1\u00a00.5", "renyi_dp", {}),
        ("--step with_replacement sigma=2 size=9 sample=3", "with_replacement", {"size": 9, "sample": 3}),
    ],
)
def test_one_step_of_every_kind(capsys, tmp_path, words, kind, parameters):
    """The options, --step and a table of the same step have one answer, that of the class."""
    found = said(capsys, *words.split(" "), "--epsilon", 0.5)
    (step,) = found["steps"]
    assert step["kind"] == kind
    assert step.items() >= parameters.items()
    made = make_step({name: value for name, value in step.items() if name != "count"})
    expected = compose(made.pair()).delta(0.5)
    assert (found["table"][0]["lower"], found["table"][0]["upper"]) == (expected.lower, expected.upper)
    stated = found["composed"] + found["direction"] + "".join(found["assumed"])
    assert ("relation" in stated) == ("relation" in step)
    names = [name for name in step if name != "kind"]
    cells = [str(step[name]) for name in names]
    (tmp_path / "a.csv").write_text(f"kind,{','.join(names)}\n{kind},{','.join(cells)}\n")
    assert said(capsys, tmp_path / "a.csv", "--epsilon", 0.5)["table"] == found["table"]


@pytest.mark.parametrize(
    ("words", "remedy"),
    [
        ("--step shuffled n=100", "epsilon0 must be given for shuffled; got none"),
        ("--step shuffled epsilon0=1", "n must be given for shuffled"),
        ("--step shuffled n=100 epsilon0=-1", "local epsilon, at least 0"),
        ("--step shuffled n=100.5 epsilon0=1", "n must be an integer"),
        ("--step fixed_size sigma=2 size=8 sample=9", "sample must be an integer of at least 0 and at most 7; got 9"),
        ("--step gaussian sigma=2 size=8", "size must be left empty for gaussian; got '8'"),
        ("--step fixed_size sigma=2 sample=8", "size must be given for fixed_size"),
        ("--step truncated_poisson sigma=2 size=8 rate=2 cap=3", "rate must be"),
        ("--step fixed_size size=8 sample=3 --rate .1", "rate must be left empty for fixed_size"),
        ("--step fixed_size sigma=nan size=8 sample=3", "sigma must be"),
        ("--step fixed_size size=8 sample=3 base=lapace", "base must be one of"),
        ("--step fixed_size size=8 sample=3 base=randomized_response epsilon=1", "base must have noise on the line"),
        ("--step fixed size=8", "kind must be one of"),
        ("--step fixed_size 8", "--step must be a kind and NAME=VALUE; got '8'"),
        ("--step gaussian sigma=8 --sigma 8", "sigma must be given once"),
        ("--step fixed_size size=8 sample=3 sigma=1 relation=both", "relation must be one of"),
        ("--sigma 2 --relation replace_one", "relation must be left empty for gaussian"),
        ("--step allocated steps=3 times=4 sigma=1", "times must be an integer of at least 1 and at most 3; got 4"),
        ("--step cyclic_poisson sigma=2 steps=9 rate=.1 coefficients=1", "separation must be given for cyclic_poisson"),
        ("--step separated sigma=2 steps=9 rate=2 separation=2 coefficients=1", "rate must be between 0 and 1; got 2"),
        ("--step renyi_dp orders=2 epsilons=x", "epsilons must be a number; got 'x'"),
        ("--step selected_of_poisson sigma=2", "mean must be given for selected_of_poisson"),
        ("--step banded_matrix sigma=2 bins=3 coefficients=1;2", "coefficients must be a number"),
    ],
)
def test_a_step_that_is_none_is_one_line(capsys, words, remedy):
    assert remedy in wrong(capsys, *words.split(), "--epsilon", 1)
