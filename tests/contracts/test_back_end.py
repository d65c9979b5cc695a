"""Ways in for compiled code and for arrays of other libraries: the same bits, and one clear error."""

import ctypes
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numba
import numpy as np
import pytest
import scipy
from scipy.integrate import quad

import fastpriv
from fastpriv import DomainError, GaussianMixture, nb, special

ROOT = Path(fastpriv.__file__).parent
FUNCTIONS = sorted(special.__pyx_capi__)
FLAGS = ["-std=c11", "-O2", "-Wall", "-Wextra", "-Werror", "-ffp-contract=off"]


def arguments(name, count):
    """Ordinary, extreme and invalid numbers for each argument, paired up in different ways."""
    if name.startswith("awgn"):
        dimension = np.array([1.0, 2.0, 3.0, 10.0, 1e6, 1.0, 2.0, 2.0, 5.0, 1.5, 0.0, 1e7, np.nan])
        radius = np.array([0.5, 3.0, 0.0, 9.0, 40.0, 30.0, 1e-200, 1e9, 1e300, 1.0, 1.0, 1.0, 1.0])
        return [dimension, radius, np.resize([1e-9, 1e-6, 1e-12], radius.size)]
    grid = np.array([0.0, 1e-300, 1e-9, 0.25, 0.5, 1.0 - 2.0**-53, 1.0, 3.0, 40.0, 1e300, np.inf, -0.5, -30.0, np.nan])
    return [np.roll(grid, 3 * k) for k in range(count)] if count > 1 else [grid]


def same_bits(one, other):
    """Equal numbers with equal signs of zeros; a NaN is a NaN."""
    one, other = np.asarray(one), np.asarray(other)
    number = ~np.isnan(other)
    return np.array_equal(one, other, equal_nan=True) and not (np.signbit(one) ^ np.signbit(other))[number].any()


def with_bounds(name):
    return name.endswith("_bounds")


def ufunc_of(name):
    return getattr(special, name.removesuffix("_bounds"))


def by_ufunc(name, *grids):
    """The results of the ufunc, of a value with bounds the value; rows of three where bounds are asked for."""
    found = ufunc_of(name)(*grids)
    if with_bounds(name):
        return np.transpose(found)
    return found[0] if isinstance(found, tuple) else found


def count_of(name):
    return ufunc_of(name).nin


def type_of(name):
    """The type of a capsule's function."""
    doubles = ", ".join(["double"] * count_of(name))
    return f"void ({doubles}, double *)" if with_bounds(name) else f"double ({doubles})"


@pytest.mark.few(12)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_for_numba_have_the_bits_of_the_ufuncs(name):
    grids = arguments(name, count_of(name))
    function = getattr(nb, name)
    assert same_bits([function(*row) for row in zip(*grids, strict=True)], by_ufunc(name, *grids))


@pytest.mark.slow
def test_functions_for_numba_are_called_inside_compiled_code():
    @numba.njit
    def total(r, epsilons):
        most = 0.0
        for epsilon in epsilons:
            most += nb.gaussian_delta(r, epsilon) + nb.ndtr(epsilon) + nb.bac_capacity(0.1, 0.2)
        return most

    @numba.njit(parallel=True)
    def spread(x, out):
        for i in numba.prange(x.size):
            out[i] = nb.log_ndtr(x[i])

    x = np.linspace(0.0, 3.0, 50)
    expected = 0.0
    for e in x:
        expected += special.gaussian_delta(0.5, e) + special.ndtr(e) + special.bac_capacity(0.1, 0.2)
    assert total(0.5, x) == expected
    out = np.empty_like(x)
    spread(x, out)
    assert same_bits(out, special.log_ndtr(x))


@pytest.mark.slow
def test_a_function_that_numba_cached_runs_in_another_process(tmp_path):
    (tmp_path / "cached.py").write_text(
        "import numba\nfrom fastpriv import nb\n@numba.njit(cache=True)\ndef f(x):\n    return nb.ndtr(x)\n"
        "print(f(0.5), sum(f.stats.cache_hits.values()))\n"
    )
    command = [sys.executable, "cached.py"]
    said = [subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True).stdout for _ in range(2)]
    assert said == [f"{special.ndtr(0.5)} 0\n", f"{special.ndtr(0.5)} 1\n"]


def test_what_numba_does_not_get():
    assert dir(nb) == FUNCTIONS
    with pytest.raises(AttributeError, match=r"module 'fastpriv.nb' has no attribute 'log_sum_exp'"):
        nb.log_sum_exp


def test_the_declarations_for_cython_are_those_of_the_capsules():
    pattern = r"^cdef (double|void) (\w+)\((.*)\) noexcept nogil$"
    declared = {}
    for result, name, words in re.findall(pattern, (ROOT / "special.pxd").read_text(), re.M):
        kinds = re.sub(r"double (?!\*)\w+", "double", words).replace("*found", "*")
        declared[name] = f"{result} ({kinds})"
    name_of = ctypes.pythonapi.PyCapsule_GetName
    name_of.restype, name_of.argtypes = ctypes.c_char_p, [ctypes.py_object]
    types = {name: type_of(name) for name in FUNCTIONS}
    assert {name: name_of(special.__pyx_capi__[name]).decode() for name in FUNCTIONS} == types
    assert declared == types
    ufuncs = {name for name in special.__all__ if getattr(special, name).signature is None}
    bounded = {f"{name}_bounds" for name in ufuncs if getattr(special, name).nout == 3}
    assert ufuncs | bounded == declared.keys()


@pytest.mark.slow
def test_cimport(tmp_path):
    pytest.importorskip("Cython")
    lines = []
    for name in FUNCTIONS:
        words = "abcd"[: count_of(name)]
        body = f"    return c_{name}({', '.join(words)})"
        if with_bounds(name):
            body = f"    cdef double out[3]\n    c_{name}(a, b, c, out)\n    return out[0], out[1], out[2]"
        lines.append(f"def {name}({', '.join('double ' + c for c in words)}):\n{body}")
    imports = ", ".join(f"{name} as c_{name}" for name in FUNCTIONS)
    (tmp_path / "called.pyx").write_text(f"from fastpriv.special cimport {imports}\n" + "\n".join(lines) + "\n")
    done = subprocess.run([sys.executable, "-m", "Cython.Build.Cythonize", "-3", "-i", "called.pyx"], cwd=tmp_path,
                          capture_output=True, text=True, check=False,
                          env=os.environ | {"PYTHONPATH": str(Path(fastpriv.__file__).parents[1])})
    assert done.returncode == 0, done.stdout + done.stderr
    sys.path.insert(0, str(tmp_path))
    try:
        import called
    finally:
        sys.path.remove(str(tmp_path))
    for name in FUNCTIONS:
        grids = arguments(name, count_of(name))
        found = [getattr(called, name)(*row) for row in zip(*grids, strict=True)]
        assert same_bits(found, by_ufunc(name, *grids)), name


def number(x):
    """A double as C writes it."""
    return "NAN" if np.isnan(x) else f"{'-' if x < 0 else ''}INFINITY" if np.isinf(x) else x.hex()


@pytest.mark.few(1)
@pytest.mark.parametrize(("header", "least"), [("fastpriv.h", 35), ("fastpriv_awgn.h", 1)])
@pytest.mark.slow
def test_the_c_headers(tmp_path, header, least):
    """Every function of a header, by a program that prints the bits."""
    text = (Path(fastpriv.get_include()) / header).read_text()
    plain = re.findall(r"^FASTPRIV_(?:\d|INVERSE)\((\w+)\b", text, re.M)
    plain += re.findall(r"static inline double fastpriv_([a-z]\w+)\(double", text)
    bounded = re.findall(r"^FASTPRIV_SUBSAMPLED\((\w+),", text, re.M)
    bounded += re.findall(r"static inline fastpriv_bounds fastpriv_([a-z]\w+)\(double", text)
    calls, expected = [], []
    for name in plain + bounded:
        for row in zip(*arguments(name, count_of(name)), strict=True):
            call = f"fastpriv_{name}({', '.join(map(number, row))})"
            calls.append(f"bounds({call});" if name in bounded else f'printf("%a\\n", {call});')
            found = np.atleast_1d(getattr(special, name)(*row))
            expected += found.tolist()
    (tmp_path / "program.c").write_text(
        f"#include <{header}>\n#include <math.h>\n#include <stdio.h>\n"
        + ("void bounds(fastpriv_bounds b)\n{\n    printf(\"%a %a %a\\n\", b.value, b.lower, b.upper);\n}\n"
           if bounded else "")
        + "int main(void)\n{\n" + "\n".join(calls) + "\nreturn 0;\n}\n"
    )
    standard = [] if header == "fastpriv.h" else ["-std=gnu11"]
    for options in ([], ["-O0"]):
        command = ["cc", *FLAGS, *standard, *options, "-I", fastpriv.get_include(), "program.c", "-o", "program", "-lm"]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr[:2000]
        said = subprocess.run(["./program"], cwd=tmp_path, capture_output=True, text=True, check=True).stdout.split()
        assert same_bits([float.fromhex(word) for word in said], expected)
    assert len(plain + bounded) == len({*plain, *bounded}) >= least


@pytest.mark.slow
def test_the_c_header_is_also_c_plus_plus(tmp_path):
    compiler = shutil.which("c++")
    if not compiler:
        pytest.skip("needs a C++ compiler")
    (tmp_path / "program.cc").write_text(
        "#include <fastpriv.h>\n"
        "int main() { return !(fastpriv_sampled_gaussian_noise_add(0.1, 0.05, 1e-5).lower > 0); }\n"
    )
    flags = ["-std=c++17", "-Wall", "-Wextra", "-Werror"]
    command = [compiler, *flags, "-I", fastpriv.get_include(), "program.cc", "-o", "program", "-lm"]
    subprocess.run(command, cwd=tmp_path, check=True)
    assert subprocess.run(["./program"], cwd=tmp_path, check=False).returncode == 0


def test_the_formulas_of_the_header_are_those_of_the_ufuncs():
    csrc = ROOT.parent / "csrc"
    if not csrc.is_dir():
        pytest.skip("needs the source tree")
    header = dict(re.findall(r"^FASTPRIV_\d\((\w+), (\w+)\)", (csrc / "fastpriv.h").read_text(), re.M))
    lists = ("special/fp_special_ufuncs.h", "gauss/fp_gauss_loops.h", "channel/fp_binary_channel.h")
    text = "".join((csrc / name).read_text() for name in lists)
    assert header
    assert header.items() <= dict(re.findall(r"^ *F(?:P_LOOP_\d\(|\(\d, )(\w+), (\w+)\)", text, re.M)).items()


def test_scipy_integrates_a_capsule():
    compiled = scipy.LowLevelCallable.from_cython(special, "ndtr")
    assert quad(compiled, -3.0, 0.5) == quad(special.ndtr, -3.0, 0.5)

    @numba.cfunc("float64(int32, CPointer(float64))")
    def tail(_, x):
        return nb.gaussian_delta(x[1], x[0])

    found = quad(scipy.LowLevelCallable(tail.ctypes), 0.0, 5.0, args=(0.5,))[0]
    assert found == pytest.approx(quad(lambda e: special.gaussian_delta(0.5, e), 0.0, 5.0)[0], rel=1e-12)


class Exported:
    """An array of another library, which hands on its memory and nothing else."""

    def __init__(self, values, device=1, fault=None):
        self._values, self._device, self._fault = np.asarray(values), device, fault

    def __dlpack_device__(self):
        return self._device, 0

    def __dlpack__(self, **words):
        if self._fault:
            raise self._fault
        return self._values.__dlpack__(**words)


def test_arrays_of_other_libraries_come_in():
    weights, means = [0.25, 0.75], [0.0, 3.0]
    for kind in (np.float64, np.float32):
        found = GaussianMixture(Exported(np.array(weights, kind)), Exported(np.array(means, kind)), 1.0)
        assert found == GaussianMixture(weights, means, 1.0)
    delta = fastpriv.GaussianMechanism(2.0, 1.0).delta(Exported([0.0, 1.0]))
    assert delta == fastpriv.GaussianMechanism(2.0, 1.0).delta([0.0, 1.0])
    assert type(delta.value) is np.ndarray


def test_arrays_on_other_devices_are_refused():
    with pytest.raises(DomainError, match="weights must be in the memory of the CPU; got an array on a device of"):
        GaussianMixture(Exported([1.0], device=2), [0.0], 1.0)


def test_arrays_that_cannot_be_read_are_refused():
    with pytest.raises(DomainError, match="means must be an array that NumPy can read; got .*require gradient"):
        GaussianMixture([1.0], Exported([0.0], fault=BufferError("Can't export tensors that require gradient")), 1.0)


def test_tensors_of_pytorch():
    torch = pytest.importorskip("torch")
    means = torch.tensor([0.0, 3.0], dtype=torch.float64)
    found = GaussianMixture(torch.tensor([0.25, 0.75]), means, torch.tensor(1.0))
    assert found == GaussianMixture([0.25, 0.75], [0.0, 3.0], 1.0)
    with pytest.raises(DomainError, match="means must be an array that NumPy can read"):
        GaussianMixture([1.0], torch.tensor([0.0], requires_grad=True), 1.0)


def test_arrays_of_jax():
    jax = pytest.importorskip("jax")
    found = GaussianMixture(jax.numpy.asarray([0.25, 0.75]), jax.numpy.asarray([0.0, 3.0]), 1.0)
    assert found == GaussianMixture([0.25, 0.75], [0.0, 3.0], 1.0)
