"""The table of the constants in bounds: ``python tools/bounds.py`` writes BOUNDS.md, ``--check`` says what is missing.

A marker is a comment in csrc/**/*.h, csrc/**/*.pyx or fastpriv/**/*.py; its further lines are indented in Python:

    bound: CLASS - what it bounds       of the constant defined on this or the next line of code; within a function,
                                        of all numbers in that function
    bounds: CLASS - what they bound     of all other numbers in the file

where CLASS is one of

    proved                  the reason stands in the marker, or in the text of the file that it points to
    proved by SCRIPT        a program of tools/proofs proves it from the source: proofs/tables is tools/proofs/tables.py
    computed by SCRIPT      a script computed it, or its error, to more digits; fit_normal is tools/fit_normal.py
    tested by TEST, TEST    nothing is proved: these tests compare with arithmetic of more digits, or with brute force;
                            kernels/test_sphere is tests/kernels/test_sphere.py, with ::name one test in it
    none                    it chooses how much work is done, or by which formula; bounds hold whatever it is

What needs a marker: named constants whose name speaks of errors or whose value is small, tables of C, and small numbers
within functions (``SMALL`` and below, or multiples of a unit of rounding). What rests on a constant is found by
import: headers by #include, the modules of csrc that include them, the modules of fastpriv that import those, and so
on, down to the public functions. That says too much at times: a module may import what one of its functions uses.
"""

from __future__ import annotations

import argparse
import ast
import json
import operator
import re
import sys
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SMALL = 1e-7
_COMPILED, _COMPILED_STUDIES = "fastpriv.kernels", "fastpriv.studies.kernels"
CLASSES = ("proved", "computed", "tested", "none")
MARKER = re.compile(r"bound(s?): (proved|none|(?:proved|computed|tested) by ([^ ,]+(?:, [^ ,]+)*)) - (.+)")
NAMED = re.compile(
    r"ERROR(?!S)|ROUND(?!S)|ULP|UNIT|SLACK|SLIP|RELATIVE|TINY|SAFE|OUTWARD|LIBRARY|WIDER|EMPIRICAL|BLUR|(?:^|_)U$"
)
UNIT = re.compile(r"_?UNIT|UNIT_ROUNDOFF|_?U|FP_U|FP_ROUND|ROUNDING|unit")
C_DEFINE = re.compile(r"^#define +(\w+) +(.+)$")
C_TABLE = re.compile(r"^ *static const double \*?(?:const )?(\w+)((?:\[\w*\])+)")
C_NUMBER = re.compile(
    r"(?<![\w.])-?(?:0x[0-9a-fA-F]*\.?[0-9a-fA-F]*p[+-]?\d+|(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)(?!\w)"
)


@dataclass(frozen=True)
class Marker:
    """A marker: ``whole_file`` says ``bounds:``, ``evidence`` names the scripts or tests."""

    line: int
    whole_file: bool
    kind: str
    evidence: tuple[str, ...]
    text: str


@dataclass(frozen=True)
class Number:
    """A constant or a small number in a source: ``name`` is empty within a function, ``table`` says an array."""

    line: int
    name: str
    value: str
    function: tuple[int, int] = (0, 0)
    table: bool = False
    last: int = 0


@dataclass(frozen=True)
class Row:
    """A row of the table."""

    path: str
    line: int
    name: str
    value: str
    marker: Marker


# ---------------------------------------------------------------------------------------------------------- sources


def sources(root: Path = ROOT) -> Iterator[Path]:
    """What is read."""
    yield from sorted(path for pattern in ("*.h", "*.px[di]", "*.pyx") for path in (root / "csrc").rglob(pattern))
    yield from sorted((root / "fastpriv").rglob("*.py"))


def markers(text: str) -> list[Marker]:
    """Markers of a source; a comment that begins like one and is none is an error."""
    found = []
    lines = text.splitlines()
    for i, line in enumerate(lines, 1):
        begun = re.search(r"(#|/\*|^ \*) (bounds?: .*)", line)
        if not begun:
            continue
        words, rest = begun[2], i
        while rest < len(lines) and (re.match(r"\s*#  ", lines[rest]) if begun[1] == "#" else "*/" not in words):
            words += " " + lines[rest].strip(" #*") if "*/" not in lines[rest] else " " + lines[rest].lstrip(" *")
            rest += 1
        match = MARKER.fullmatch(words.partition("*/")[0].strip())
        if not match:
            raise ValueError(f"line {i}: {words!r} must be a marker; {_REMEDY.format('in its place', '')}")
        folder = "tests" if match[2].startswith("tested") else "tools"
        evidence = tuple(_named(folder, x) for x in match[3].split(", ")) if match[3] else ()
        found.append(Marker(i, bool(match[1]), match[2].split()[0], evidence, match[4].strip()))
    return found


def _named(folder: str, name: str) -> str:
    path, _, test = name.partition("::")
    return f"{folder}/{path}.py" + (f"::{test}" if test else "")


def numbers(path: str, text: str) -> list[Number]:
    """What needs a marker in a source."""
    return _facts(text)[0] if path.endswith(".py") else list(_c(text))


Import = tuple[int, str, tuple[str, ...]]  # the level, the module and the names; no names of a plain import


@cache
def _facts(text: str) -> tuple[list[Number], list[Import]]:
    """What needs a marker in a module, and what it imports: a text is parsed once, and its tree is not kept."""
    tree = ast.parse(text)
    return list(_python(tree)), list(_imports_of(tree))


def _python(tree: ast.Module) -> Iterator[Number]:
    for node in tree.body:
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names = [t for whole in targets for t in (whole.elts if isinstance(whole, ast.Tuple) else [whole])]
            several = len(names) > 1 and isinstance(node.value, ast.Tuple)
            values = node.value.elts if several else [node.value] * len(names)  # type: ignore[attr-defined]
            for name, value in zip(names, values, strict=False):
                if not isinstance(name, ast.Name) or not re.fullmatch(r"_?[A-Z][A-Z0-9_]*", name.id):
                    continue
                if not any(isinstance(x, ast.Constant) and isinstance(x.value, int | float) for x in ast.walk(value)):
                    continue
                written = " ".join(ast.unparse(value).split())
                known = _small(value)
                if known or (NAMED.search(name.id) and not isinstance(value, ast.List | ast.Dict | ast.Set)):
                    yield Number(node.lineno, name.id, written, last=node.end_lineno or 0)
            continue
        inside = (node.lineno, node.end_lineno or node.lineno)
        for one in ast.walk(node):
            if (isinstance(one, ast.Constant) and _is_small(one.value)) or (isinstance(one, ast.BinOp) and _small(one)):
                yield Number(one.lineno, "", ast.unparse(one), inside)
            elif isinstance(one, ast.BinOp) and isinstance(one.op, ast.Mult):
                for side, other in ((one.left, one.right), (one.right, one.left)):
                    if isinstance(side, ast.Name) and UNIT.fullmatch(side.id):
                        times = ast.unparse(other) + " " if isinstance(other, ast.Constant) else ""
                        yield Number(one.lineno, "", f"{times}{side.id}", inside)


_OPERATIONS = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv,
    ast.Pow: operator.pow,
}


def _is_small(value: object) -> bool:
    return isinstance(value, float) and 0.0 < value <= SMALL


def _small(node: ast.AST) -> bool:
    """A small number: 1e-12, -1e-12, 2.0**-53, 4 * 2.0**-53."""
    value = _number(node)
    return value is not None and _is_small(abs(value))


def _number(node: ast.AST) -> float | None:
    """The value of an expression of literals alone."""
    if isinstance(node, ast.Constant) and isinstance(node.value, int | float):
        return node.value
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        inner = _number(node.operand)
        return None if inner is None else -inner
    if isinstance(node, ast.BinOp) and type(node.op) in _OPERATIONS:
        left = _number(node.left)
        right = None if left is None else _number(node.right)
        try:
            return None if right is None else _OPERATIONS[type(node.op)](left, right)
        except ArithmeticError:
            return None
    return None


def _c(text: str) -> Iterator[Number]:
    code = re.sub(r"/\*.*?\*/", lambda m: re.sub(r"[^\n]", " ", m[0]), text, flags=re.S)
    code = re.sub(r"(?m)(//|#(?!define|include|if|endif|else|pragma|undef)).*$", "", code)
    lines = code.splitlines()
    first = table_until = 0
    inside = (0, _end(lines, 0))
    for i, line in enumerate(lines, 1):
        if line[:1] not in ("", " ", "}", "#", "\t"):
            inside = (i, _end(lines, i))  # from the first line of whatever stands at the margin
        define, table = C_DEFINE.match(line), C_TABLE.match(line)
        if table:
            first, table_until = i, _end(lines, i)
            yield Number(i, table[1], "table", inside if line.startswith(" ") else (0, 0), True, table_until)
        if i <= table_until and first:
            continue
        if define and "(" not in define[1] and re.fullmatch(r"\(?" + C_NUMBER.pattern + r"\)?\s*", define[2]):
            value = define[2].strip()
            if (NAMED.search(define[1]) and "BITS" not in define[1]) or _is_small(abs(_c_value(value))):
                yield Number(i, define[1], value, last=i)
            continue
        for match in C_NUMBER.finditer(line):
            if _is_small(abs(_c_value(match[0]))):
                yield Number(i, "", match[0], inside)
        for match in re.finditer(r"(?:(\d+\.?\d*) \* )?\b(FP_U|FP_ROUND|FP_NDTR_DIFF_ERROR)\b", line):
            yield Number(i, "", f"{match[1]} {match[2]}" if match[1] else match[2], inside)


def _c_value(text: str) -> float:
    text = text.strip("()")
    return float.fromhex(text) if "x" in text else float(text)


def _end(lines: list[str], start: int) -> int:
    """Last line of what begins on line ``start``: up to the next line that ends it at the margin."""
    depth = 0
    for i in range(max(start, 1) - 1, len(lines)):
        depth += lines[i].count("{") - lines[i].count("}")
        over = not lines[i].endswith("\\") and i > start
        if depth <= 0 and (over or re.search(r"[;}]\s*(\\?)$", lines[i])):
            return i + 1
    return len(lines)


# ------------------------------------------------------------------------------------------------------- assignment


def rows_of(path: str, text: str) -> tuple[list[Row], list[str]]:
    """The rows of a source, and a sentence for each number that no marker covers."""
    try:
        notes = markers(text)
    except ValueError as error:
        return [], [f"{path}, {error}"]
    lines = text.splitlines()
    found, own, by_function, rest, faults = numbers(path, text), [], defaultdict(list), [], []
    used: set[Marker] = set()
    for one in found:
        marker = next((m for m in notes if not m.whole_file and _belongs(m, one, lines)), None) if one.name else None
        if marker:
            own.append(Row(path, one.line, one.name, one.value, marker))
            used.add(marker)
            continue
        if one.name and not one.table:
            remedy = _REMEDY.format("above it", "")
            faults.append(f"{path}:{one.line}: {one.name} = {one.value} has no marker; {remedy}")
            continue
        low, high = one.function
        marker = next((m for m in notes if not m.whole_file and low < m.line <= high and m not in used), None)
        if marker:
            by_function[marker].append(one)
        else:
            rest.append(one)
    for marker, some in by_function.items():
        used.add(marker)
        own.append(Row(path, marker.line, f"in {_function(lines, some[0].function[0])}", _values(some), marker))
    whole = [m for m in notes if m.whole_file]
    if len(whole) > 1:
        faults.append(f"{path}:{whole[1].line}: 'bounds:' must stand once in a file; join it with line {whole[0].line}")
    if rest and whole:
        used.add(whole[0])
        own.append(Row(path, whole[0].line, "other numbers", _values(rest), whole[0]))
    elif rest:
        seen = ", ".join(f"{one.name or one.value} (line {one.line})" for one in rest[:5])
        faults.append(f"{path}: {seen} {'and more ' if len(rest) > 5 else ''}have no marker; "
                      + _REMEDY.format("at the head of the file", "s"))
    if whole and not rest:
        faults.append(f"{path}:{whole[0].line}: 'bounds:' covers no number of this file; take it away")
    for marker in notes:
        if marker not in used and not marker.whole_file:
            own.append(Row(path, marker.line, *_plain(lines, marker), marker))
    return sorted(own, key=lambda row: row.line), faults


_REMEDY = ("add {0}: bound{1}: proved|proved by SCRIPT|computed by SCRIPT|tested by TEST|none - what it bounds "
           "(see tools/bounds.py)")


def _belongs(marker: Marker, one: Number, lines: list[str]) -> bool:
    """The marker stands on the lines of a constant, or above it with nothing but comments between."""
    if one.line <= marker.line <= max(one.line, one.last):
        return True
    return marker.line < one.line and all(
        re.match(r"\s*(#(?!define|include|if|endif)|/\*|\*)", line) for line in lines[marker.line - 1 : one.line - 1]
    )


_CONSTANT = r"\s*(?:#define +|(?:static )?const (?:double|int) )?([\w, ]+?)(?::[^=]*)?(?: =| ) ?((?:[^#/;]|/(?!\*))+)"


def _plain(lines: list[str], marker: Marker) -> tuple[str, str]:
    """Name and value of a constant that has a marker though none is asked for."""
    line = next(x for x in lines[marker.line - 1 :] if x.strip() and not re.match(r"\s*(#(?!define)|/\*|\*)", x))
    match = re.match(_CONSTANT, line)
    if not match:
        raise ValueError(f"line {marker.line}: the marker must stand above a constant; got {line.strip()!r}")
    return match[1].strip(), match[2].strip()


def _function(lines: list[str], line: int) -> str:
    for text in lines[line - 1 : line + 8]:
        match = re.match(r"(?:async )?(?:def|class) (\w+)", text)
        plain = re.sub(r"__attribute__\(\(.*?\)\)|FP_INLINE", "", text)
        match = match or re.search(r"FP_NAME\((\w+)\)\(|(\w+)\(", plain)
        if match:
            return next(x for x in match.groups() if x)
    return f"line {line}"


def _values(some: list[Number]) -> str:
    return ", ".join(dict.fromkeys(one.name or one.value for one in some))


@cache
def table(root: Path = ROOT) -> tuple[list[Row], list[str]]:
    """All rows, and a sentence for each fault."""
    rows: list[Row] = []
    faults: list[str] = []
    for path in sources(root):
        name = path.relative_to(root).as_posix()
        some, wrong = rows_of(name, path.read_text())
        rows += some
        faults += wrong
    for row in rows:
        for evidence in row.marker.evidence:
            faults += [f"{row.path}:{row.line}: {x}" for x in _absent(root, evidence)]
    return rows, faults


def _absent(root: Path, evidence: str) -> list[str]:
    path, _, test = evidence.partition("::")
    if not (root / path).is_file():
        return [f"{path} must be a file of this repository; name the script or test that is meant"]
    if test and not re.search(rf"^\s*def {re.escape(test)}\b", (root / path).read_text(), re.M):
        return [f"{path} must define {test}; name a test that is there"]
    return []


# ----------------------------------------------------------------------------------------------- what rests on what


@cache
def resting(root: Path = ROOT) -> dict[str, set[str]]:
    """Path of a source -> public names that rest on it."""
    below = _python_imports(root)
    kernels = _kernels(root)
    users: dict[str, set[str]] = defaultdict(set)
    for name, module in _public(root, below):
        for one in _closure(module, below):
            for path in kernels.get(one, ()) if one.startswith((_COMPILED, _COMPILED_STUDIES)) else [_path(root, one)]:
                users[path].add(name)
    return users


def _closure(start: str, below: dict[str, set[str]]) -> set[str]:
    seen, todo = set(), [start]
    while todo:
        one = todo.pop()
        if one not in seen:
            seen.add(one)
            todo += below.get(one, ())
    return seen


@cache
def _modules(root: Path) -> dict[str, Path]:
    found = {}
    for path in (root / "fastpriv").rglob("*.py"):
        parts = path.relative_to(root).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


@cache
def _path(root: Path, module: str) -> str:
    path = root.joinpath(*module.split("."))
    return (path / "__init__.py" if path.is_dir() else path.with_suffix(".py")).relative_to(root).as_posix()


def _python_imports(root: Path) -> dict[str, set[str]]:
    """Module -> modules whose names it imports; a name that a package passes on counts for the module it comes from.

    ``special`` counts for the kernels of the functions that are used.
    """
    modules = _modules(root)
    taken = {name: _imports(name, path) for name, path in modules.items()}
    below: dict[str, set[str]] = {}
    for module, imports in taken.items():
        found = set()
        for other, names in imports:
            for name in names if other.startswith("fastpriv") else ():
                if f"{other}.{name}" == "fastpriv.special" and "special" not in module:
                    used = re.findall(r"\bspecial\.(\w+)", modules[module].read_text())
                    found |= {x for one in used for x in _kernel_of(root, one)}
                else:
                    found |= _origin(other, name, modules, taken)
                    whole = f"{other}.{name}"
                    if whole in modules and modules[whole].with_suffix(".pyi").exists():  # the names used of a room
                        for used_name in re.findall(rf"\b{name}\.(\w+)", modules[module].read_text()):
                            found |= _origin(whole, used_name, modules, taken)
        called = re.search(r'import_module\(f"\.([\w.]*)\{', modules[module].read_text())
        if called and module != "fastpriv.base.public_names":  # by a name put together at run time: any of them
            room = f"{module.rpartition('.')[0]}.{called[1]}"
            found |= {name for name in modules if name.startswith(room)}
        path = modules[module]
        stub = path.with_suffix(".pyi").exists()  # then the stub says where a name comes from
        if path.name == "__init__.py" and not stub and module != "fastpriv":
            found |= {name for name in modules if name.rpartition(".")[0] == module}
        below[module] = found
    return below


Taken = dict[str, list[tuple[str, tuple[str, ...]]]]


def _origin(module: str, name: str, modules: dict[str, Path], taken: Taken) -> set[str]:
    """The module that a name comes from, through packages that pass it on."""
    whole = f"{module}.{name}"
    if whole in modules or module == _COMPILED:
        return {whole}
    if module in modules and modules[module].name == "__init__.py":
        stub = modules[module].with_suffix(".pyi")
        for other, some in [*taken[module], *(_imports(f"{module}.", stub) if stub.exists() else ())]:
            if name in some and other != module:
                return _origin(other, name, modules, taken)
    return {module}


@cache
def _kernel_of(root: Path, function: str) -> set[str]:
    """The compiled module whose table of ufuncs has a function of ``special``."""
    named = re.compile(rf'[(,"]\s*{function}\s*[),"]')
    return next((kernels for text, kernels in _ufunc_tables(root) if named.search(text)), set())


@cache
def _ufunc_tables(root: Path) -> list[tuple[str, set[str]]]:
    """The text of each table of ufuncs, and the compiled modules that it is part of."""
    found = []
    modules = {path: path.read_text() for path in (root / "csrc").rglob("*.pyx")}
    for table in (root / "csrc").rglob("*_ufuncs.h"):
        text = table.read_text()
        headers = [root / "csrc" / name for name in re.findall(_INCLUDED, text)]  # a list may stand beside its formulas
        texts = [text, *(x for header in headers if "_FUNCTIONS(F)" in (x := header.read_text()))]
        kernels = (path for path, source in modules.items() if f"/{table.name}" in source)
        found.append(("".join(texts), {f"{_compiled(path)}.{path.stem}" for path in kernels}))
    return found


@cache
def _imports(module: str, path: Path) -> list[tuple[str, tuple[str, ...]]]:
    """(module, names) of every import of a module, but for those that type checkers alone read."""
    package = module if path.name == "__init__.py" else module.rpartition(".")[0]
    found: list[tuple[str, tuple[str, ...]]] = []
    for level, name, names in _facts(path.read_text())[1]:
        base = package.split(".")[: len(package.split(".")) - level + 1] if level else []
        if names:
            found.append((".".join([*base, *([name] if name else [])]), names))
        else:
            found.append((name.rpartition(".")[0] or name, (name.rpartition(".")[2],)))
    return found


def _imports_of(tree: ast.Module) -> Iterator[Import]:
    todo: list[ast.stmt] = list(tree.body)
    while todo:
        node = todo.pop()
        if isinstance(node, ast.ImportFrom):
            yield node.level, node.module or "", tuple(x.name for x in node.names)
        elif isinstance(node, ast.Import):
            yield from ((0, x.name, ()) for x in node.names)
        elif not (isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"):
            todo += [x for part in ("body", "orelse", "finalbody") for x in getattr(node, part, ())]
            todo += [x for part in ("handlers", "cases") for one in getattr(node, part, ()) for x in one.body]


_INCLUDED = r"""(?:#\s*include|#\s*define \w+|include|extern from)\s*["']([\w./]+)["']"""


def _compiled(path: Path) -> str:
    """Package of the compiled module of a source."""
    return _COMPILED_STUDIES if path.parent.name in ("leakage", "membership") else _COMPILED


def _kernels(root: Path) -> dict[str, set[str]]:
    """fastpriv.kernels._x -> sources that _x.pyx is made of."""
    paths = {path.relative_to(root / "csrc").as_posix(): path for path in (root / "csrc").rglob("*.[hp]*")}
    included = {name: set(re.findall(_INCLUDED, path.read_text())) & set(paths) for name, path in paths.items()}
    return {
        f"{_compiled(path)}.{path.stem}": {f"csrc/{x}" for x in _closure(name, included)}
        for name, path in paths.items() if path.suffix == ".pyx"
    }


def _public(root: Path, below: dict[str, set[str]]) -> Iterator[tuple[str, str]]:
    """Every public name and the module that defines it: of fastpriv itself, of its rooms, conversions and ufuncs."""
    modules = _modules(root)
    taken = {name: _imports(name, path) for name, path in modules.items()}
    public = _stub(root / "fastpriv" / "__init__.pyi")
    for module, name in public:
        for one in _origin(f"fastpriv.{module}", name, modules, taken) if module else ():
            yield name, one
    rooms = {name: ".".join(filter(None, ["fastpriv", module, name])) for module, name in public}
    for room, address in sorted(item for item in rooms.items() if item[1] in modules):
        path = modules[address]
        stub = path.with_suffix(".pyi")
        named = _stub(stub) if stub.exists() else [(None, name) for name in _listed(path)]
        for module, name in named:
            for one in _origin(".".join(filter(None, [address, module])), name, modules, taken):
                yield f"{room}.{name}", one
    for name in re.findall(r"^(\w+): np\.ufunc", modules["fastpriv.special"].with_suffix(".pyi").read_text(), re.M):
        for one in _kernel_of(root, name):
            yield f"special.{name}", one


def _stub(path: Path) -> list[tuple[str | None, str]]:
    """The module and the name in each line of the stub of a package."""
    return [(x.module, x.names[0].name) for x in ast.parse(path.read_text()).body if isinstance(x, ast.ImportFrom)]


def _listed(path: Path) -> list[str]:
    """Names in ``__all__``."""
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            return [str(x.value) for x in ast.walk(node.value) if isinstance(x, ast.Constant)]
    return []


# --------------------------------------------------------------------------------------------------------- document


def document(root: Path = ROOT) -> str:
    """BOUNDS.md."""
    rows, _ = table(root)
    users = resting(root)
    shown = [row for row in rows if row.marker.kind != "none"]
    return "\n".join([_head(shown), *_rooms(shown, users), *_proofs(root)]) + "\n"


def _proofs(root: Path) -> Iterator[str]:
    """What the programs of tools/proofs proved when they were last run with ``--write``."""
    yield from ("", "## Proofs by programs", "")
    yield "`python tools/proofs` proves these from the headers, and fails where a header states less."
    yield from ("", "| function or table | header | what | stated | proved |", "|---|---|---|---|---|")
    for row in json.loads((root / "tools" / "proofs" / "proved.json").read_text()):
        yield f"| {row['name']} | {row['header']} | {row['what']} | {row['stated']:.3g} | {row['proved']:.3g} |"


def _head(rows: list[Row]) -> str:
    count = {kind: sum(row.marker.kind == kind for row in rows) for kind in CLASSES}
    by_program = sum(row.marker.kind == "proved" and bool(row.marker.evidence) for row in rows)
    return f"""# What the bounds rest on

Written by `python tools/bounds.py` from the sources; do not edit. A constant that enters a bound is

* **proved** ({count["proved"]} rows): the reason stands in the source, or a program of `tools/proofs` proves it
  ({by_program} rows; their numbers are at the end);
* **computed** ({count["computed"]} rows): a script of this repository computed it, or its error, to more digits;
* **tested** ({count["tested"]} rows): nobody has proved it. The named tests compare with arithmetic of more digits, or
  with brute force, and found no bound that fails; many stay far from the limit. It could fail where no test looked.

**An `Estimate` of kind `certified` or `exact` is proved but for the constants that are tested.**
`python tools/bounds.py --for conversions.convert` says on which files of them a function rests.

"other numbers" are those in the functions of a file. Numbers that follow from a formula beside them (2.1 where 2 is
proved, with room for smaller terms) are not here, nor are those that only choose how much work is done, or by which
formula: bounds hold whatever they are. What rests on a file is found by imports: too much rather than too little.
Functions of NumPy and SciPy are taken to be as exact as the tests found them."""


_KERNELS = {
    "awgn": "capacity under a peak-power constraint",
    "channel": "finite channels",
    "common": "arithmetic that all share",
    "composition": "compositions",
    "gauss": "Gaussian mechanism",
    "line": "divergences in one dimension",
    "lmip": "mutual-information privacy",
    "membership": "membership inference",
    "mixture": "mixtures in any dimension",
    "posterior": "posteriors",
    "sampling": "sampling",
    "special": "special functions",
}


def _room(path: str) -> str:
    parts = path.split("/")
    if parts[0] == "csrc":
        return f"kernels: {_KERNELS[parts[1]]}"
    return parts[1].removesuffix(".py")


def _rooms(rows: list[Row], users: dict[str, set[str]]) -> Iterator[str]:
    rooms: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        rooms[_room(row.path)].append(row)
    for room in sorted(rooms, key=lambda x: (not x.startswith("kernels"), x)):
        yield from ("", f"## {room[0].upper()}{room[1:]}")
        yield from ("", "| constant | value | what it bounds | |", "|---|---|---|---|")
        last = ""
        for row in rooms[room]:
            if row.path != last:
                tested = any(x.path == row.path and x.marker.kind == "tested" for x in rooms[room])
                used_by = _used_by(users.get(row.path, set())) if tested else ""
                yield f"| **{row.path}** | | {used_by} | |"
                last = row.path
            where = ", ".join(f"`{x}`" for x in row.marker.evidence)
            kind = row.marker.kind + (f" by {where}" if where else "")
            name = row.name if " " in row.name and not row.name.startswith("in ") else f"`{row.name}`"
            yield f"| {name} | {_code(row.value)} | {_cell(row.marker.text)} | {kind} |"


def _used_by(names: set[str]) -> str:
    """Rooms with public names that rest on a file; names of ``fastpriv`` itself count as the room ``fastpriv``."""
    rooms = sorted({name.partition(".")[0] if "." in name else "fastpriv" for name in names})
    return "*for* " + ", ".join(rooms) if rooms else "nothing public"


def _code(value: str) -> str:
    parts = value.split(", ")
    return f"`{', '.join(parts[:12])}`" + (" and more" if len(parts) > 12 else "")


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def files_behind(name: str, root: Path = ROOT) -> frozenset[str]:
    """Files with tested constants that a public name rests on; ValueError for a name that is not public."""
    users = resting(root)
    if not any(name in names for names in users.values()):
        raise ValueError(f"--for must be a public name, as hockey_stick_divergence or notions.lip_delta; got {name!r}")
    tested = {row.path for row in table(root)[0] if row.marker.kind == "tested"}
    return frozenset(path for path in tested if name in users.get(path, set()))


def _files(paths: frozenset[str]) -> str:
    folders: dict[str, list[str]] = defaultdict(list)
    for path in sorted(paths):
        folder, _, name = path.rpartition("/")
        folders[folder].append(name)
    return "; ".join(f"{folder}: {', '.join(names)}" for folder, names in folders.items())


def main(arguments: list[str] | None = None) -> int:
    """Write the document, or say what is missing."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--check", action="store_true", help="write nothing; say what is missing")
    parser.add_argument("--for", dest="name", help="print the files with tested constants that a public name rests on")
    options = parser.parse_args(arguments)
    if options.name:
        try:
            print(_files(files_behind(options.name)) or "no tested constants")
        except ValueError as error:
            parser.error(str(error))
        return 0
    _, faults = table()
    print("\n".join(faults), file=sys.stderr, end="\n" if faults else "")
    if not options.check and not faults:
        (ROOT / "BOUNDS.md").write_text(document())
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
