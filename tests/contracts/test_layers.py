"""Imports run downward only, and the compiled modules and numba stay in their rooms."""

from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

import fastpriv
from contracts.source_facts import facts

ROOT = Path(fastpriv.__file__).parent

# The bands of ARCHITECTURE.md, with the order of their rooms behind the point: a module imports only from rooms with a
# smaller number, or from its own room.
LAYERS = {
    "base": 1, "kernels": 1.1,
    "distributions": 2, "channels": 2, "special": 2.1,
    "mechanisms": 3, "sampling": 3, "nb": 3, "device": 3,
    "divergences": 4, "capacity": 4.1, "posteriors": 4,
    "notions": 5, "conversions": 5.1, "calibration": 5.2,
    "pairs": 6, "composition": 6.1, "sweeps": 6.2,
    "report": 7, "studies": 7.1, "studies/datasets": 7.15, "studies/membership": 7.2, "studies/assessment": 7.3,
    "studies/auditing": 7.3, "studies/papers": 7.4, "studies/leakage": 7.4,
    "adapters": 8, "cli": 8.1, "__main__": 8.2,
}
OWNERS = {"numba": "kernels/jit", "joblib": "base/parallel.py"}
SHARED = "studies"  # the folder whose packages are rooms of their own


def sources(root):
    return sorted(path for path in root.rglob("*.py") if path != root / "__init__.py")


def room_of(parts):
    """The room of a module, from the parts of its path below the package; None for the package itself."""
    if len(parts) > 1 and parts[0] == SHARED and "/".join(parts[:2]) in LAYERS:
        return "/".join(parts[:2])
    return parts[0] if parts else None


def rooms(root):
    """The modules and packages right below the root, and the packages of the studies."""
    return {room_of(path.relative_to(root).with_suffix("").parts) for path in sources(root)}


def internal_imports(path, root):
    """What a module imports of the package, as the parts of its path below the package."""
    package = ("fastpriv", *path.relative_to(root).with_suffix("").parts)
    here = package[:-1]
    for level, module, names in facts(path).imports:
        base = (*(here[: len(here) - level + 1] if level else ()), *(module.split(".") if module else ()))
        if base[0] == "fastpriv":
            yield from ((*base, name)[1:] for name in names) if names else (base[1:],)


def upward_imports(root, layers):
    """A line for every import that does not run downward."""
    wrong = []
    for path in sources(root):
        room = room_of(path.relative_to(root).with_suffix("").parts)
        for target in internal_imports(path, root):
            goal = room_of(target)
            if goal in layers and goal != room and layers[goal] >= layers[room]:
                wrong.append(f"{path.relative_to(root)} (layer {layers[room]}) imports {goal} (layer {layers[goal]})")
    return wrong


def imports_of_others(root, owners):
    """A line for every import of a package by a module that does not own it."""
    wrong = []
    for path in sources(root):
        name = path.relative_to(root).as_posix()
        for level, module, _ in facts(path).imports:
            owner = None if level else owners.get(module.split(".")[0])
            if owner and not name.startswith(owner):
                wrong.append(f"{name} imports {module}; only {owner} may")
    return wrong


def test_three_modules_call_what_is_built_on_them():
    """By its public name, when they are called: a channel of a file, a composition of coordinates, a picture."""
    callers = [path.relative_to(ROOT).as_posix() for path in sources(ROOT)
               if 'import_module("fastpriv' in path.read_text()]
    assert set(callers) == {
        "channels/files.py", "divergences/reductions/factored_quantities.py", "sweeps/sweep_table.py",
    }


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


def files_imported(root):
    """Every module and the modules whose files it imports, by their paths below the package."""
    modules = {path.relative_to(root).with_suffix("").parts: path for path in sources(root)}
    graph = {}
    for parts, path in modules.items():
        targets = set()
        for target in internal_imports(path, root):
            file = next((target[:n] for n in range(len(target), 0, -1) if target[:n] in modules), None)
            if file and file != parts:
                targets.add(file)
        graph[parts] = targets
    return graph


def test_no_circle_of_files():
    TopologicalSorter(files_imported(ROOT)).prepare()


def test_a_circle_of_files_would_be_seen(tmp_path):
    pieces = {"a": "from . import b", "b": "from .c import x", "c": "from .a import y"}
    modules = {f"notions/{name}.py": text for name, text in pieces.items()}
    with pytest.raises(CycleError):
        TopologicalSorter(files_imported(written(tmp_path, modules))).prepare()


UPWARD = {
    "base/estimate.py": "from fastpriv.notions import summary",
    "studies/membership/a.py": "from ..leakage import tasks\nfrom ...cli import info",
    "distributions/a.py": "import fastpriv.channels.base",  # of one layer, and not of one room
    "kernels/__init__.py": "def f():\n    from ..sampling import engine",
    "divergences/one_dimension/arcs.py": "from ...notions.discrete import abp",
    "mechanisms/gaussian.py": "from ..posteriors import bayes",
    "notions/__init__.py": "from .. import cli",
}
DOWNWARD = {
    "cli/main.py": "from ..base import errors\nfrom ..notions.local import cd_lmip\nimport json, notions",
    "divergences/kl.py": "from . import arcs\nfrom ..base.errors import ShapeError\nimport fastpriv.sampling",
}


def written(root, modules):
    for name, source in modules.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(source + "\n")
    return root


def test_a_layer_violation_would_be_seen(tmp_path):
    found = upward_imports(written(tmp_path, UPWARD | DOWNWARD), LAYERS)
    assert found == [
        "base/estimate.py (layer 1) imports notions (layer 5)",
        "distributions/a.py (layer 2) imports channels (layer 2)",
        "divergences/one_dimension/arcs.py (layer 4) imports notions (layer 5)",
        "kernels/__init__.py (layer 1.1) imports sampling (layer 3)",
        "mechanisms/gaussian.py (layer 3) imports posteriors (layer 4)",
        "notions/__init__.py (layer 5) imports cli (layer 8.1)",
        "studies/membership/a.py (layer 7.2) imports studies/leakage (layer 7.4)",
        "studies/membership/a.py (layer 7.2) imports cli (layer 8.1)",
    ]


def test_an_import_by_the_wrong_module_would_be_seen(tmp_path):
    modules = {"notions/a.py": "import joblib.parallel", "kernels/b.py": "from numba import njit",
               "kernels/jit/c.py": "import numba", "base/parallel.py": "from joblib import Parallel"}
    assert imports_of_others(written(tmp_path, modules), OWNERS) == [
        "kernels/b.py imports numba; only kernels/jit may",
        "notions/a.py imports joblib.parallel; only base/parallel.py may",
    ]


def above_the_wall(root):
    """Modules of the engine that import studies, which only commands and adapters may."""
    wrong = []
    for path in sources(root):
        room = room_of(path.relative_to(root).with_suffix("").parts)
        if not room.startswith(("studies", "cli")):
            wrong += [f"{room}: {target}" for target in internal_imports(path, root) if target[:1] == ("studies",)]
    return wrong


def private_names_of_reports(root):
    """What studies and commands take of reports that the stub of reports does not list."""
    public = set(fastpriv.report.__all__)
    return sorted({
        ".".join(target) for path in sources(root) for target in internal_imports(path, root)
        if path.relative_to(root).parts[0] in ("studies", "cli") and target[0] == "report" and target[1:]
        and (len(target) > 2 or target[1] not in public)
    })


def test_only_commands_import_studies():
    assert above_the_wall(ROOT) == []


def test_studies_and_commands_take_public_names_of_reports():
    assert private_names_of_reports(ROOT) == []
