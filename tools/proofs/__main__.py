"""Prove the bounds of scalar functions from the headers in csrc: ``python tools/proofs``; README.md says how.

``python tools/proofs NAME ...`` runs some proofs, ``--write`` keeps what was proved for BOUNDS.md, and ``--mutate``
changes a number, a shift or an order of operations at a time in a copy of the headers and expects a proof to fail.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
RESULTS = Path(__file__).with_name("proved.json")

import elementary  # noqa: E402
import gaussian  # noqa: E402
import mutations  # noqa: E402
import normal  # noqa: E402
import programs  # noqa: E402
import sphere  # noqa: E402
import tables  # noqa: E402
import trigonometric  # noqa: E402
from programs import ProofError  # noqa: E402
from statements import Proved  # noqa: E402


def proofs() -> dict[str, Callable[[Path], list[Proved]]]:
    """Name of each proof, and the function that runs it on a tree of sources."""
    result: dict[str, Callable[[Path], list[Proved]]] = {}
    for module in (elementary, normal, trigonometric, tables, gaussian, sphere):
        for proof in module.PROOFS:
            result[proof.__name__] = lambda root, proof=proof, module=module: proof(module.read(root))
    return result


def run(names: list[str], root: Path = ROOT) -> list[dict[str, Any]]:
    """Run proofs; ProofError for a statement of a header that does not follow."""
    rows = []
    for name in names:
        start = time.process_time()
        for one in proofs()[name](root):
            stated = one.check(root)
            rows.append({"proof": name, "header": f"csrc/{one.header}", "name": one.name, "what": one.what,
                         "stated": stated, "proved": float(f"{one.bound:.3g}")})
        rows[-1]["seconds"] = round(time.process_time() - start, 1)
    return rows


def main(arguments: list[str] | None = None) -> int:
    """Run, write or mutate."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(proofs())}; all by default")
    parser.add_argument("--write", action="store_true", help="keep the results, and write BOUNDS.md")
    parser.add_argument("--mutate", action="store_true", help="change one thing at a time and expect a proof to fail")
    parser.add_argument("--root", type=Path, default=ROOT, help="the tree with csrc (this one by default)")
    options = parser.parse_args(arguments)
    if missing := programs.missing():
        print(f"not run: {' and '.join(missing)} {'are' if len(missing) > 1 else 'is'} not installed")
        return 0
    unknown = set(options.names) - set(proofs())
    if unknown:
        parser.error(f"NAME must be one of {', '.join(proofs())}; got {', '.join(sorted(unknown))}")
    names = options.names or list(proofs())
    if options.mutate:
        return mutations.main(options.root, names, run)
    rows, failed = [], False
    for name in names:
        try:
            done = run([name], options.root)
        except ProofError as error:
            print(f"{name}: {error}", file=sys.stderr)
            failed = True
            continue
        rows += done
        for row in done:
            print(f"{name}: {row['name']}: {row['what']}: stated {row['stated']:.4g}, proved {row['proved']:.4g}"
                  + (f" ({row['seconds']} s)" if "seconds" in row else ""))
    if options.write and not failed and not options.names:
        kept = [{key: value for key, value in row.items() if key != "seconds"} for row in rows]
        RESULTS.write_text(json.dumps(kept, indent=1) + "\n")
        subprocess.run([sys.executable, str(ROOT / "tools" / "bounds.py")], check=True)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
