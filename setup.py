"""Builds the compiled kernels: one extension for each ``csrc/_<room>.pyx``.

The C sources are compiled for the plain instruction set of the platform; the loops that profit carry their own
AVX2 and AVX-512 variants and choose at run time (``csrc/fp_dispatch.h``), so a wheel built here runs anywhere.
Modules are compiled side by side, one to a core; ``build_ext --parallel=1`` takes them one after another.
"""

import os
import re
from pathlib import Path

import numpy as np
from Cython.Build import cythonize
from setuptools import Extension, setup

# -O2 with the loop optimisations of -O3 that the kernels profit from compiles in half the time and runs no slower.
FLAGS = ["-O2", "-ftree-vectorize", "-fvect-cost-model=dynamic", "-fpeel-loops", "-g0", "-std=gnu11",
         "-ffp-contract=off", "-fno-math-errno", "-fno-trapping-math", "-fvisibility=hidden", "-Wno-psabi"]
CORES = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def headers_of(source: Path) -> list[str]:
    """Headers and include files that a source names, directly or through others: a change rebuilds only its users."""
    reached: set[Path] = set()
    pending = [source]
    while pending:
        names = re.findall(r'"(fp_\w+\.(?:h|pxi))"', pending.pop().read_text(encoding="utf-8"))
        new = {source.with_name(name) for name in names} - reached
        reached |= new
        pending += new
    return sorted(path.as_posix() for path in reached)


def extension(source: Path) -> Extension:
    return Extension(
        f"fastpriv.kernels.{source.stem}",
        sources=[source.as_posix()],
        depends=headers_of(source),
        include_dirs=["csrc", np.get_include()],
        define_macros=[("NPY_NO_DEPRECATED_API", "NPY_2_0_API_VERSION"), ("NPY_TARGET_VERSION", "NPY_2_0_API_VERSION")],
        extra_compile_args=FLAGS,
        libraries=["m"],
    )


setup(
    ext_modules=cythonize(
        [extension(source) for source in sorted(Path("csrc").glob("_*.pyx"))],
        build_dir="build/cython",
        compiler_directives={"language_level": 3, "boundscheck": False, "wraparound": False, "cdivision": True},
    ),
    options={"build_ext": {"parallel": CORES}},
)
