"""Every name of fastpriv that a document or a bench calls exists."""

import ast
import doctest
import importlib
import re
from pathlib import Path
from types import ModuleType

import pytest

import fastpriv
from contracts.registry import ROOMS

ROOT = Path(__file__).parents[2]
BENCHES = sorted((ROOT / "benches").rglob("*.py"))
#: CHANGELOG.md also tells of names that are gone
DOCUMENTS = sorted({*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md"), *(ROOT / "fastpriv").rglob("*.md")}
                   - {ROOT / "CHANGELOG.md"})
NOT_PYTHON = {"fastpriv.h", "fastpriv.special.__pyx_capi__", "fastpriv.checker"}  # the last is run, not imported
# The example of CONTRIBUTING.md, and modules whose hosts are imported by the tests that tools/hosts runs.
SUPPOSED = {"fastpriv.special.collision_entropy", "collision_entropy",
            *(f"fastpriv.adapters.{host}" for host in ("flower", "jax", "opacus", "pfl", "torch"))}
PLAIN = {"print", "range", "float", "int", "len", "sorted", "open"}


def found(path):
    """Whether a dotted path leads somewhere, through modules that are loaded on the way."""
    here, *rest = path.split(".")
    there = importlib.import_module(here)
    for name in rest:
        try:
            there = getattr(there, name)
        except AttributeError:
            if not isinstance(there, ModuleType):
                return False
            try:
                there = importlib.import_module(f"{there.__name__}.{name}")
            except ImportError:
                return False
        if not isinstance(there, (ModuleType, type)):
            return True  # what a value has is not known by its name
    return True


def imported(tree):
    """Local name -> dotted path, of what is imported from fastpriv."""
    names = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for one in node.names:
                if one.name.split(".")[0] == "fastpriv":
                    names[one.asname or "fastpriv"] = one.name if one.asname else "fastpriv"
        elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "fastpriv":
            names |= {one.asname or one.name: f"{node.module}.{one.name}" for one in node.names}
    return names


def called(source):
    """Dotted paths of the names of fastpriv in a program: those imported, and all attributes of them."""
    tree = ast.parse(source)
    names = imported(tree)
    yield from names.values()
    for node in ast.walk(tree):
        parts = []
        while isinstance(node, ast.Attribute):
            parts.append(node.attr)
            node = node.value
        if parts and isinstance(node, ast.Name) and node.id in names:
            yield ".".join([names[node.id], *reversed(parts)])


def texts(words):
    """Inline code of a document, and its blocks of Python, without what they print."""
    blocks = re.findall(r"^```(?:python|py)\n(.*?)^```", words, re.DOTALL | re.MULTILINE)
    blocks = [doctest.script_from_examples(block) if ">>>" in block else block for block in blocks]
    inline = re.findall(r"`([^`\n]+)`", re.sub(r"^ *```.*?^ *```", "", words, flags=re.DOTALL | re.MULTILINE))
    return inline, blocks


@pytest.mark.skipif(not BENCHES, reason="needs the source tree")
def test_the_names_that_benches_call_exist():
    missing = {}
    for path in BENCHES:
        source = path.read_text()
        programs = [source]
        for node in ast.walk(ast.parse(source)):  # programs in texts, which are run in processes of their own
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and "import" in node.value:
                try:
                    ast.parse(node.value)
                except SyntaxError:
                    continue
                programs.append(node.value)
        names = {name for program in programs for name in called(program)}
        missing[path.name] = sorted(name for name in names if not found(name))
    assert sum(len(path.read_text()) for path in BENCHES) > 100_000
    assert not {path: names for path, names in missing.items() if names}


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_the_names_that_a_document_calls_exist(path):
    inline, blocks = texts(path.read_text())
    names = {name for block in blocks for name in called(block)}
    for words in inline:
        names |= {name.rstrip(".") for name in re.findall(r"\bfastpriv(?:\.[A-Za-z_]\w*)+", words)}
        names |= {f"fastpriv.{name}" for name in re.findall(r"^([a-z_]+\.\w+)\(", words) if name.split(".")[0] in ROOMS}
    names -= {name for name in names if any(name.startswith(other) for other in NOT_PYTHON | SUPPOSED)}
    files = {name for name in names if name.endswith((".py", ".md", ".csv", ".npz"))}
    assert not sorted(name for name in names - files if not found(name))
    if path.name in ("README.md", "divergences.md", "channels.md", "posteriors.md", "conversions.md"):
        calls = {match for words in inline for match in re.findall(r"^([a-z_]+)\(", words)} - PLAIN - SUPPOSED
        rooms = (fastpriv, *ROOMS.values())
        classes = [one for room in rooms for name in dir(room) if isinstance(one := getattr(room, name), type)]
        assert not sorted(one for one in calls if not any(hasattr(place, one) for place in (*rooms, *classes)))


def test_a_name_that_is_gone_is_found():
    program = "from fastpriv import adapters as a\nimport fastpriv as fp\na.composed_delta(1)\nfp.special.ndtr(0)\n"
    wanted = ["fastpriv", "fastpriv.adapters", "fastpriv.adapters.composed_delta", "fastpriv.special",
              "fastpriv.special.ndtr"]
    assert sorted(set(called(program))) == wanted
    assert [name for name in wanted if not found(name)] == ["fastpriv.adapters.composed_delta"]
    assert texts("a `fp.x` b\n```python\nimport fastpriv\n```\n") == (["fp.x"], ["import fastpriv\n"])
