"""A bound that people read is rounded outward: no page, panel, table or command formats one to the nearest digit."""

import ast
import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fastpriv
from fastpriv import Channel, Pmf
from fastpriv.base.numerics import rounded_down, rounded_outward, rounded_up

ROOT = Path(fastpriv.__file__).parent
MODULES = sorted(path.relative_to(ROOT) for path in ROOT.rglob("*.py"))
ENDS = ("lower", "upper")
FORMATS = re.compile(r"(?<![A-Za-z])[efgEFG%]\}|\b(format|round)\(")  # a text without these formats no number


def functions(tree):
    """The functions and methods, and the other statements outside of them; nested functions are part of theirs."""
    for node in tree.body:
        yield from functions(node) if isinstance(node, ast.ClassDef) else [node]


def name_of(function):
    return function.id if isinstance(function, ast.Name) else ""


def formatted_to_nearest(source):
    """Lines that format what is computed from ``.lower``, ``.upper`` or a name like these, as with ``:.3g``.

    A name counts from the first assignment on that computes it from a bound, within one function.
    """
    lines = set()
    if not FORMATS.search(source):
        return []
    for function in functions(ast.parse(source)):
        bounds = set(ENDS)

        def is_bound(expression, bounds=bounds):
            """Whether a bound occurs in an expression; one that was rounded outward is a text."""
            if isinstance(expression, ast.Call) and name_of(expression.func).startswith("rounded_"):
                return False
            if isinstance(expression, ast.Attribute) and expression.attr in ENDS:
                return True
            if isinstance(expression, ast.Name):
                return expression.id in bounds
            if isinstance(expression, ast.Constant):  # of number["lower"], or of getattr(number, "lower")
                return expression.value in ENDS
            called = expression.func if isinstance(expression, ast.Call) else None
            if isinstance(called, ast.Attribute) and called.attr in ENDS:  # text.upper()
                return is_bound(called.value)
            return any(is_bound(part) for part in ast.iter_child_nodes(expression))

        before = None
        while before != bounds:
            before = set(bounds)
            for node in ast.walk(function):
                source = getattr(node, "iter" if isinstance(node, (ast.For, ast.comprehension)) else "value", None)
                targets = getattr(node, "targets", [getattr(node, "target", None)])
                if source is not None and targets[0] is not None and is_bound(source):
                    for target in targets:
                        pairs = [(target, source)]
                        if isinstance(target, ast.Tuple) and isinstance(source, ast.Tuple):
                            pairs = list(zip(target.elts, source.elts, strict=False))
                        for name, part in pairs:
                            if is_bound(part):
                                bounds |= {node.id for node in ast.walk(name) if isinstance(node, ast.Name)}
        raised = {id(part) for node in ast.walk(function) if isinstance(node, ast.Raise) for part in ast.walk(node)}
        for node in ast.walk(function):
            if id(node) in raised:  # an error tells what was measured, and claims nothing
                continue
            if isinstance(node, ast.FormattedValue) and node.format_spec:
                spec = ast.unparse(node.format_spec).rstrip("'\"")
                if spec[-1:] in "efgEFG%" and is_bound(node.value):
                    lines.add(node.lineno)
            called = name_of(node.func) if isinstance(node, ast.Call) else ""
            if called in ("format", "round") and any(map(is_bound, node.args)):
                lines.add(node.lineno)
    return sorted(lines)


@pytest.mark.parametrize("module", MODULES, ids=str)
def test_no_bound_is_formatted_to_the_nearest_digit(module):
    source = (ROOT / module).read_text()
    lines = formatted_to_nearest(source) if any(end in source for end in ENDS) else []
    assert not lines, f"{module}, lines {lines}: use rounded_up, rounded_down or rounded_outward of base.numerics"


@pytest.mark.parametrize(
    "code",
    ['f"{one.upper:.3g}"', 'f"{float(one.lower):.2f}"', 'format(one.upper, ".3g")', "round(one.lower, 3)",
     'f"{lower:.6g}"', 'bits = {n: r[n].to("bits").upper for n in names}\n    f"{bits[n][0]:.3g}"',
     'width = max((b.upper - b.lower) / b.value)\n    f"{width:.0e}"', 'for x in one.upper: f"{x:.3g}"',
     'for end in ("value", "lower"): f"{one[end]:.3g}"', 'f"{getattr(one, \'upper\'):.3g}"',
     'low, high = one.lower, one.upper\n    f"{high:.{digits}g}"', '", ".join(f"{x:.3g}" for x in one.lower)'],
)
def test_the_lint_finds(code):
    assert formatted_to_nearest(f"def shown(one, r, names):\n    {code}\n")


@pytest.mark.parametrize(
    "code",
    ['f"{one.value:.3g}"', 'f"{rounded_up(one.upper)}"', 'f"{name.upper():>8}"', 'f"{one:.3f}"',
     'value, lower = one.value, one.lower\n    f"{value:.3g}"', 'raise DomainError(f"got {one.upper:.3g}")'],
)
def test_the_lint_passes(code):
    assert not formatted_to_nearest(f"def shown(one, name):\n    {code}\n")


@pytest.mark.parametrize(("number", "up", "down"), [
    (0.57729732, "0.578", "0.577"), (0.62805541, "0.629", "0.628"), (1.20163386, "1.21", "1.2"), (0.1, "0.1", "0.1"),
    (0.0, "0", "0"), (-0.12345, "-0.123", "-0.124"), (9.999, "10", "9.99"), (5e-324, "4.94e-324", "4.94e-324"),
    (float("inf"), "inf", "inf"), (1.7976931348623157e308, "inf", "1.79e+308"),
])
def test_rounded_up_and_down(number, up, down):
    assert rounded_up(number) == up
    assert rounded_down(number) == down


@settings(max_examples=300, deadline=None)
@given(st.floats(allow_nan=False), st.integers(0, 20), st.sampled_from("efg"))
@pytest.mark.slow
def test_rounding_is_outward(number, places, form):
    spec = f".{places}{form}"
    below, above = (float(rounded_outward(number, spec, below=side)) for side in (True, False))
    assert below <= number <= above


def test_the_bounds_of_a_channel_are_rounded_up_in_its_picture():
    pytest.importorskip("matplotlib")
    channel = Channel([[0.93, 0.05, 0.02], [0.08, 0.86, 0.06], [0.01, 0.37, 0.62]])
    report = fastpriv.assess(Pmf([0.0, 1.0, 2.0], [0.5, 0.2, 0.3]), mechanism=channel, epsilon=[1.0])
    shown = dict(text.get_text().split(": ") for text in fastpriv.report.leakage(report).texts)
    names = {"maximal leakage": "maximal_leakage", "capacity": "capacity", "mutual information": "mutual_information",
             "min-entropy leakage": "min_entropy_leakage"}
    assert shown.keys() == names.keys()
    for text, name in names.items():
        bound = float(report[name].to("bits").upper[0])
        assert bound <= float(shown[text]) <= 1.01 * bound, name
