"""README, ARCHITECTURE and the pages of docs/ say what is so: the commands, the Python examples, the layers."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

import fastpriv
from contracts.test_layers import LAYERS

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()


DOCS = ROOT / "docs"
# Pages whose examples run one by one; those of auditing and composition are sessions with tests of their own.
PAGES = (
    "assessment", "channels", "conversions", "divergences", "leakage", "membership", "posteriors", "quad", "sweeps",
    "truths",
)


def fenced(language, text=README):
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)


def test_the_readme_is_read_in_ten_minutes():
    assert len(README.splitlines()) <= 200


def test_the_first_two_blocks_are_the_two_commands_on_one_line_each():
    first, second = fenced("sh")[:2]
    assert re.findall(r"^```(\w*)", README, re.MULTILINE)[:3:2] == ["sh", "sh"]
    assert first.count("\n") == second.count("\n") == 1
    assert first.strip().endswith("fastpriv assess")
    assert re.search(r"&& pytest -n auto --dist worksteal$", second.strip())
    assert (ROOT / ".ci" / "run").stat().st_mode & 0o111


ALONE = """
import json, sys
home, *examples = json.load(sys.stdin)
sys.path.insert(0, home)
for example in examples:
    exec(example, {"__name__": "__main__"})
    print(chr(0), flush=True)
"""


def ran(examples, tmp_path):
    """What each example prints; they share a process, which has imported the libraries once, and no name."""
    words = json.dumps([str(Path(fastpriv.__file__).parents[1]), *examples])
    done = subprocess.run(
        [sys.executable, "-c", ALONE], cwd=tmp_path, input=words, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split("\0\n")[:-1]


def numbers_of(text):
    return [float(number.strip("[]")) for number in text.replace("[ ", "[").split()]


@pytest.mark.slow
def test_the_python_examples_run(tmp_path):
    examples = fenced("python")
    for page in PAGES:
        programs = fenced("python", (DOCS / f"{page}.md").read_text())
        examples += [example for example in programs if example not in examples and not example.startswith(">>>")]
    said = ran(examples, tmp_path)
    assert len(said) == len(examples)
    assert all(said)

    def of(words):
        (found,) = (i for i, example in enumerate(examples) if words in example)
        return examples[found], said[found]

    assert len([line for line in of("ages =")[0].splitlines() if line.strip()]) == 5
    assert examples[0] == of("ages =")[0]
    assert "Noise that a target needs" in of("ages =")[1]
    assert "Level that meets a target" in of("jobs =")[1]
    assert "holds (confidence 0.95): MBP xi is at most 0.4, claimed 0.5" in of("mbp_claim")[1]
    assert (tmp_path / "fastpriv-report" / "assessment.png").exists()
    assert "maximal_leakage" in of("own.then")[1]
    assert "quad 3.47e-09 +- 7e-09, special.ndtr 0.0139034" in of("stats.norm.pdf")[1]
    assert "entropy: 4.70" in of("surprise")[1]
    assert "1.02: quad -0.187500 +- 3e-09, kl_divergence 3.086998 [3.086997, 3.086998]" in of("log_p - log_q")[1]
    assert "moments: unsafe 0 of 152" in of("def moments")[1]
    assert "central_limit: unsafe 123 of 152" in of("def moments")[1]
    errors = {line.split()[0]: float(line.split()[2]) for line in of("nearest_neighbours")[1].splitlines()}
    assert abs(errors["gaussian-weak-1-1"]) < 0.05
    assert errors["channel-mixed-25-25"] < -6.0
    numbers = [0.0497516523, 0.0497516523, 7.03574095, 0.149749923]
    assert numbers_of(of("sigma_from_ci_lmip")[1]) == pytest.approx(numbers, rel=1e-7)
    xi, abp, vulnerability, _ = numbers_of(of("posterior.xi")[1])
    assert 0 < abp < 0.5 < xi
    assert 1e-6 < vulnerability < 2e-6
    value, lower, upper = numbers_of(" ".join(of("p, q = (Gaussian")[1].split()[:3]))
    assert lower <= value <= upper


@pytest.mark.parametrize(
    "paper",
    ["README.md", "CONTRIBUTING.md", "ARCHITECTURE.md", *sorted(f"docs/{path.name}" for path in DOCS.glob("*.md"))],
)
def test_links_lead_somewhere(paper):
    for name, anchor in re.findall(r"\]\(([\w./]*)#?([\w-]*)\)", (ROOT / paper).read_text()):
        goal = (ROOT / paper).parent / name if name else ROOT / paper
        assert goal.exists(), name
        if goal.suffix != ".md":
            continue
        headings = re.findall(r"^#+ (.+)$", goal.read_text(), re.MULTILINE)
        known = {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}
        assert not anchor or anchor in known, f"{name}#{anchor}"


def test_the_layers_in_the_architecture_are_those_that_are_tested():
    text = (ROOT / "ARCHITECTURE.md").read_text()
    rows = re.findall(r"^\| (\d+) \| ([^|]+) \|", text, re.MULTILINE)
    said = {name: int(layer) for layer, names in rows for name in re.findall(r"`([^`]+)`", names)}
    built = {path.stem for path in Path(fastpriv.__file__).parent.iterdir() if path.suffix == ".py" or path.is_dir()}
    known = {name: int(layer) for name, layer in LAYERS.items() if name in built}
    assert said == known, f"differ: {sorted(set(said.items()) ^ set(known.items()))}"
    assert len(text.splitlines()) <= 90, "ARCHITECTURE.md is one page"


def test_the_paths_in_the_architecture_lead_somewhere():
    text = (ROOT / "ARCHITECTURE.md").read_text()
    text += (ROOT / "CONTRIBUTING.md").read_text()
    paths = re.findall(r"`((?:fastpriv|csrc|tests|tools|benches|\.ci)/[\w./-]*)`", text)
    assert len(paths) > 40
    missing = [path for path in paths if not (ROOT / path).exists()]
    assert not missing, f"ARCHITECTURE.md or CONTRIBUTING.md names paths that are not there: {missing}"
    assert len(re.findall(r"^\| [^|]+\? \|", text, re.MULTILINE)) >= 10, "ten questions"


PAPERS = [
    "README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "BOUNDS.md", "CHANGELOG.md", "CITATION.cff",
    "LICENSE",
]


@pytest.mark.parametrize("name", PAPERS)
def test_the_papers_of_the_house_are_there(name):
    assert (ROOT / name).stat().st_size > 200


def test_the_version_is_said_once_everywhere():
    assert f"## {fastpriv.__version__}" in (ROOT / "CHANGELOG.md").read_text()
    assert f"version: {fastpriv.__version__}" in (ROOT / "CITATION.cff").read_text()
    assert f'version = "{fastpriv.__version__}"' in (ROOT / "pyproject.toml").read_text()
