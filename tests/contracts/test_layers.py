"""Imports run downward only, and the compiled modules and numba stay in their rooms."""

import ast
from pathlib import Path

import fastpriv

ROOT = Path(fastpriv.__file__).parent

# lower number = deeper; a module may import only from strictly deeper layers, or from its own room
LAYERS = {
    "errors": 0, "_atomic": 0, "estimate": 1,
    "_validate": 1, "_values": 1, "_parallel": 2, "_random": 2,
    "kernels": 2,
    "distributions": 3, "channels": 3, "special": 3,
    "sampling": 4,
    "divergences": 5, "capacity": 5, "beliefs": 5, "mechanisms": 5,
    "notions": 6, "profiles": 7, "conversions": 7, "calibration": 7, "leakage": 7, "membership": 7,
    "sweep": 8, "datasets": 8, "figures": 8, "assessment": 9, "info": 9,
    "comparison": 10, "posterior_command": 10, "cli": 11, "__main__": 12,
}  # fmt: skip


def sources():
    return sorted(path for path in ROOT.rglob("*.py") if path != ROOT / "__init__.py")


def room_of(parts):
    return parts[0]


def internal_imports(path):
    package = ("fastpriv", *path.relative_to(ROOT).with_suffix("").parts)
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


def test_imports_run_downward():
    wrong = []
    for path in sources():
        room = room_of(path.relative_to(ROOT).with_suffix("").parts)
        assert room in LAYERS, f"{room} has no layer: add it to LAYERS and to ARCHITECTURE.md"
        for target in internal_imports(path):
            goal = room_of(target) if target else None
            if goal is None or goal == room or goal not in LAYERS:
                continue
            if LAYERS[goal] >= LAYERS[room]:
                wrong.append(f"{path.relative_to(ROOT)} (layer {LAYERS[room]}) imports {goal} (layer {LAYERS[goal]})")
    assert not wrong, "\n".join(wrong)


def test_a_layer_violation_would_be_seen(tmp_path):
    fake = ROOT / "errors.py"
    assert list(internal_imports(fake)) == []
    assert any(target[0] == "errors" for target in internal_imports(ROOT / "_validate.py"))


def test_only_jit_imports_numba_and_only_parallel_imports_joblib():
    owners = {"numba": "kernels/jit", "joblib": "_parallel.py"}
    wrong = []
    for path in sources():
        name = path.relative_to(ROOT).as_posix()
        for node in ast.walk(ast.parse(path.read_text())):
            modules = [a.name for a in node.names] if isinstance(node, ast.Import) else []
            modules += [node.module] if isinstance(node, ast.ImportFrom) and node.module and not node.level else []
            for module in modules:
                owner = owners.get(module.split(".")[0])
                if owner and not name.startswith(owner) and name != "info.py":
                    wrong.append(f"{name} imports {module}; only {owner} may")
    assert not wrong, "\n".join(wrong)
