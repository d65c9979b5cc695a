"""The errata of the field: ``python tools/errata.py`` writes docs/errata.md, ``--check`` says whether it is current.

The entries are in errata.toml. Their code runs here, through fastpriv's public names, and the page shows what it
prints; numbers in the texts are computed from its variables. Code that needs other packages runs by ``--peers`` alone,
with the packages that are installed, and what it printed is kept in errata_peers.json with their versions:

    python tools/errata.py --peers

runs all of it; an entry that says ``checkout`` needs that source on PYTHONPATH, and is left as it was elsewhere.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import io
import json
import subprocess
import sys
import textwrap
import tomllib
from collections import Counter
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "errata.md"
ENTRIES, RECORD = (Path(__file__).with_name(name) for name in ("errata.toml", "errata_peers.json"))
DATE = "29 November 2026"
HEAD = ("import math", "import numpy as np", "import fastpriv as fp")
MAX_STATEMENTS = 5  # of a counterexample, after those of the head of the page
VERDICTS = {
    "false": "an example on this page contradicts it",
    "loose": "it is true, and a smaller number is proved here",
    "convention": "two readings of one setting give different answers, and the documents do not settle which is meant",
    "limit": "the tool promises no bound there, and says so",
}
INTRODUCTION = f"""\
# Errata of the field

Statements of papers, answers of libraries and habits of practice that are false, or far from the best that is proved,
as of {DATE}. Each entry has its place, an example that runs, the form that holds, and the size of the error.
The works that are named here are those that fastpriv builds on, and most of what they say is right. What fastpriv
itself had wrong is in [CHANGELOG.md](../CHANGELOG.md). If an entry is mistaken or out of date, please tell us as
[SECURITY.md](../SECURITY.md) says: it will be mended first.

`python tools/errata.py` writes this page: every example is run, and every number in the text is computed by it. A
guarantee quotes an upper bound and a counterexample a lower one, so that `true` and `printed` are proved to differ.
"""


def statements_of(code: str) -> list[str]:
    """The statements of a text, with the comments that stand beside or above them."""
    lines, last = code.strip("\n").splitlines(), 0
    statements = []
    for node in ast.parse(code.strip("\n")).body:
        end = node.end_lineno or node.lineno
        statements.append("\n".join(lines[last:end]))
        last = end
    return statements


def run(code: str, names: dict[str, Any]) -> str:
    """Run the statements as a console would, and return the session."""
    session = []
    for statement in statements_of(code):
        first, *others = statement.splitlines()
        session.append(f">>> {first}")
        session += [f"... {line}" if line else "..." for line in others]
        said = io.StringIO()
        with contextlib.redirect_stdout(said):
            exec(compile(statement + "\n", "errata.toml", "single"), names)
        session += said.getvalue().splitlines()
    return "\n".join(session)


def filled(text: str, names: dict[str, Any]) -> str:
    """The text with its expressions in braces computed."""
    return str(eval(f'f"""{text.strip()}"""', names))


def paragraph(text: str) -> str:
    """The text as a sentence, in lines of the page's width."""
    words = " ".join(text.split()).removesuffix(".") + "."
    return textwrap.fill(words, 120, break_long_words=False, break_on_hyphens=False)


def raised(text: str) -> str:
    """The text with a capital first letter."""
    return text[:1].upper() + text[1:]


def session_block(session: str) -> str:
    """A block of Markdown that doctest runs."""
    return f"```python\n{session}\n\n```\n"


def statement_entries(names: dict[str, Any]) -> list[tuple[dict[str, Any], str]]:
    """Entries of the statements that the section's code computes."""
    result = []
    for one in names["statements"]:
        entry = {
            "title": one.name, "where": "as numbered in the paper", "verdict": one.verdict, "said": raised(one.printed),
            "holds": one.right, "status": "",
            "size": f"printed: {one.relation('printed')}; right: {one.relation('right')}.",
        }
        code = (
            f"one = statements[{one.name!r}]\nprint(fill(one.counterexample, 110))\n"
            "print(one.fails, one.relation(\"printed\"))"
        )
        result.append((entry, session_block(run(code, names))))
    return result


def peer_block(entry: dict[str, Any], record: dict[str, Any]) -> str:
    """The program of an entry of another package, and what it printed."""
    known = record[entry["title"]]
    return f"```python no-run\n{entry['code'].strip()}\n```\n\n```text\n{known['printed'].strip()}\n```\n"


def page() -> str:
    """The page."""
    record = json.loads(RECORD.read_text(encoding="utf-8"))
    names: dict[str, Any] = {}
    parts, rows, number = [session_block(run("\n".join(HEAD), names))], [], 0
    for section in tomllib.loads(ENTRIES.read_text(encoding="utf-8"))["section"]:
        parts.append(f"## {section['title']}\n\n{paragraph(section['text'])}\n")
        entries: list[tuple[dict[str, Any], str]] = []
        if "code" in section:
            parts.append(session_block(run(section["code"], names)))
        if "statements" in section:
            entries += statement_entries(names)
        for entry in section.get("entry", ()):
            if "peer" in entry:
                names |= record[entry["title"]]["numbers"]
                block = peer_block(entry, record)
                entry["where"] += f"; {record[entry['title']]['versions']}"
            else:
                if len(statements_of(entry["code"])) > MAX_STATEMENTS:
                    raise SystemExit(f"{entry['title']}: more than {MAX_STATEMENTS} statements")
                for name in ("true", "best", "printed"):
                    names.pop(name, None)
                session = run(entry["code"], names)
                if "print(" not in session:
                    right = "true" if "true" in names else "best"
                    session += "\n" + run(f'print(f"{{{right}:.6g}} for {{printed:.6g}}")', names)
                block = session_block(session)
            default = "true > printed" if entry["verdict"] == "false" else "best < printed"
            if not np.all(eval(entry.get("fails", default), names)):
                raise SystemExit(f"{entry['title']}: the example does not show it")
            entries.append((entry | {"size": filled(entry["size"], names)}, block))
        for entry, block in entries:
            number += 1
            rows.append((number, entry["title"], entry["verdict"], entry["size"]))
            verdict = f"**{raised(entry['verdict'])}** · {entry['where'].strip()}"
            parts.append(f"### {number}. {entry['title']}\n\n{paragraph(verdict)}\n\n{paragraph(entry['said'])}\n")
            parts.append(block)
            said = ("Holds", "holds"), ("Size", "size"), ("In the source", "status")
            parts += [f"{paragraph(f'**{word}**: {entry[key]}')}\n" for word, key in said if entry.get(key)]
    counts = Counter(row[2] for row in rows)
    summary = ["| verdict | entries | meaning |", "|---|---|---|"]
    summary += [f"| {verdict} | {counts[verdict]} | {text} |" for verdict, text in VERDICTS.items()]
    table = ["| statement | verdict | size of the error |", "|---|---|---|"]
    table += [f"| {n}. {title} | {verdict} | {size.replace('|', chr(92) + '|')} |" for n, title, verdict, size in rows]
    assert set(counts) <= set(VERDICTS)
    return "\n".join([INTRODUCTION, *summary, "", *table, "", "All examples below begin with", "", *parts])


def ask_peers() -> None:
    """Run the programs of other packages, and keep what they printed."""
    record = json.loads(RECORD.read_text(encoding="utf-8")) if RECORD.exists() else {}
    for section in tomllib.loads(ENTRIES.read_text(encoding="utf-8"))["section"]:
        for entry in section.get("entry", ()):
            if "peer" not in entry:
                continue
            program = entry["code"] + f"\nimport json as _json\nprint('#', _json.dumps({entry['numbers']}))"
            done = subprocess.run(
                [sys.executable, "-W", "ignore", "-c", program], capture_output=True, text=True, check=False, cwd=ROOT
            )
            if done.returncode:
                print(f"{entry['title']}: left as it was ({done.stderr.strip().splitlines()[-1]})")
                continue
            printed, numbers = done.stdout.rsplit("# ", 1)
            packages = [entry["peer"], "numpy", "scipy"]
            with contextlib.suppress(PackageNotFoundError):
                found = [f"{name} {version(name)}" for name in packages]
                found[0] = entry.get("checkout", found[0])
                record[entry["title"]] = {
                    "versions": ", ".join(found), "printed": printed, "numbers": json.loads(numbers)
                }
                print(f"{entry['title']}: {printed.strip()}")
    RECORD.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


def main() -> None:
    """Write the page, check it, or ask the other packages."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="only say whether docs/errata.md is up to date")
    parser.add_argument("--peers", action="store_true", help="run the programs of other packages, and keep the answers")
    options = parser.parse_args()
    if options.peers:
        ask_peers()
        return
    text = page()
    if not options.check:
        PAGE.write_text(text, encoding="utf-8")
    elif PAGE.read_text(encoding="utf-8") != text:
        raise SystemExit("docs/errata.md is not what tools/errata.py writes. Run python tools/errata.py.")


if __name__ == "__main__":
    main()
