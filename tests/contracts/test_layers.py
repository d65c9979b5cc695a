"""Imports run downward only, and the compiled modules and numba stay in their rooms."""

import ast
from pathlib import Path

import fastpriv

ROOT = Path(fastpriv.__file__).parent

# lower number = deeper; a module may import only from strictly deeper layers, or from its own room
LAYERS = {
    "errors": 0, "_include": 0, "numerics": 0, "_public": 0, "_text": 0, "estimate": 1,
    "_remedies": 0, "_validate": 1, "_values": 1, "_monotone": 2, "_parallel": 2, "_random": 2, "_files": 2,
    "_grids": 2,
    "kernels": 2,
    "_executors": 3, "_store": 3, "distributions": 3, "channels": 3, "special": 3,
    "sampling": 4, "mechanisms": 4, "nb": 4,
    "divergences": 5, "capacity": 5, "posteriors": 5,
    "notions": 6, "conversions": 7, "calibration": 7,
    "composition": 8, "figures": 8, "risk": 9, "adapters": 9, "assessment": 10, "membership": 10, "sweeps": 10,
    "datasets": 11, "auditing": 11, "leakage": 12, "cli": 13, "__main__": 14,
}  # fmt: skip
OWNERS = {"numba": "kernels/jit", "joblib": "_parallel.py"}


def sources(root):
    return sorted(path for path in root.rglob("*.py") if path != root / "__init__.py")


def rooms(root):
    """The modules and packages right below the root."""
    return {path.relative_to(root).with_suffix("").parts[0] for path in sources(root)}


def internal_imports(path, root):
    """What a module imports of the package, as the parts of its path below the package."""
    package = ("fastpriv", *path.relative_to(root).with_suffix("").parts)
    here = package[:-1]
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom):
            if node.level:
                base = here[: len(here) - node.level + 1] + tuple((node.module or "").split(".") if node.module else ())
            else:
                base = tuple((node.module or "").split("."))
            if base[0] != "fastpriv":
                continue
            for alias in node.names:
                yield (*base, alias.name)[1:]
        elif isinstance(node, ast.Import):
            for alias in node.names:
                parts = tuple(alias.name.split("."))
                if parts[0] == "fastpriv":
                    yield parts[1:]


def upward_imports(root, layers):
    """A line for every import that does not run downward."""
    wrong = []
    for path in sources(root):
        room = path.relative_to(root).with_suffix("").parts[0]
        for target in internal_imports(path, root):
            goal = target[0] if target else None
            if goal in layers and goal != room and layers[goal] >= layers[room]:
                wrong.append(f"{path.relative_to(root)} (layer {layers[room]}) imports {goal} (layer {layers[goal]})")
    return wrong


def imports_of_others(root, owners):
    """A line for every import of a package by a module that does not own it."""
    wrong = []
    for path in sources(root):
        name = path.relative_to(root).as_posix()
        for node in ast.walk(ast.parse(path.read_text())):
            modules = [a.name for a in node.names] if isinstance(node, ast.Import) else []
            modules += [node.module] if isinstance(node, ast.ImportFrom) and node.module and not node.level else []
            for module in modules:
                owner = owners.get(module.split(".")[0])
                if owner and not name.startswith(owner):
                    wrong.append(f"{name} imports {module}; only {owner} may")
    return wrong


def test_every_room_has_a_layer_and_every_layer_its_rooms():
    missing, gone = rooms(ROOT) - LAYERS.keys(), LAYERS.keys() - rooms(ROOT)
    assert not missing, f"without a layer: {sorted(missing)}; add them to LAYERS and to ARCHITECTURE.md"
    assert not gone, f"in LAYERS, but no longer in the package: {sorted(gone)}"


def test_imports_run_downward():
    wrong = upward_imports(ROOT, LAYERS)
    assert not wrong, "\n".join(wrong)


def test_only_jit_imports_numba_and_only_parallel_imports_joblib():
    wrong = imports_of_others(ROOT, OWNERS)
    assert not wrong, "\n".join(wrong)


UPWARD = {
    "errors.py": "from .estimate import Estimate",
    "estimate.py": "from fastpriv.notions import summary",
    "special.py": "import fastpriv.channels.base",  # of one layer, and not of one room
    "kernels/__init__.py": "def f():\n    from ..sampling import engine",
    "divergences/one_dimension/arcs.py": "from ...notions.discrete import abp",
    "mechanisms/gaussian.py": "from ..posteriors import bayes",
    "notions/__init__.py": "from .. import cli",
}
DOWNWARD = {
    "cli/main.py": "from .. import errors\nfrom ..notions.local import cd_lmip\nimport json, notions",
    "divergences/kl.py": "from .one_dimension import arcs\nfrom ..errors import ShapeError\nimport fastpriv.sampling",
}


def written(root, modules):
    for name, source in modules.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(source + "\n")
    return root


def test_a_layer_violation_would_be_seen(tmp_path):
    found = upward_imports(written(tmp_path, UPWARD | DOWNWARD), LAYERS)
    assert found == [
        "divergences/one_dimension/arcs.py (layer 5) imports notions (layer 6)",
        "errors.py (layer 0) imports estimate (layer 1)",
        "estimate.py (layer 1) imports notions (layer 6)",
        "kernels/__init__.py (layer 2) imports sampling (layer 4)",
        "mechanisms/gaussian.py (layer 4) imports posteriors (layer 5)",
        "notions/__init__.py (layer 6) imports cli (layer 13)",
        "special.py (layer 3) imports channels (layer 3)",
    ]


def test_an_import_by_the_wrong_module_would_be_seen(tmp_path):
    modules = {"notions/a.py": "import joblib.parallel", "kernels/b.py": "from numba import njit",
               "kernels/jit/c.py": "import numba", "_parallel.py": "from joblib import Parallel"}  # fmt: skip
    assert imports_of_others(written(tmp_path, modules), OWNERS) == [
        "kernels/b.py imports numba; only kernels/jit may",
        "notions/a.py imports joblib.parallel; only _parallel.py may",
    ]
