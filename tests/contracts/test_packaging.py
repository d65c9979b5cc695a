"""The sdist holds every source; README's first command, run in it, installs what works from another directory."""

import os
import re
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCES = [
    path.relative_to(ROOT).as_posix()
    for folder, patterns in (("csrc", ("*.h", "*.pyx", "*.pxi")), ("tools", ("*.py",)), ("tests", ("*.py", "*.json")),
                             ("fastpriv", ("*.py", "*.pyi", "*.pxd", "*.csv", "*.npz", "*.toml", "*.md", "py.typed")))
    for pattern in patterns for path in (ROOT / folder).rglob(pattern)
]

pytestmark = pytest.mark.skipif(not (ROOT / "setup.py").exists(), reason="needs the source tree")


@pytest.fixture(scope="module")
def sdist(tmp_path_factory):
    goal = tmp_path_factory.mktemp("sdist")
    code = f"from setuptools import build_meta; build_meta.build_sdist({str(goal)!r})"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    (path,) = goal.iterdir()
    return path


@pytest.mark.slow
def test_the_sdist_holds_every_source(sdist):
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    wanted = {*SOURCES, "setup.py", "pyproject.toml", "README.md", "LICENSE", "CHANGELOG.md", "ARCHITECTURE.md",
              "BOUNDS.md"}
    assert not sorted(wanted - names)
    assert not [name for name in names if name.endswith((".so", ".o"))]
    assert not [name for name in names if name.endswith(".c") and name.startswith("fastpriv")]


@pytest.mark.slow
def test_the_first_command_installs_from_the_sdist_what_works_from_another_directory(sdist, tmp_path):
    with tarfile.open(sdist) as archive:
        archive.extractall(tmp_path / "source", filter="data")
    (source,) = (tmp_path / "source").iterdir()
    # Kernels without optimisation compile four times as fast; those of all other tests are compiled as setup.py says.
    compiler = tmp_path / "cc"
    compiler.write_text('#!/bin/sh\nexec cc "$@" -O0\n')
    compiler.chmod(0o755)
    command = re.search(r"^```sh\n(.*?)^```$", (source / "README.md").read_text(), re.DOTALL | re.MULTILINE)[1]
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", command], cwd=source, capture_output=True, text=True, check=False,
        env={name: word for name, word in os.environ.items() if name != "PYTHONPATH"} | {"CC": str(compiler)},
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    assert "Noise that a target needs" in done.stdout
    (site,) = (source / ".venv").glob("lib/python3*/site-packages")
    (record,) = site.glob("fastpriv-*.dist-info/RECORD")
    names = {line.partition(",")[0] for line in record.read_text().splitlines()}
    assert "fastpriv/py.typed" in names
    assert "fastpriv/__init__.pyi" in names
    assert {f"fastpriv/studies/datasets/{name}" for name in ("adult.csv", "digits.npz", "genotypes.npz")} <= names
    assert {"fastpriv/special.pxd", "fastpriv/include/fastpriv.h", "fastpriv/include/gauss/fp_gauss.h"} <= names
    assert not [name for name in names if name.startswith(("csrc/", "tests/")) or name.endswith((".c", ".pyx"))]
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    here = os.environ | {"PYTHONPATH": str(site)}
    where = subprocess.run(
        [sys.executable, "-c", "import fastpriv; print(fastpriv.__file__)"], cwd=elsewhere, env=here, text=True,
        capture_output=True, check=True,
    ).stdout
    assert where.startswith(str(site))
    (elsewhere / "ndtr.c").write_text("#include <fastpriv.h>\nint main(void) { return fastpriv_ndtr(0.0) != 0.5; }\n")
    include = f"-I{site}/fastpriv/include"
    subprocess.run(["cc", "-std=c11", include, "ndtr.c", "-o", "ndtr", "-lm"], cwd=elsewhere, check=True)
    subprocess.run(["./ndtr"], cwd=elsewhere, check=True)
    surfaces, contracts = source / "tests" / "surfaces", source / "tests" / "contracts"
    chosen = surfaces / "test_assess.py", surfaces / "test_cli.py", surfaces / "test_figures.py"
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", str(source),
         *map(str, (*chosen, contracts / "test_estimate.py", contracts / "test_parallel.py"))],
        cwd=elsewhere, env=here, capture_output=True, text=True, check=False,
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
