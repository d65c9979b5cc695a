"""What a user types into a search of the documents leads to the page that answers it, among the first three."""

import functools
import math
import re
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"
TITLE, HEADING, TEXT = 4.0, 3.0, 1.0  # weights of a word that stands there, as searches of sites have them
COMMON = frozenset(re.findall(r"\w+", (
    "a an and are as at be by can do does for from have how i in is it many my of on or several should the to use what "
    "which with"
)))
QUESTIONS = {
    "epsilon from sigma": "start_training",
    "which sigma should I choose": "noise_level",
    "noise for a mean": "assessment noise_level",
    "batch size sampling without replacement": "sampling",
    "best of many runs": "composition",
    "several rows per user": "assessment glossary",
    "convert LIP to LDP": "conversions",
    "how many training steps can I run": "composition start_training",
    "shuffled randomised response": "sampling",
    "randomized response shuffling": "sampling",
    "audit claimed epsilon": "auditing",
    "membership attack on allele frequencies": "membership",
    "reconstruct records from gradients": "leakage",
    "run on a cluster": "large_runs",
    "opacus accountant": "adapters",
    "several rows of one person": "assessment",
    "excel file with dates": "assessment",
    "posterior of a secret": "posteriors",
    "capacity of a channel": "channels conversions",
    "hockey-stick divergence of mixtures": "divergences",
}


def stems(text):
    """Words without the endings that a search leaves out, and their number."""
    counts = {}
    for word in re.findall(r"[a-z0-9]+", text.lower()):
        if word in COMMON:
            continue
        stem = re.sub(r"(?<=[a-z]{3})(ings?|ed|es|s|e)$", "", word)
        counts[stem] = counts.get(stem, 0) + 1
    return counts


@functools.cache
def pages():
    """Title, headings and text of each page, as stems, without the code."""
    found = {}
    for path in [*DOCS.glob("*.md"), *DOCS.glob("proofs/*.md")]:
        text = re.sub(r"^```.*?^```", "", path.read_text(), flags=re.M | re.S)
        headings = re.findall(r"^#+ (.*)$", text, re.M)
        name = path.relative_to(DOCS).with_suffix("").as_posix()
        found[name] = stems(headings[0]), stems(" ".join(headings[1:])), stems(text)
    return found


def search(query, number=3):
    """The pages with the largest sums of weights over the words, rare words first."""
    rank = dict.fromkeys(pages(), 0.0)
    for word in stems(query):
        holders = [name for name, (*_, text) in pages().items() if word in text]
        rarity = math.log((1 + len(rank)) / (0.5 + len(holders)))
        for name in holders:
            title, headings, text = pages()[name]
            weight = TITLE * (word in title) + HEADING * (word in headings)
            rank[name] += rarity * (weight + TEXT * math.log2(1 + text[word]))
    return sorted(rank, key=rank.get, reverse=True)[:number]


@pytest.mark.slow
@pytest.mark.parametrize("query", QUESTIONS)
def test_the_page_that_answers_is_among_the_first(query):
    assert set(search(query)) & set(QUESTIONS[query].split()), search(query)


@pytest.mark.slow
def test_words_that_no_page_has_find_nothing_in_particular():
    """The search can fail: what it finds depends on the words."""
    assert search("gradients")[0] != search("allele")[0]
    assert stems("Sampling samples, sampled") == {"sampl": 3}
