"""Every page of docs/ is in one table of contents of the site, every room in its reference, every picture in order."""

import ast
import importlib.util
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PICTURES = sorted((ROOT / "docs" / "gallery").glob("*.py"))

pytestmark = pytest.mark.skipif(not (ROOT / "docs" / "conf.py").exists(), reason="needs the source tree")


@pytest.fixture(scope="module")
def site():
    spec = importlib.util.spec_from_file_location("site_pages", ROOT / "tools" / "site_pages.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_page_is_in_one_table_of_contents(site):
    listed = [name for shelf in (*site.SHELVES, site.PROOFS) for name in site.contents(shelf)]
    pages = {path.stem for path in (ROOT / "docs").glob("*.md")} | set(site.OF_THE_ROOT)
    pages |= {f"proofs/{path.stem}" for path in (ROOT / "docs" / "proofs").glob("*.md")}
    generated = {"pictures/index", "reference"}
    assert sorted(listed) == sorted((pages | generated) - {"index"})


def test_every_room_is_in_the_reference(site):
    stub = (ROOT / "fastpriv" / "__init__.pyi").read_text()
    named = set(re.findall(r"^from \S+ import (\w+) as \1$", stub, re.MULTILINE))
    listed = {name.removeprefix("studies.") for band in site.rooms().values() for name in band}
    places = ("{}", "{}.py", "studies/{}")
    modules = {name for name in named if any((ROOT / "fastpriv" / place.format(name)).exists() for place in places)}
    assert listed == modules - {"studies"} | {"papers", "errors"}


def test_pictures_are_numbered_and_begin_with_a_title():
    assert len(PICTURES) >= 15
    assert [path.stem[:7] for path in PICTURES] == [f"plot_{k:02d}" for k in range(1, len(PICTURES) + 1)]
    for path in PICTURES:
        text = path.read_text()
        title, line, empty, *words = ast.get_docstring(ast.parse(text)).splitlines()
        assert line == "=" * len(title), path.name
        assert not empty, path.name
        assert len(" ".join(words)) > 80, path.name
        assert text.endswith("plt.show()\n"), path.name


@pytest.mark.slow
def test_links_of_the_sources_lead_to_sources(site, tmp_path):
    site.write_sources(tmp_path)
    pages = [*tmp_path.glob("*.md"), *tmp_path.glob("proofs/*.md")]
    links = [(page, goal) for page in pages for goal, _ in site.LINK.findall(page.read_text())]
    made = "pictures/index.rst"  # by Sphinx
    assert [(page.name, goal) for page, goal in links if goal != made and not (page.parent / goal).exists()] == []
    assert len(links) > 150


def test_links_that_lead_nowhere_are_named(site, tmp_path):
    (tmp_path / "one.html").write_text('<a id="here" href="two.html#there">x</a><a href="https://example.org">y</a>')
    (tmp_path / "two.html").write_text('<p id="there"></p><a href="one.html#here">x</a>')
    assert site.broken_links(tmp_path) == []
    (tmp_path / "two.html").write_text('<a href="three.html">x</a><a href="one.html#nowhere">y</a>')
    broken = ["one.html: two.html#there", "two.html: one.html#nowhere", "two.html: three.html"]
    assert sorted(site.broken_links(tmp_path)) == broken


@pytest.mark.slow
def test_theorems_that_the_code_cites_are_on_the_pages_that_it_names():
    cited = re.compile(r"(?:docs/proofs/(\w+)\.md, )?theorems? (\d+\.\d+)(?: of docs/proofs/(\w+)\.md)?")
    sources = [path for folder, ends in (("csrc", "*.h"), ("fastpriv", "*.py")) for path in (ROOT / folder).rglob(ends)]
    texts = {path.stem: path.read_text() for path in (ROOT / "docs" / "proofs").glob("*.md")}
    theorems = {page: set(re.findall(r"^## Theorem (\d+\.\d+) ", text, re.MULTILINE)) for page, text in texts.items()}
    numbers = [number for page in theorems.values() for number in page]
    assert len(numbers) == len(set(numbers)) >= 70
    places = set()
    for path in sources:
        text = re.sub(r"\s*\n(?: \*|#)? *", " ", path.read_text())
        for before, number, behind in cited.findall(text):
            if page := before or behind:
                places.add(page)
                assert number in theorems[page], (path.name, page, number)
    assert len(places) >= 8


def test_a_page_of_proofs_counts_its_theorems_and_names_a_test():
    for path in (ROOT / "docs" / "proofs").glob("*.md"):
        if path.stem == "index":
            continue
        text = path.read_text()
        first, *numbers = re.findall(r"^#+ (?:Theorem )?(\d+(?:\.\d+)?)", text, re.MULTILINE)
        assert numbers == [f"{first}.{k}" for k in range(1, len(numbers) + 1)], path.name
        named = re.findall(r"`(tests/[\w/]+\.py)`", text)
        assert named, path.name
        assert all((ROOT / name).exists() for name in named), path.name
