"""What the tests of the sources ask of a module: each text is parsed once in a process, and its tree is not kept."""

import ast
from functools import cache
from typing import NamedTuple

__all__ = ["HOLE", "Facts", "facts", "products", "templates"]

HOLE = None


class Facts(NamedTuple):
    """Facts of one module, in the order of ``ast.walk``."""

    imports: tuple  # (level, module, names) of an ImportFrom, and (0, name, ()) for each name of an Import
    definitions: tuple  # (line, name, whether it is a class) of classes and functions
    stored: tuple  # (line, name) of variables, parameters, attributes, functions and classes
    constants: tuple  # (first line, last line, name) of assignments of one name at the margin
    calls: tuple  # (line, name, whether it is no attribute, templates of the first argument) of calls of *Error


def facts(path):
    return facts_of(path.read_text())


@cache
def facts_of(text):
    tree = ast.parse(text)
    imports, definitions, stored, calls = [], [], [], []
    for node in ast.walk(tree):
        kind = type(node)
        if kind is ast.ImportFrom:
            imports.append((node.level, node.module or "", tuple(alias.name for alias in node.names)))
        elif kind is ast.Import:
            imports += [(0, alias.name, ()) for alias in node.names]
        elif kind in (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef):
            definitions.append((node.lineno, node.name, kind is ast.ClassDef))
        elif kind is ast.Call and node.args:
            plain = isinstance(node.func, ast.Name)
            name = node.func.id if plain else getattr(node.func, "attr", "")
            if name.endswith(("Error", "Interrupt", "Exit")):
                calls.append((node.lineno, name, plain, templates(node.args[0])))
        if kind is not ast.keyword and isinstance(getattr(node, "ctx", _STORE), ast.Store):
            names = (getattr(node, field, None) for field in ("id", "attr", "arg", "name"))
            stored += [(node.lineno, name) for name in names if isinstance(name, str) and hasattr(node, "lineno")]
    return Facts(*map(tuple, (imports, definitions, stored, _constants(tree), calls)))


_STORE = ast.Store()


def _constants(tree):
    for node in tree.body:
        target = node.targets[0] if isinstance(node, ast.Assign) else getattr(node, "target", None)
        if isinstance(target, ast.Name) and getattr(node, "value", None) is not None:
            yield node.lineno, node.end_lineno, target.id


def templates(node):
    """What an expression of a text can say, as lists of letters and holes: one list for each branch."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return [list(node.value)]
    if isinstance(node, ast.JoinedStr):
        return products(map(templates, node.values))
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return products(map(templates, (node.left, node.right)))
    if isinstance(node, ast.IfExp):
        return templates(node.body) + templates(node.orelse)
    return [[HOLE]]


def products(parts):
    found = [[]]
    for part in parts:
        found = [first + second for first in found for second in part][:64]
    return found
