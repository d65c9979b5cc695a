"""Builds the compiled kernels: one extension for each ``csrc/_<room>.pyx``.

The C sources are compiled for the plain instruction set of the platform; the loops that profit carry their own
AVX2 and AVX-512 variants and choose at run time (``csrc/fp_dispatch.h``), so a wheel built here runs anywhere.
Modules are compiled side by side, one to a core; ``build_ext --parallel=1`` takes them one after another.
"""

import os
from pathlib import Path

import numpy as np
from Cython.Build import cythonize
from setuptools import Extension, setup

FLAGS = ["-O3", "-g0", "-std=gnu11", "-ffp-contract=off", "-fno-math-errno", "-fno-trapping-math",
         "-fvisibility=hidden", "-Wno-psabi"]
CORES = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
HEADERS = [path.as_posix() for path in sorted(Path("csrc").glob("*.h"))]


def extension(source: Path) -> Extension:
    return Extension(
        f"fastpriv.kernels.{source.stem}",
        sources=[source.as_posix()],
        depends=HEADERS,
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
