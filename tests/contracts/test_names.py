"""Names have one meaning each and are more than an empty word; constants say what they are."""

import re
from collections import defaultdict
from pathlib import Path

import fastpriv
from contracts.source_facts import facts

ROOT = Path(fastpriv.__file__).parent
SOURCES = sorted(path for path in ROOT.rglob("*.py") if "kernels" not in path.parts)

# Words that name nothing by themselves: a name of one such word, or of one with an underscore, is replaced by a term.
EMPTY_WORDS = {
    "asked", "at", "base", "before", "bend", "between", "blur", "corners", "cuts", "deep", "depth", "endless",
    "enough", "felt", "found", "fuzz", "gain", "given", "goal", "held", "here", "kept", "late", "leading", "lean",
    "look", "looks", "made", "orders", "own", "pairwise", "part", "place", "pull", "reach", "reading", "room",
    "row", "score", "setting", "shape", "shares", "short", "silent", "slots", "stick", "support", "taken", "things",
    "told", "way", "ways", "words",
}
STANDARD = {"base", "shape"}  # of these, the module of a base class and the shape of an array are standard terms
# Words that say nothing about a variable, a parameter or a function.
BARE_WORDS = {
    "apart", "asked", "away", "found", "given", "held", "kept", "law", "moved", "one", "own", "place", "rest", "told",
    "turned",
}
ALLOWED_NAMES: dict[tuple[str, str], str] = {}  # (path in fastpriv, name): the reason why this name stays
# Modules that play the same part in several rooms.
SAME_PART = {
    "__init__": "every package has one",
    "abp": "average Bayesian privacy, of channels in general and of channels to sets",
    "assess": "the function, and its command",
    "files": "reading and writing the objects of a room",
    "gaussian": "the case of Gaussian noise: capacity, mechanism, notions, posteriors",
    "monte_carlo": "the sampled case of divergences, and of accuracy",
    "quantities": "the quantities of a room, and the method that computes each",
    "result": "the class of the results of a room",
}


def definitions():
    """Path, line and name of every module, class, function and method."""
    for path in SOURCES:
        yield path, 1, path.stem
        yield from ((path, line, name) for line, name, _ in facts(path).definitions)


def constants():
    """Path, first and last line and name of every module constant, and the lines of the module."""
    for path in SOURCES:
        lines = path.read_text().splitlines()
        for first, last, name in facts(path).constants:
            if re.fullmatch(r"_*[A-Z][A-Z0-9_]*", name):
                yield path, first, last, name, lines


def place(path, line):
    return f"{path.relative_to(ROOT.parent)}:{line}"


def test_no_two_modules_have_one_name():
    at = defaultdict(list)
    for path in SOURCES:
        at[path.stem].append(str(path.relative_to(ROOT)))
    twice = {name: paths for name, paths in at.items() if len(paths) > 1 and name not in SAME_PART}
    assert not twice, "\n".join(f"{name}: {', '.join(paths)}" for name, paths in twice.items())


def test_no_two_classes_have_one_name():
    at = defaultdict(list)
    for path in SOURCES:
        for line, name, is_class in facts(path).definitions:
            if is_class:
                at[name.lstrip("_")].append(place(path, line))
    twice = {name: places for name, places in at.items() if len(places) > 1}
    assert not twice, "\n".join(f"{name}: {', '.join(places)}" for name, places in twice.items())


def test_names_are_more_than_an_empty_word():
    named = [(f"{place(path, line)} {name}", name.strip("_").lower()) for path, line, name in definitions()]
    empty = [where for where, word in named if word in EMPTY_WORDS - STANDARD]
    assert not empty, "\n".join(empty)


def test_variables_and_parameters_are_terms():
    """Variables, parameters, attributes and functions are named by a term and not by a verb, a pronoun or an adverb."""
    bare = []
    for path in SOURCES:
        for line, name in facts(path).stored:
            if name.strip("_").lower() in BARE_WORDS and (str(path.relative_to(ROOT)), name) not in ALLOWED_NAMES:
                bare.append(f"{place(path, line)} {name}")
    assert not bare, "\n".join(bare)


def test_constants_say_what_they_are():
    silent = []
    for path, first, last, name, lines in constants():
        own = any("#" in line for line in lines[first - 1 : last])
        above = first >= 2 and lines[first - 2].lstrip().startswith("#")
        below = last < len(lines) and lines[last].startswith('"""')
        if not (own or above or below):
            silent.append(f"{place(path, first)} {name}")
    assert not silent, f"{len(silent)} constants have no comment:\n" + "\n".join(silent)
