"""Pages of the site: ``python tools/site_pages.py FOLDER`` writes the sources that tools/site gives to Sphinx.

``FOLDER`` gets the pages of docs/ and of the root, with links that lead from one to the other, a page of reference for
each room that fastpriv/__init__.pyi names, and on the pages of ``SHELVES`` a table of contents with the pages that they
link. ``--check-links FOLDER`` says which links of a built site lead nowhere.
"""

from __future__ import annotations

import re
import shutil
import sys
from html.parser import HTMLParser
from importlib import import_module
from inspect import isclass, isroutine
from itertools import chain
from pathlib import Path
from posixpath import normpath
from types import ModuleType
from urllib.parse import unquote

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
TOP = "names"  # the page of the names of fastpriv itself
SHELVES = ("index", "start", "how_to", "why")  # the home page names the other ones, and they name all other pages
PROOFS = "proofs/index"  # a shelf that ``why`` names, of the pages in docs/proofs
OF_THE_ROOT = ("README", "ARCHITECTURE", "BOUNDS", "CHANGELOG", "CONTRIBUTING", "CONVERSIONS", "SECURITY")
LINK = re.compile(r"\]\(([\w./-]+?)(#[\w-]+)?\)")
BANDS = {  # the bands of ARCHITECTURE.md, and what a reader finds there
    "8": "Other packages' objects in and out", "7": "Applications", "6": "Many releases, and sweeps",
    "5": "Privacy notions, conversions, calibration", "4": "Quantities",
    "3": "Mechanisms, sampling, compiled functions", "2": "Objects", "1": "What all share",
}


def linked_pages(name: str) -> list[str]:
    """Pages of docs/ and of the root that a page links, by their names in the site, each once."""
    text, folder = (DOCS / f"{name}.md").read_text(encoding="utf-8"), Path(name).parent.as_posix()
    goals = [normpath(f"{folder}/{goal}") for goal, _ in LINK.findall(text) if goal.endswith(".md")]
    names = [goal.removesuffix(".md").removeprefix("../") for goal in goals]
    return [one for one in dict.fromkeys(names) if one != name and Path(one).parent in (Path("."), Path("proofs"))]


def linked_files() -> list[str]:
    """Other files of the repository that the pages link, from its root: code, the license, a README of a folder."""
    pages = [*(ROOT / f"{name}.md" for name in OF_THE_ROOT), *DOCS.glob("*.md"), *DOCS.glob("proofs/*.md")]
    goals = {normpath((page.parent / goal).relative_to(ROOT))
             for page in pages for goal, _ in LINK.findall(page.read_text(encoding="utf-8"))}
    return sorted(goal for goal in goals if (ROOT / goal).is_file() and (ROOT / goal) not in pages
                  and not goal.startswith("docs/"))


def contents(name: str) -> list[str]:
    """The table of contents of a shelf: the pages that it links, but for those that have their place elsewhere."""
    if name == "index":
        return ["start", "how_to", "pictures/index", "reference", "why", "errata"]
    if name == PROOFS:
        return [one for one in linked_pages(name) if Path(one).parent == Path("proofs")]
    elsewhere = {*SHELVES, "errata"} | (set() if name == "how_to" else set(linked_pages("how_to")))
    return [one for one in linked_pages(name) if one not in elsewhere]


def rooms() -> dict[str, list[str]]:
    """The rooms that fastpriv/__init__.pyi names, by the bands of ARCHITECTURE.md."""
    stub = (ROOT / "fastpriv" / "__init__.pyi").read_text(encoding="utf-8")
    public = re.findall(r"^from (?:\.|\.studies|\.base) import (\w+) as \1$", stub, re.MULTILINE)
    table = re.findall(r"^\| (\d) \| ([^|]+) \|", (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8"), re.MULTILINE)
    bands = {name: band for band, names in table for name in re.findall(r"`(\w+)`", names)}
    studies = re.findall(r"^from \.studies import (\w+) as", stub, re.MULTILINE)
    result: dict[str, list[str]] = {band: [] for band in BANDS}
    for name in public:
        band = "7" if name in studies else "1" if name == "errors" else bands[name]
        result[band].append({"studies": "studies.papers"}.get(name, name))
    return result


def module_of(room: str) -> ModuleType:
    """The module of a room; ``TOP`` is the package itself."""
    return import_module("fastpriv" if room == TOP else f"fastpriv.{room}")


def first_paragraph(room: str) -> str:
    """What the docstring of a room begins with; of a short address that of the module behind it."""
    studies = {path.name: f"studies.{path.name}" for path in (ROOT / "fastpriv" / "studies").iterdir()}
    places = {"errors": "base.errors"} | studies
    module = module_of(places.get(room, room))
    return re.sub(r"\s+", " ", (module.__doc__ or "").strip().split("\n\n")[0])


def names_of(room: str) -> list[str]:
    """Public names of a room: functions and classes first, then other objects are left out."""
    module = module_of(room)
    return [name for name in sorted(module.__all__) if isclass(value := getattr(module, name)) or isroutine(value)
            or type(value).__name__ == "ufunc"]


def room_page(room: str, homes: dict[int, str]) -> str:
    """One page of reference; what another room documents is a link to it."""
    module = module_of(room)
    title, first = module.__name__ if room == TOP else f"fastpriv.{room}", re.sub(r"[`*|]+", "", first_paragraph(room))
    lines = [title, "=" * len(title), "", f".. currentmodule:: {title}", "", first, ""]
    if not names_of(room):  # functions that are compiled when their names are first used
        functions = ", ".join(f"``{name}``" for name in dir(module))
        lines[-2:] = [f".. automodule:: {title}", "   :no-index:", "", f"Functions: {functions}.", ""]
    for name in names_of(room):
        value = getattr(module, name)
        home = homes.setdefault(id(value), room)
        lines += [name, "-" * len(name), ""]
        if home != room:
            lines += [f"Documented in :doc:`{home}`.", ""]
            continue
        kind = "autoclass" if isclass(value) else "autofunction"
        lines += [f".. {kind}:: {title}.{name}", ""]
        if kind == "autoclass" and not issubclass(value, Exception):
            lines[-1:] = ["   :members:", ""]
    return "\n".join(lines)


def reference_page(found: dict[str, list[str]]) -> str:
    """The shelf of reference: bands, and the rooms of each."""
    lines = ["# Reference", "", "Every public name, on one page a room. A band builds on those below it, and never on "
             "one above; the search finds names and words of all pages.", "",
             f"* [`fastpriv`](reference/{TOP}.rst): the names that are used most, `Estimate` among them.", ""]
    for band, title in BANDS.items():
        if not found[band]:
            continue
        lines += [f"## {title}", ""]
        lines += [f"* [`fastpriv.{room}`](reference/{room}.rst): {first_paragraph(room)}" for room in found[band]]
        lines.append("")
    every = [f"reference/{room}" for room in (TOP, *chain.from_iterable(found.values()))]
    return "\n".join([*lines, "```{toctree}", ":hidden:", "", *every, "```", ""])


def write_sources(folder: Path) -> None:
    """Write all sources of the site."""
    shutil.copytree(DOCS, folder, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__"))
    beside = linked_files()
    for name in beside:
        goal = folder / name
        goal.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, goal.with_suffix(".txt") if name.endswith(".md") else goal)
    for name in OF_THE_ROOT:
        shutil.copy(ROOT / f"{name}.md", folder / f"{name}.md")
    for path in [*folder.glob("*.md"), *folder.glob("proofs/*.md")]:
        text, name = path.read_text(encoding="utf-8"), path.relative_to(folder).with_suffix("").as_posix()
        text = re.sub(r"\]\((?:\.\./|docs/)(?=[\w./-]+)", "](", text)
        for one in beside:
            text = text.replace(f"{one})", f"{one.removesuffix('.md')}.txt)") if one.endswith(".md") else text
        if name in (*SHELVES, PROOFS):
            text += "\n".join(["", "```{toctree}", ":hidden:", "", *map(_entry, contents(name)), "```", ""])
        text = re.sub(r"\n+\n```\n", "\n```\n", text)  # doctest needs an empty line after the last output
        path.write_text(text.replace("\n| Pictures |", "\n| [Pictures](pictures/index.rst) |").replace(
            "\n| Reference |", "\n| [Reference](reference.md) |"), encoding="utf-8")
    found = rooms()
    (folder / "reference").mkdir()
    (folder / "reference.md").write_text(reference_page(found), encoding="utf-8")
    every = [*chain.from_iterable(found.values()), TOP]
    public = [(room, getattr(module_of(room), name)) for room in every for name in names_of(room)]
    homes = {id(value): room for room, value in public
             if (getattr(value, "__module__", None) or "").startswith(f"fastpriv.{room}.")}
    for room in every:
        (folder / "reference" / f"{room}.rst").write_text(room_page(room, homes), encoding="utf-8")


def _entry(name: str) -> str:
    """An entry of a table of contents, from the root; the title of README is the name of the package."""
    return "Overview <README>" if name == "README" else f"/{name}"


class Page(HTMLParser):
    """Links and anchors of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.links: list[str] = []
        self.anchors: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Keep what a tag links, and its id."""
        known = dict(attrs)
        self.anchors |= {known[key] for key in ("id", "name") if known.get(key)}  # type: ignore[misc]
        link = known.get({"a": "href", "link": "href", "img": "src", "script": "src"}.get(tag, ""))
        if link:
            self.links.append(link)


def broken_links(folder: Path) -> list[str]:
    """Links within a built site that lead nowhere."""
    pages: dict[Path, Page] = {}
    for path in (path for path in folder.rglob("*.html") if "_static" not in path.parts):
        pages[path.resolve()] = page = Page()
        page.feed(path.read_text(encoding="utf-8"))
    broken = []
    for path, page in pages.items():
        for link in page.links:
            if re.match(r"[a-z]+:|//", link):
                continue
            name, _, anchor = link.split("?")[0].partition("#")
            goal = (path.parent / unquote(name)).resolve() if name else path
            if not goal.exists() or (anchor and goal in pages and unquote(anchor) not in pages[goal].anchors):
                broken.append(f"{path.relative_to(folder.resolve())}: {link}")
    return broken


def main() -> None:
    """Write sources, or check links."""
    if sys.argv[1] == "--check-links":
        broken = broken_links(Path(sys.argv[2]))
        if broken:
            raise SystemExit("\n".join(["Links that lead nowhere:", *broken]))
    else:
        write_sources(Path(sys.argv[1]))


if __name__ == "__main__":
    main()
