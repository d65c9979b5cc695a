"""The C header for other processors: compiled for GPUs, and the same bits on aarch64. No test here runs on a GPU."""

import ctypes
import re
import shutil
import subprocess
import sys
import types
from pathlib import Path

import numpy as np
import pytest

import fastpriv
from fastpriv import DomainError, device, special
from fastpriv.errors import BackendMissingError

FUNCTIONS = device._FUNCTION.findall(device.source())
ROUNDED = r"\b(?:add|sub|mul|div|sqrt|rcp)\.rn\.f64\b"
FREE = r"\b(?:add|sub|mul)\.f64\b"  # what the assembler of the device may fuse


def call_of(name, words):
    return f"fastpriv_{name}({', '.join(words[: getattr(special, name).nin])})"


def kernels(names=FUNCTIONS):
    """One kernel for each function."""
    lines = []
    for name in names:
        kind = "fastpriv_bounds" if getattr(special, name).nout == 3 else "double"
        call = call_of(name, ("x[0]", "x[1]", "x[2]", "x[3]"))
        lines.append(f'extern "C" __global__ void kernel_{name}({kind} *y, const double *x) {{ y[0] = {call}; }}\n')
    return "".join(lines)


def compiled(text, processor, options=device.OPTIONS):
    """The PTX that NVRTC makes of a text without a warning."""
    package = pytest.importorskip("nvidia.cuda_nvrtc")
    nvrtc = ctypes.CDLL(str(next(Path(package.__path__[0]).glob("lib/libnvrtc.so.*"))))
    program, size = ctypes.c_void_p(), ctypes.c_size_t()

    def read(what):
        assert not getattr(nvrtc, f"nvrtcGet{what}Size")(program, ctypes.byref(size))
        buffer = ctypes.create_string_buffer(size.value)
        assert not getattr(nvrtc, f"nvrtcGet{what}")(program, buffer)
        return buffer.value.decode()

    words = [word.encode() for word in (f"--gpu-architecture=compute_{processor}", *options)]
    assert not nvrtc.nvrtcCreateProgram(ctypes.byref(program), text.encode(), b"program.cu", 0, None, None)
    failed = nvrtc.nvrtcCompileProgram(program, len(words), (ctypes.c_char_p * len(words))(*words))
    said = read("ProgramLog")
    assert not failed, said[:2000]
    assert not said.strip("\0 \n"), said[:2000]
    ptx = read("PTX")
    nvrtc.nvrtcDestroyProgram(ctypes.byref(program))
    return ptx


def test_the_text_has_no_literals_of_structures():
    """C++, which compilers for GPUs take, has none; those compilers are rarely where the tests run."""
    assert not re.findall(r".*\(fp_\w+\) ?\{.*", device.source())


def without_fused_operations(text):
    """The source with a product and a sum in the place of each fused operation."""
    plain = text.replace("#define __builtin_fma fma\n", "#define __builtin_fma(a, b, c) ((a) * (b) + (c))\n")
    assert plain != text
    return plain


@pytest.mark.slow
@pytest.mark.parametrize("processor", [80, 90, 100])
def test_the_whole_header_is_compiled_for_gpus(processor):
    """Every operation of the PTX is rounded, and fused only where the source says so."""
    text = device.source() + kernels()
    ptx = compiled(text, processor)
    assert ptx.count(".entry kernel_") == len(FUNCTIONS) == 35
    assert len(re.findall(ROUNDED, ptx)) > 10_000
    assert not re.search(FREE, ptx)
    assert "fma.rn.f64" in ptx  # double-double products
    ptx = compiled(without_fused_operations(text), processor)
    assert len(re.findall(ROUNDED, ptx)) > 10_000
    assert not re.search(FREE, ptx)
    assert not re.search(r"\bfma\b|\.f32\b", ptx)


def test_a_kernel_without_double_double_has_no_fused_operation():
    """And the test would see one: without the options there are many."""
    text = device.source() + kernels(["log_ndtr", "gaussian_delta", "bac_capacity"])
    ptx = compiled(text, 90)
    assert not re.search(FREE, ptx)
    assert "fma" not in ptx
    ptx = compiled(text, 90, device.OPTIONS[1:])
    assert len(re.findall(FREE, ptx)) > 50
    assert ptx.count("fma.rn.f64") > 50


def test_the_source_is_the_header_with_all_that_it_includes():
    text = device.source()
    assert not re.search(r'^#include "', text, re.M)
    for guard in set(re.findall(r"^#ifndef (FP_\w+_H|FASTPRIV_H)$", text, re.M)):
        assert text.count(f"#ifndef {guard}\n") == 1
    assert {"gaussian_delta", "log_ndtr", "bac_capacity", "sampled_gaussian_delta_add"} <= set(FUNCTIONS)
    assert all(callable(getattr(special, name)) for name in FUNCTIONS)


class RecordedKernel:
    """In the place of CuPy's class: what it was made of, as the text that it would compile."""

    def __init__(self, inputs, outputs, operation, name, *, preamble, options):
        self.inputs, self.outputs, self.options = inputs, outputs, options
        words = ", ".join(["double " + word.split()[1] for word in inputs.split(", ")]
                          + ["double &" + word.split()[1] for word in outputs.split(", ")])
        self.text = f"{preamble}\n__device__ void {name}({words}) {{ {operation} }}\n"


@pytest.fixture
def recorded(monkeypatch):
    monkeypatch.setitem(sys.modules, "cupy", types.SimpleNamespace(ElementwiseKernel=RecordedKernel))
    return device.kernel


@pytest.mark.parametrize("name", ["gaussian_delta", "log_ndtr", "bac_capacity", "sampled_gaussian_delta_remove"])
def test_kernels_for_cupy_are_compiled(recorded, name):
    kernel, ufunc = recorded(name), getattr(special, name)
    assert (kernel.inputs.count("float64"), kernel.outputs.count("float64")) == (ufunc.nin, ufunc.nout)
    assert "error" not in compiled(kernel.text, 90, kernel.options)


def test_cupy_itself():
    cupy = pytest.importorskip("cupy")
    if not cupy.cuda.is_available():
        pytest.skip("this machine lacks it: a GPU")
    grid = np.linspace(0.0, 8.0, 1001)
    for name, columns in [("gaussian_delta", (0.5, grid)), ("log_ndtr", (grid - 40.0,)),
                          ("bac_capacity", (grid / 8.0, 0.25)),
                          ("sampled_gaussian_delta_remove", (1.0, 0.01, grid))]:
        found = device.kernel(name)(*(cupy.asarray(column) for column in columns))
        found = [x.get() for x in (found if isinstance(found, tuple) else (found,))]
        assert np.array_equal(np.ravel(found), np.ravel(getattr(special, name)(*columns)), equal_nan=True)


def test_kernels_refuse(monkeypatch):
    with pytest.raises(DomainError, match=r"name must be one of exp, .*; got 'gaussian_dela'. Did you mean gauss"):
        device.kernel("gaussian_dela")
    monkeypatch.setitem(sys.modules, "cupy", None)
    with pytest.raises(BackendMissingError, match="kernel needs CuPy. Install it with: pip install cupy-cuda12x"):
        device.kernel("gaussian_delta")


@pytest.mark.slow
def test_the_header_has_the_same_bits_on_aarch64(tmp_path):
    """A processor that fuses by default, unless it is told not to."""
    compiler, runner = shutil.which("aarch64-linux-gnu-gcc"), shutil.which("qemu-aarch64")
    if not (compiler and runner):
        pytest.skip("needs a compiler for aarch64 and qemu-user")
    grid = [0.0, 1e-300, 1e-9, 0.25, 0.5, 1.0 - 2.0**-53, 1.0, 3.0, 40.0, 1e300, np.inf, -0.5, -30.0]
    grid += np.random.default_rng(5).uniform(0.0, 4.0, 60).tolist()
    calls, expected = [], []
    for name in FUNCTIONS:
        ufunc = getattr(special, name)
        for row in zip(*(np.roll(grid, 3 * k).tolist() for k in range(ufunc.nin)), strict=True):
            words = [x.hex() if np.isfinite(x) else "INFINITY" for x in row]
            call = call_of(name, words)
            calls.append(f"b = {call}; print(b.value); print(b.lower); print(b.upper);" if ufunc.nout == 3
                         else f"print({call});")
            expected += np.atleast_1d(ufunc(*row)).tolist()
    lines = "\n".join(calls)
    (tmp_path / "program.c").write_text(
        "#include <fastpriv.h>\n#include <stdio.h>\nvoid print(double x) { printf(\"%a\\n\", x); }\n"
        f"int main(void)\n{{\nfastpriv_bounds b;\n{lines}\nreturn 0;\n}}\n"
    )
    command = [compiler, "-std=c11", "-O1", "-ffp-contract=off", "-static", "-I", fastpriv.get_include(), "program.c",
               "-o", "program", "-lm"]
    subprocess.run(command, cwd=tmp_path, check=True)
    said = subprocess.run([runner, "./program"], cwd=tmp_path, capture_output=True, text=True, check=True).stdout
    found = np.array([float.fromhex(word) for word in said.split()])
    assert np.array_equal(found, expected, equal_nan=True)
    numbers = ~np.isnan(found)
    assert np.array_equal(np.signbit(found[numbers]), np.signbit(np.array(expected)[numbers]))
