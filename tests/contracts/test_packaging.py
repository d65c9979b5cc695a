"""The sdist holds every source; README's first command, run in it, installs what works from another directory."""

import importlib.machinery
import importlib.util
import os
import re
import subprocess
import sys
import tarfile
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCES = [
    path.relative_to(ROOT).as_posix()
    for folder, patterns in (("csrc", ("*.h", "*.pyx", "*.pxi")), ("tools", ("*.py",)), ("benches", ("*.py",)),
                             ("tests", ("*.py", "*.json")),
                             ("fastpriv", ("*.py", "*.pyi", "*.pxd", "*.csv", "*.json", "*.npz", "*.toml", "*.md",
                                           "py.typed")))
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
              "BOUNDS.md", ".ci/run", "tools/hosts", "tools/release", "tools/manylinux.h",
              ".github/workflows/wheels.yml"}
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
    data = ("adult.csv", "composition_tasks.json", "digits.npz", "genotypes.npz", "mixture_tasks.json")
    assert {f"fastpriv/studies/datasets/{name}" for name in data} <= names
    assert {"fastpriv/special.pxd", "fastpriv/include/fastpriv.h", "fastpriv/include/gauss/fp_gauss.h"} <= names
    assert {"fastpriv/benches/__init__.py", "fastpriv/benches/program.py", "fastpriv/checker/__main__.py"} <= names
    assert not [name for name in names if name.startswith(("csrc/", "tests/", "benches/"))
                or name.endswith((".c", ".pyx"))]
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    here = os.environ | {"PYTHONPATH": str(site)}
    where = subprocess.run(
        [sys.executable, "-c", "import fastpriv; print(fastpriv.__file__)"], cwd=elsewhere, env=here, text=True,
        capture_output=True, check=True,
    ).stdout
    assert where.startswith(str(site))
    command = [sys.executable, "-m", "fastpriv", "bench", "--list"]
    tasks = subprocess.run(command, cwd=elsewhere, env=here, text=True, capture_output=True, check=True).stdout
    assert "hockey-stick" in tasks
    command = [sys.executable, "-m", "fastpriv.checker"]
    checker = subprocess.run(command, cwd=elsewhere, env=here, text=True, capture_output=True, check=False)
    assert checker.stderr == "usage: python -m fastpriv.checker FILE\n"
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


def release_tool():
    loader = importlib.machinery.SourceFileLoader("release", str(ROOT / "tools" / "release"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("release", loader))
    bytecode, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    try:
        loader.exec_module(module)
    finally:
        sys.dont_write_bytecode = bytecode
    return module


def test_a_final_release_needs_the_first_section_of_the_changelog(tmp_path, monkeypatch):
    tool = release_tool()
    monkeypatch.setattr(tool, "ROOT", tmp_path)
    changelog = tmp_path / "CHANGELOG.md"
    changelog.write_text("# Changelog\n\n## Unreleased\n\n* new\n\n## 0.1.0\n\n* old\n")
    assert tool.changes(False) == "## Unreleased\n\n* new\n"
    message = rf"the first section of CHANGELOG.md must be {tool.VERSION}; it is 'Unreleased'"
    with pytest.raises(SystemExit, match=message):
        tool.changes(True)
    changelog.write_text(f"# Changelog\n\n## {tool.VERSION} (today)\n\n* new\n\n## 0.0.1\n")
    assert tool.changes(True) == f"## {tool.VERSION} (today)\n\n* new\n"


def test_a_command_that_fails_ends_the_release():
    with pytest.raises(SystemExit, match=r"(?s)no such thing.*failed with exit code 3"):
        release_tool().run(sys.executable, "-c", "print('no such thing'); raise SystemExit(3)")


def test_a_wheel_asks_libm_for_no_function_newer_than_glibc_2_28():
    older = set(re.findall(r"\.symver (\w+), \1@GLIBC_2\.2\.5", (ROOT / "tools" / "manylinux.h").read_text()))
    assert len(older) == 7
    modules = [*(ROOT / "fastpriv").glob("kernels/*.so"), *(ROOT / "fastpriv").glob("studies/kernels/*.so")]
    listing = subprocess.run(
        ["nm", "--dynamic", "--undefined-only", "--with-symbol-versions", *modules], capture_output=True, text=True,
        check=True,
    ).stdout
    symbols = set(re.findall(r" (\w+)@GLIBC_2\.(\d+)", listing))
    assert len(symbols) > 30
    assert {name for name, version in symbols if int(version) > 28} <= older


def test_the_versions_of_python_are_the_same_everywhere():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    versions = re.findall(r"Python :: (3\.\d+)\b", "\n".join(project["classifiers"]))
    assert project["requires-python"] == f">={versions[0]}"
    wheels = (ROOT / ".github" / "workflows" / "wheels.yml").read_text()
    (command,) = re.findall(r"run: tools/release .*", wheels)
    named = re.findall(r"python(3\.\d+t?)", command)
    free = [name for name in named if name.endswith("t")]  # without the global interpreter lock
    assert [name for name in named if name not in free] == versions
    assert bool(free) == any("Free Threading" in name for name in project["classifiers"])
    assert sorted(re.findall(r"^ +(3\.\d+t?)$", wheels, re.MULTILINE)) == sorted(named)


def test_workflows_name_each_action_by_its_commit_and_call_commands_that_are_there():
    texts = [path.read_text() for path in (ROOT / ".github" / "workflows").glob("*.yml")]
    assert len(texts) >= 2
    actions = [action for text in texts for action in re.findall(r"uses: (.*)", text)]
    assert len(actions) >= 6
    pinned = re.compile(r"actions/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+")
    assert not [action for action in actions if not pinned.fullmatch(action)]
    commands = {command for text in texts for command in re.findall(r"run: ((?:\.ci|tools)/\w+)", text)}
    assert commands >= {".ci/run", "tools/release"}
    assert all((ROOT / command).stat().st_mode & 0o111 for command in commands)
