"""Builds the compiled kernels: one extension module for each ``csrc/<folder>/_<name>.pyx``.

The C sources are compiled for the plain instruction set of the platform; the loops that profit carry their own
AVX2 and AVX-512 variants and choose at run time (``csrc/common/fp_dispatch.h``), so a wheel built here runs anywhere.
Modules are compiled side by side, one to a core; ``build_ext --parallel=1`` takes them one after another.
"""

import multiprocessing
import os
import re
from pathlib import Path

import numpy as np
from Cython.Build import cythonize
from setuptools import Extension, find_packages, setup

CSRC = Path("csrc")
# -O2 with the loop optimisations of -O3 that the kernels profit from compiles in half the time and runs no slower.
FLAGS = ["-O2", "-ftree-vectorize", "-fvect-cost-model=dynamic", "-fpeel-loops", "-g0", "-std=gnu11",
         "-ffp-contract=off", "-fno-math-errno", "-fno-trapping-math", "-fvisibility=hidden", "-Wno-psabi"]
CORES = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
# What Cython generates for memory views stands in this module once, not in each: 25 CPU seconds less to compile.
SHARED = "fastpriv.kernels._cython_shared"
OF_STUDIES = ("leakage", "membership")  # folders of csrc whose modules belong to fastpriv.studies


def headers_of(source: Path) -> list[Path]:
    """Headers and include files that a source names, directly or through others: a change rebuilds only its users."""
    reached: set[Path] = set()
    pending = [source]
    while pending:
        text = pending.pop().read_text(encoding="utf-8")
        new = {CSRC / name for name in re.findall(r'"(\w+/fp_\w+\.(?:h|pxi))"', text)} - reached
        reached |= new
        pending += new
    return sorted(reached)


def extension(source: Path) -> Extension:
    package = "fastpriv.studies.kernels" if source.parent.name in OF_STUDIES else "fastpriv.kernels"
    return Extension(
        f"{package}.{source.stem}",
        sources=[source.as_posix()],
        depends=[path.as_posix() for path in headers_of(source)],
        include_dirs=[CSRC.as_posix(), np.get_include()],
        define_macros=[("NPY_NO_DEPRECATED_API", "NPY_2_0_API_VERSION"), ("NPY_TARGET_VERSION", "NPY_2_0_API_VERSION")],
        extra_compile_args=FLAGS,
        libraries=["m"],
    )


def amount(source: Path) -> int:
    """Bytes to compile: the largest modules come first, so that no core is left with a large one at the end."""
    return sum(path.stat().st_size for path in [source, *headers_of(source)])


setup(
    # The C headers are installed as fastpriv/include, which is csrc in the source tree, what fastpriv bench runs as
    # fastpriv/benches, and the checker of certificates as fastpriv/checker.
    packages=[*find_packages(include=["fastpriv*"]), "fastpriv.include", "fastpriv.benches", "fastpriv.checker"],
    package_dir={"fastpriv.include": CSRC.as_posix(), "fastpriv.benches": "benches/comparison",
                 "fastpriv.checker": "tools/checker"},
    ext_modules=cythonize(
        [Extension(SHARED, sources=["_cython_shared.c"], extra_compile_args=FLAGS),
         *map(extension, sorted(CSRC.glob("*/_*.pyx"), key=amount, reverse=True))],
        build_dir="build/cython",
        include_path=[CSRC.as_posix()],
        nthreads=CORES if multiprocessing.get_start_method() == "fork" else 0,
        shared_utility_qualified_name=SHARED,
        compiler_directives={"language_level": 3, "boundscheck": False, "wraparound": False, "cdivision": True,
                             "freethreading_compatible": True},
    ),
    options={"build_ext": {"parallel": CORES}},
)
