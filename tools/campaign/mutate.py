"""Change single places of the numeric modules, and see which changes no test notices. It needs the package coverage.

First which lines each short test runs, in minutes; FOLDER keeps it, and other runs add to it. Then mutants, in a copy
of the tree: operators, comparisons, constants, ends of bounds, directions of rounding, ``and`` for ``or``, early
returns that are not taken, as many of each kind. The tests that reach the lines run up to the first failure, the
fastest first. Last the tests that failed run on the original, so that a kill is none of their own.

    python tools/campaign/mutate.py FOLDER --record tests/enclosures tests/properties
    python tools/campaign/mutate.py FOLDER --count 150 --seed 1

A survivor is equivalent to the original, steers the work alone, or shows what the tests lack.
"""

import argparse
import ast
import copy
import json
import os
import random
import re
import resource
import shutil
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
ROOMS = ("composition", "pairs", "mechanisms", "divergences", "channels", "posteriors", "notions", "conversions",
         "capacity", "sampling", "calibration", "distributions", "studies/membership", "studies/auditing",
         "studies/leakage")
NO_NUMBERS = re.compile(r".*/(panels|files|genotype_files|score_files|model_adapters|pool_.*|figures)\.py")
TEXTS = {"__repr__", "__str__", "isinstance", "hasattr", "getattr", "cast", "warn", "validate", "join", "summary",
         "describe", "cost", "method", "n_jobs", "progress"}  # functions, calls and arguments that are left alone
SWAPS = [(ast.Add, ast.Sub), (ast.Mult, ast.Div), (ast.BitAnd, ast.BitOr), (ast.And, ast.Or), (ast.Lt, ast.LtE),
         (ast.Gt, ast.GtE), (ast.Eq, ast.NotEq), (ast.Is, ast.IsNot), ("lower", "upper"), ("min", "max"),
         ("any", "all"), ("minimum", "maximum"), ("floor", "ceil"), ("argmin", "argmax"), ("next_above", "next_below"),
         ("rounded_up", "rounded_down"), (ast.Pow, ast.Mult), (ast.FloorDiv, ast.Div)]
SWAP = {two: one for one, two in SWAPS} | dict(SWAPS)
BUDGET, TESTS_OF_A_LINE, TESTS_OF_A_FUNCTION = 20.0, 60, 2  # seconds that the tests of a mutant take on the original
PYTEST = ["-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist"]


def changes(node, parent):
    """Pairs of a kind of mutant and the node that takes the place of this one."""
    new, name = copy.deepcopy(node), getattr(node, "attr", getattr(node, "id", None))
    if isinstance(node, (ast.BinOp, ast.BoolOp)) and type(node.op) in SWAP:
        new.op = SWAP[type(node.op)]()
        yield "and, or" if isinstance(node.op, (ast.BitAnd, ast.BitOr, ast.And, ast.Or)) else "operator", new
    elif isinstance(node, ast.Compare) and type(node.ops[0]) in SWAP:
        new.ops[0] = SWAP[type(node.ops[0])]()
        yield "comparison", new
    elif isinstance(node, ast.Constant) and isinstance(node.value, (int, float)):
        value = node.value
        one, other = (not value,) * 2 if isinstance(value, bool) else (
            (value + 1, value - 1) if isinstance(value, int) else (2 * value or 0.5, value / 2 or -0.5))
        yield from (("constant", ast.Constant(one)), ("constant", ast.Constant(other)))
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.Not, ast.USub)):
        yield "sign, not", node.operand
    elif name in SWAP and isinstance(node.ctx, ast.Load):
        setattr(new, "attr" if isinstance(node, ast.Attribute) else "id", SWAP[name])
        yield "rounding" if name.startswith(("next", "rounded")) else "ends", new
    elif isinstance(node, ast.Call) and node.args and re.match(
            "next_|nextafter|_*round", ast.unparse(node.func).split(".")[-1]):
        yield "rounding", node.args[0]


def places(node, parent=None, statement=None):
    """Kind, node to replace, node instead of it, and the statement, of every mutant of a module."""
    names = {getattr(node, key, None) for key in ("name", "arg")}
    names |= {getattr(x, key, None) for x in ast.walk(getattr(node, "func", ast.Pass())) for key in ("id", "attr")}
    text = isinstance(node, ast.BinOp) and any(isinstance(x, ast.JoinedStr) or isinstance(getattr(x, "value", 0), str)
                                               for x in (node.left, node.right))
    raises = isinstance(getattr(node, "body", [node])[0] if isinstance(node, ast.If) else node, (ast.Raise, ast.Assert))
    if text or raises or isinstance(node, (ast.JoinedStr, ast.Import, ast.ImportFrom)) or (
            names & TEXTS and isinstance(node, (ast.FunctionDef, ast.keyword, ast.Call))):
        return
    if isinstance(node, ast.If) and isinstance(node.body[-1], ast.Return):
        yield "early return", node.test, ast.Constant(False), node.test
    if isinstance(node, ast.expr):
        yield from ((kind, node, new, statement) for kind, new in changes(node, parent))
    for field, value in ast.iter_fields(node):
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST) and field not in ("annotation", "returns", "decorator_list"):
                yield from places(child, node, child if isinstance(child, ast.stmt) else statement)


def record(folder, tests):
    """Run tests in this process, in a copy of the tree, and write which lines of the package each of them runs."""
    import coverage
    import pytest

    cover, seconds, lines = coverage.Coverage(data_file=None, source=[str(ROOT / "fastpriv")]), {}, {}

    class Recorder:
        def pytest_runtest_logstart(self, nodeid):
            cover.switch_context(nodeid)

        def pytest_runtest_logreport(self, report):
            if report.when == "call" and report.passed:
                seconds[report.nodeid] = report.duration

    cover.start()
    pytest.main([*PYTEST[2:], *tests], plugins=[Recorder()])
    cover.stop()
    for file in cover.get_data().measured_files():
        for line, contexts in cover.get_data().contexts_by_lineno(file).items():
            tests = [test for test in contexts if test in seconds]
            lines[f"{Path(file).relative_to(ROOT)}:{line}"] = cheapest(tests, seconds)
    (folder / f"record-{os.getpid()}.json").write_text(json.dumps({"seconds": seconds, "lines": lines}))


def cheapest(tests, seconds):
    """The fastest tests, those of arguments last, few parameters of each."""
    taken, functions, total = [], Counter(), 0.0
    for test in sorted(tests, key=lambda test: (seconds[test] + 0.05) * (5 if "/contracts/" in test else 1)):
        function = test.split("[")[0]
        if functions[function] < TESTS_OF_A_FUNCTION and total < BUDGET and len(taken) < TESTS_OF_A_LINE:
            functions[function] += 1
            total += seconds[test]
            taken.append(test)
    return taken


def chosen_tests(lines, seconds, file, source, statement):
    """Tests that reach a statement."""
    end = max(statement.lineno, statement.body[0].lineno - 1) if hasattr(statement, "body") else statement.end_lineno
    reached = {test for line in range(statement.lineno, end + 1) for test in lines[f"{file}:{line}"]}
    target = getattr(statement, "targets", [getattr(statement, "target", None)])[0]
    if not reached and isinstance(target, ast.Name):  # a constant of the module: the lines that name it
        reached = {test for line, text in enumerate(source.splitlines(), 1) if re.search(rf"\b{target.id}\b", text)
                   for test in lines[f"{file}:{line}"]}
    return cheapest(reached, seconds)


def run(tree, arguments, limit=None):
    """Status and output of Python in the copy of the tree."""
    environment = {**os.environ, "PYTHONPATH": str(tree), "PYTHONDONTWRITEBYTECODE": "1", "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, *arguments], cwd=tree, env=environment, text=True, capture_output=limit is not None,
        preexec_fn=limit and (lambda: resource.setrlimit(resource.RLIMIT_CPU, (limit, limit))))
    return done.returncode, done.stdout or ""


def mutate(options, tree):
    """Run the mutants that chance chooses, and print those that no test kills."""
    lines, seconds, kinds = defaultdict(list), {}, defaultdict(list)
    for content in (json.loads(path.read_text()) for path in sorted(options.folder.glob("record-*.json"))):
        seconds |= content["seconds"]
        for key, tests in content["lines"].items():
            lines[key] += tests
    for path in sorted(path for room in options.rooms for path in (tree / "fastpriv" / room).rglob("*.py")):
        for kind, *rest in places(ast.parse(path.read_text())) if not NO_NUMBERS.match(str(path)) else ():
            kinds[kind].append((path, *rest))
    chance, results, killers = random.Random(options.seed), Counter(), {}
    for index in range(options.count):
        kind = sorted(kinds)[index % len(kinds)]
        path, node, new, statement = kinds[kind].pop(chance.randrange(len(kinds[kind])))
        source, file, result, output = path.read_text(), str(path.relative_to(tree)), "no test", ""
        tests = chosen_tests(lines, seconds, file, source, statement)
        if tests:
            rows = [0, *(len(line) for line in source.encode().splitlines(keepends=True))]
            begin, end = (sum(rows[:row]) + column for row, column in (
                (node.lineno, node.col_offset), (node.end_lineno, node.end_col_offset)))
            text = ast.unparse(ast.fix_missing_locations(new)).encode()
            path.write_bytes(source.encode()[:begin] + b"(" + text + b")" + source.encode()[end:])
            status, output = run(tree, [*PYTEST, "-x", *tests], int(30 + 5 * sum(map(seconds.get, tests))))
            shutil.copy2(ROOT / file, path)
            result = "out of time" if status < 0 else "killed" if status else "survived"
        results[result] += 1
        killers |= dict.fromkeys(re.findall(r"^FAILED (.*?)(?: - .*)?$", output, re.MULTILINE))
        if result != "killed":
            change = f"{ast.unparse(node)[:70]}  ->  {ast.unparse(new)[:70]}"
            print(f"{result:12} {kind:12} {file}:{node.lineno}  {change}   ({len(tests)} tests)", flush=True)
    print(dict(results))
    return run(tree, [*PYTEST, *killers])[0] if killers else 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=lambda text: Path(text).resolve())
    for name, default in (("--record", None), ("--rooms", ROOMS)):
        parser.add_argument(name, nargs="+", default=default)
    for name, default in (("--count", 100), ("--seed", 1)):
        parser.add_argument(name, type=int, default=default)
    options = parser.parse_args()
    options.folder.mkdir(exist_ok=True)
    if "MUTATION_COPY" in os.environ:
        sys.exit(record(options.folder, options.record))
    with tempfile.TemporaryDirectory() as scratch:
        tree = Path(scratch) / "tree"
        shutil.copytree(ROOT, tree, ignore=shutil.ignore_patterns(".git", "build", ".venv*", "__pycache__"))
        os.environ["MUTATION_COPY"] = "1"
        program = [str(tree / "tools" / "campaign" / "mutate.py"), str(options.folder), "--record"]
        sys.exit(run(tree, [*program, *options.record])[0] if options.record else mutate(options, tree))
