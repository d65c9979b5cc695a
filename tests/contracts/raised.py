"""Which messages of errors a test string matches, read from the sources; `test_raises` asks it about the package.

A message is a template: fixed text with holes where an f-string puts values. A test string, be it a regular expression
for ``match=`` or plain text, matches a message when it is part of something that the template can say. It counts when
in doing so an uninterrupted piece of it agrees with ``ENOUGH`` letters of the fixed text, so that a message with other
words is not matched, however many letters it shares.
"""

import ast
import re
import re._constants as ops
import re._parser
import warnings
from collections import Counter

import numpy as np

from contracts.source_facts import HOLE, facts, products, templates

__all__ = ["ENOUGH", "Expectations", "messages"]

ENOUGH = 18
LEAST = 12  # letters of fixed text below which a message is made of the caller's words
GRAM = 8


def shown(tokens):
    return "".join("{}" if letter is HOLE else letter for letter in tokens)


def messages(path):
    """(line, template) of every message that a module gives to an error, raised there or returned."""
    return [(line, template) for line, _, _, branches in facts(path).calls for template in branches
            if sum(letter is not HOLE for letter in template) >= LEAST]


def of_regular_expression(text):
    """What a regular expression asks for, a hole for everything but plain letters; nothing where it is none."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)
            parsed = re._parser.parse(text)
    except re.error:
        return []

    def asked(items):
        return products(map(one, items))

    def one(item):
        kind, value = item
        if kind is ops.LITERAL:
            return [[chr(value)]]
        if kind is ops.AT:
            return [[]]
        if kind is ops.SUBPATTERN:
            return asked(value[3])
        if kind is ops.BRANCH:
            return [tokens for branch in value[1] for tokens in asked(branch)]
        return [[HOLE]]

    return asked(parsed)


class Expectations:
    """The strings of some test modules, as plain text and as regular expressions."""

    def __init__(self, paths):
        kept = {}
        for path in paths:
            nodes = [node for node in ast.walk(ast.parse(path.read_text()))
                     if isinstance(node, ast.JoinedStr | ast.Constant)]
            inside = {id(part) for node in nodes if isinstance(node, ast.JoinedStr) for part in node.values}
            for node in nodes:
                if isinstance(getattr(node, "value", ""), str) and id(node) not in inside:
                    for tokens in templates(node):
                        kept[tuple(tokens)] = None
                        plain = "".join(".*" if letter is HOLE else letter for letter in tokens)
                        if re.search(r"[\\.*|(\[]", plain):
                            kept |= dict.fromkeys(map(tuple, of_regular_expression(plain)))
        self.strings = list(kept)
        self.of_gram = {}
        for number, tokens in enumerate(self.strings):
            for gram in grams(tokens):
                self.of_gram.setdefault(gram, []).append(number)

    def best(self, template):
        """The string that agrees with most letters of a template, and with how many: the most of one piece of it."""
        near = Counter(number for gram in grams(template) for number in self.of_gram.get(gram, ()))
        best, agreed = "", 0
        for number, _ in near.most_common():
            tokens = self.strings[number]
            most = max(agreement(piece, template) for piece in pieces(tokens))
            if most > agreed and agreement(tokens, template) > 0:
                best, agreed = shown(tokens), most
            if agreed >= ENOUGH:
                break
        return best, agreed

    def unmatched(self, paths, root):
        """A line for each message that no string matches: where it is, what it says, and what came nearest."""
        found = []
        for path in paths:
            for line, template in messages(path):
                best, agreed = self.best(template)
                if agreed < min(ENOUGH, sum(letter is not HOLE for letter in template)):
                    nearest = f"{agreed} letters of {best[:80]!r}" if agreed else "nothing"
                    found.append(f"{path.relative_to(root)}:{line}: {shown(template)[:160]!r}; nearest: {nearest}")
        return found


def pieces(tokens):
    """The runs of letters between the holes."""
    run = []
    for letter in (*tokens, HOLE):
        if letter is not HOLE:
            run.append(letter)
        elif run:
            yield tuple(run)
            run = []


def grams(tokens):
    return {"".join(piece[i : i + GRAM]) for piece in pieces(tokens) for i in range(len(piece) - GRAM + 1)}


def agreement(tokens, template):
    """How many letters of the fixed text a string agrees with where it is part of what the template can say; or 0."""
    codes = np.array([-1 if letter is HOLE else ord(letter) for letter in template])
    holes = np.flatnonzero(codes < 0)
    best = np.zeros(codes.size + 1, dtype=int)  # of the ways to stand before each place of the template
    for letter in tokens:
        if letter is HOLE:
            best = np.maximum.accumulate(best)
            continue
        new = np.full(best.size, -(10**6))
        same = codes == ord(letter)
        new[1:][same] = best[:-1][same] + 1
        new[holes] = np.maximum(new[holes], best[holes])  # a value may say any letter
        for hole in holes:  # or nothing more
            new[hole + 1] = max(new[hole + 1], new[hole])
        best = new
    return max(0, int(best.max()))
