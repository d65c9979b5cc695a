"""``fastpriv examples``: the files that the commands in the documents read."""

from __future__ import annotations

import argparse
from pathlib import Path

# The table of steps of docs/composition.md.
_STEPS = """kind,sigma,rate,scale,epsilon,count
sampled_gaussian,1.1,0.01,,,3000
gaussian,20,,,,5
laplace,,,40,,10
randomized_response,,,,0.1,20
"""
# The sweep of docs/sweeps.md.
_SWEEP = """quantity = "sampled_gaussian_delta"
[grid]
sigma = "0.5..5:50"
rate = [0.001, 0.01]
epsilon = "0:5:26"
"""
_HISTORY = "[[1.1, 0.01, 3000], [1.3, 0.01, 1000]]"  # as Opacus keeps it: noise multiplier, sample rate, steps


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command to its parser."""
    parser.description = (
        "Write small files of each kind that the commands read, so that every command in the documents can be tried as "
        "it stands: columns, a channel, steps, scores, mixtures, genotypes, pictures, a sweep."
    )
    parser.add_argument("directory", metavar="DIR", help="directory for the files; made if it is not there")
    parser.epilog = "Example: fastpriv examples demo"
    parser.set_defaults(run=run, interrupted="complete files stay.")


def run(args: argparse.Namespace) -> int:
    """Write the files, and print their names; return the exit code."""
    import numpy as np

    from .. import GaussianMixture
    from ..base.files import atomic_write, write_csv, write_text
    from ..distributions import write_mixture
    from ..studies.datasets import adult, digits, genotypes

    directory = Path(args.directory)
    directory.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(1)  # the same numbers every time
    ages, hours, schooling = (adult(name)[:400] for name in ("age", "hours-per-week", "education-num"))
    incomes = np.round(900 * hours + 1500 * schooling + rng.normal(0.0, 9000.0, 400), -2)
    people = np.stack([ages, hours, incomes, incomes > np.median(incomes)], axis=1).astype(int).tolist()
    members = rng.random(1000) < 0.5
    scores = zip(rng.normal(1.5 * members).tolist(), members.astype(int).tolist(), strict=True)
    panel = genotypes()
    names, sites, carriers = panel["people"][:40], panel["attributes"][:60], panel["values"][:40, :60]
    rows = ([name, *values] for name, values in zip(names, carriers.astype(int).tolist(), strict=True))
    pixels, labels = digits()
    write_csv(directory / "people.csv", ["age", "hours", "income", "outcome"], people)
    write_csv(directory / "release.csv", ["low", "middle", "high"], [[0.8, 0.2, 0.0], [0.1, 0.6, 0.3], [0.3, 0.3, 0.4]])
    write_csv(directory / "law.csv", ["probability"], [[0.5], [0.25], [0.25]])
    write_csv(directory / "scores.csv", ["score", "member"], scores)
    write_csv(directory / "panel.csv", ["person", *sites], rows)
    for name, text in {"steps.csv": _STEPS, "sweep.toml": _SWEEP, "history.json": _HISTORY}.items():
        write_text(directory / name, text)
    write_mixture(directory / "p.npz", GaussianMixture([0.9, 0.1], [0.0, 1.0], [1.0, 1.0]))
    write_mixture(directory / "q.json", GaussianMixture.single(0.0, 1.0))
    with atomic_write(directory / "pictures.npz") as stream:
        np.savez(stream, records=pixels[:200].reshape(-1, 8, 8) / 16.0, labels=labels[:200])
    write_text(directory / "panel.bim", "".join(f"1\tsnp{site}\t0\t{site}\tA\tG\n" for site in sites))
    write_text(directory / "panel.fam", "".join(f"{name}\t{name}\t0\t0\t0\t-9\n" for name in names))
    with atomic_write(directory / "panel.bed") as stream:  # two bits a person, four people a byte, a site after another
        copies = np.where(carriers.T, 2, 3).reshape(len(sites), -1, 4)
        stream.write(b"\x6c\x1b\x01" + (copies << [0, 2, 4, 6]).sum(axis=2).astype(np.uint8).tobytes())
    print("\n".join(str(path) for path in sorted(directory.iterdir())))
    return 0
