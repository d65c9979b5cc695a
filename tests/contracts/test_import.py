"""`import fastpriv` is light, its names are lazy, and its type stub says the same names."""

import ast
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import fastpriv
from contracts.registry import NAMES, ROOMS
from fastpriv.base.old_addresses import PRESENT

ROOT = Path(fastpriv.__file__).parent
HEAVY = ("scipy", "numba", "joblib", "pandas", "pyarrow", "matplotlib", "tqdm", "csv", "json", "argparse")


def test_import_loads_numpy_and_nothing_else_heavy():
    code = "import numpy; before = set(sys.modules); import fastpriv; print(*sorted(set(sys.modules) - before))"
    loaded = subprocess.run(
        [sys.executable, "-c", f"import sys; {code}"], capture_output=True, text=True, check=True
    ).stdout.split()
    assert not [name for name in loaded if name.split(".")[0] in HEAVY]
    assert [name for name in loaded if name.startswith("fastpriv")] == [
        "fastpriv", "fastpriv.base", "fastpriv.base.old_addresses", "fastpriv.base.public_names",
        "fastpriv.base.version",
    ]
    assert len(loaded) < 11, loaded


# What a first call must not load beyond NumPy: each of these takes longer to load than the call takes.
UNUSED = (
    "scipy", "numba", "joblib", "mpmath", "multiprocessing", "numpy.ma", "numpy.random", "numpy.linalg.lapack_lite",
    "html", "hashlib", "difflib", "fastpriv.divergences.reductions.factored_quantities",
    "fastpriv.divergences.monte_carlo",
)
FIRST_CALLS = {
    "hockey_stick_divergence": "f.hockey_stick_divergence(p, q, [0.5, 1.0])",
    "kl_divergence": "f.kl_divergence(p, q)",
    "jensen_shannon": "f.jensen_shannon(p, q)",
    "entropy": "f.entropy(p)",
    "channel_capacity": "f.channel_capacity([[0.9, 0.1], [0.2, 0.8]])",
}


def test_first_calls_load_only_what_they_use():
    """What none of the calls uses, none may load: they are made in one process, one after the other."""
    code = (
        "import sys, numpy; before = set(sys.modules); import fastpriv as f; "
        "p = f.GaussianMixture([0.25, 0.75], [0.0, 1.0], 1.0); q = f.GaussianMixture.single(0.0, 1.0)\n"
        + "\n".join(f"{call}; print({name!r}, *set(sys.modules) - before)" for name, call in FIRST_CALLS.items())
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    for line in done.stdout.splitlines():
        quantity, *loaded = line.split()
        assert not [name for name in loaded if name in UNUSED or name.split(".")[0] in UNUSED], quantity
    assert quantity == list(FIRST_CALLS)[-1]


@pytest.mark.parametrize("words", [["--help"], ["convert", "--help"], ["assess", "--help"]])
def test_help_loads_no_numpy(words):
    code = f"import sys; sys.argv[1:] = {words}; sys.modules['numpy'] = None; from fastpriv.cli import main; main()"
    asked = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert asked.stdout.startswith("usage: ")


STUBS = sorted(set(ROOT.rglob("__init__.pyi")) - {ROOT / "kernels/__init__.pyi", ROOT / "studies/kernels/__init__.pyi"})


@pytest.mark.parametrize("stub", STUBS, ids=lambda stub: stub.parent.name)
def test_each_line_of_a_stub_names_something_public(stub):
    package = ".".join(["fastpriv", *stub.parent.relative_to(ROOT).parts])
    named = []
    for node in ast.parse(stub.read_text()).body:
        if isinstance(node, ast.ImportFrom) and node.level:
            for alias in node.names:
                if alias.asname != alias.name and f"{package}.{alias.asname}" in PRESENT:  # not listed
                    continue
                assert alias.asname == alias.name, f"write `import {alias.name} as {alias.name}`: it is a public name"
                named.append(alias.name)
                module = import_module("." * node.level + (node.module or alias.name), package)
                assert not node.module or hasattr(module, alias.name), f"{package}.{node.module} lacks {alias.name}"
    shown = [name for name in dir(import_module(package)) if not name.startswith("__")]
    assert sorted(named) == sorted(shown)


@pytest.mark.parametrize("old", sorted(PRESENT))
def test_earlier_addresses_answer(old):
    package = import_module(old)
    assert package.__all__
    for name in package.__all__:
        assert any(getattr(import_module(present), name, None) is getattr(package, name) for present in PRESENT[old])
    assert getattr(fastpriv, old.split(".")[1])
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        package.nothing
    with pytest.raises(ModuleNotFoundError, match=f"No module named '{old}.nothing'"):
        import_module(f"{old}.nothing")


def test_the_stub_of_the_conversions_names_all_that_are_declared():
    room = fastpriv.conversions
    stub = ast.parse((Path(room.__file__).parent / "__init__.pyi").read_text())
    named = {alias.asname: node.module for node in stub.body for alias in node.names}
    assert {row.function: row.module for row in room.CONVERSIONS}.items() <= named.items()


@pytest.mark.parametrize("name", [*NAMES, *ROOMS])
def test_every_name_is_there(name):
    assert getattr(fastpriv, name) is getattr(fastpriv, name)
    assert name in dir(fastpriv)


@pytest.mark.parametrize("package", ["fastpriv", *(f"fastpriv.{room}" for room in ROOMS)])
def test_star_import_gives_the_public_names(package):
    module, imported = import_module(package), {}
    exec(f"from {package} import *", imported)
    # The functions of nb are compiled when their names are first used, a second each, so that it exports none at once.
    expected = [] if package == "fastpriv.nb" else [name for name in dir(module) if not name.startswith("__")]
    assert sorted(imported.keys() - {"__builtins__"}) == sorted(expected)
    assert all(imported[name] is getattr(module, name) for name in expected)


def test_star_import_of_a_fresh_process_gives_the_public_names():
    code = (
        "import fastpriv, sys; assert 'fastpriv.studies.assessment' not in sys.modules; names = {}; "
        "exec('from fastpriv import *', names); print(*sorted(names.keys() - {'__builtins__'}))"
    )
    imported = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert imported == sorted([*NAMES, *ROOMS, "studies"])
    assert not {"annotations", "attach", "sys", "Any"} & set(imported)


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="module 'fastpriv' has no attribute 'no_such_name'"):
        fastpriv.no_such_name


def test_help_is_one_page():
    code = "import pydoc, fastpriv; print(pydoc.render_doc(fastpriv, renderer=pydoc.plaintext))"
    page = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert len(page.splitlines()) < 120
    assert "kl_divergence" in page
