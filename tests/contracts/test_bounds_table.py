"""Every constant that enters a bound says whether it is proved, computed or tested, and BOUNDS.md says what follows."""

import importlib.util
import sys
from pathlib import Path

import pytest

import fastpriv

ROOT = Path(__file__).parents[2]


def loaded():
    specification = importlib.util.spec_from_file_location("bounds", ROOT / "tools" / "bounds.py")
    module = importlib.util.module_from_spec(specification)
    sys.modules["bounds"] = module
    specification.loader.exec_module(module)
    return module


bounds = loaded()


def faults_of(name, text):
    return bounds.rows_of(name, text)[1]


@pytest.fixture(scope="module")
def table():
    return bounds.table()


def test_every_constant_has_a_marker_and_every_named_test_is_there(table):
    _, faults = table
    assert not faults, "\n".join(["", *faults])


def test_the_document_is_what_the_sources_say():
    assert (ROOT / "BOUNDS.md").read_text() == bounds.document(), "run: python tools/bounds.py"


def test_every_class_is_there_and_known_constants_have_theirs(table):
    rows, _ = table
    kinds = [row.marker.kind for row in rows]
    assert min(kinds.count(kind) for kind in ("proved", "none")) >= 5, kinds
    assert set(kinds) <= set(bounds.CLASSES)
    named = {row.name: row.marker.kind for row in rows}
    assert named["_RELATIVE_ERROR_CD"] == "tested"
    proved = ("fp_tanh_tail", "fp_exp_tail", "FP_U", "FP_ROUND", "FP_NDTR_DIFF_ERROR", "FP_GAUSS_RELATIVE",
              "FP_GAUSS_LEAST", "FP_NORMAL_TAIL_ERROR", "modulus", "FP_DROP_LEVEL")
    assert {named[name] for name in proved} == {"proved"}
    assert named["FP_AWGN_EMPIRICAL"] == "none"


@pytest.mark.parametrize("line", [
    "#define FP_NEW_ERROR 3.0\n", "#define FP_NEW 3e-15 /* of it */\n", "#define FP_NEW 0x1p-50\n",
    "static double f(double x)\n{\n    return x * (1.0 + 4e-16);\n}\n",
    "static double f(double x)\n{\n    return x + 8.0 * FP_U * x;\n}\n",
    "static const double fp_new[2] = {\n    1.0, 0.5,\n};\n",
])
def test_a_new_constant_in_c_without_a_marker_is_seen(line):
    assert len(faults_of("csrc/fp_new.h", "/* New. */\n" + line)) == 1
    assert "no marker; add" in faults_of("csrc/fp_new.h", line)[0]
    plural = "s" if line.startswith("static double") else ""
    assert not faults_of("csrc/fp_new.h", f"/* New. */\n/* bound{plural}: proved - two roundings */\n{line}")


@pytest.mark.parametrize("line", [
    "_RELATIVE = 3.0\n", "_NEW = 3e-15  # of it\n", "_NEW: float = 2.0**-50\n", "_FAR, _NEW = 3.0, 4 * 2.0**-53\n",
    "def f(x):\n    return x * (1 + 4e-16)\n", "def f(x):\n    return x + 8 * UNIT * x\n",
    "class F:\n    slack: float = 1e-14\n",
])
def test_a_new_constant_in_python_without_a_marker_is_seen(line):
    assert len(faults_of("fastpriv/new.py", line)) == 1
    plural = "" if line.startswith("_") else "s"
    assert not faults_of("fastpriv/new.py", f"# bound{plural}: proved - two roundings\n{line}")


@pytest.mark.parametrize("line", [
    "_STEPS = 100\n", "_SIZE = 2**21\n", "_NAMES = ('ERROR',)\n", "_ERROR = 'text'\n",
    "def f(x):\n    '''1e-15 of it.'''\n    return 0.5 * x  # 4e-16\n",
])
def test_what_is_no_small_number_needs_no_marker(line):
    assert not faults_of("fastpriv/new.py", line)


def test_a_marker_in_a_function_is_for_that_function_alone():
    inside = "def f(x):\n    # bound: proved - two roundings\n    return x * (1 + 4e-16)\n\n\n"
    rows, faults = bounds.rows_of("fastpriv/new.py", inside)
    assert [(row.name, row.value) for row in rows] == [("in f", "4e-16")]
    assert not faults
    assert "1e-14 (line 7)" in faults_of("fastpriv/new.py", inside + "def g(x):\n    return x * (1 + 1e-14)\n")[0]


@pytest.mark.parametrize("comment", [
    "# bound: surely - it is small", "# bound: tested - it is small", "# bound: proved", "# bound: computed by - x",
])
def test_a_marker_without_a_class_or_evidence_is_refused(comment):
    assert "must be a marker; add in its place" in faults_of("fastpriv/new.py", f"{comment}\n_NEW = 1e-15\n")[0]


def test_two_markers_for_a_file_are_one_too_many():
    text = "# bounds: proved - x\n# bounds: none - y\n\n\ndef f(x):\n    return x + 1e-15\n"
    assert "must stand once in a file" in faults_of("fastpriv/new.py", text)[0]


def test_a_marker_for_a_file_without_numbers_is_seen():
    assert "covers no number" in faults_of("fastpriv/new.py", "# bounds: proved - x\n_STEPS = 3\n")[0]


def test_a_script_or_test_that_is_not_there_is_seen(tmp_path):
    for folder in ("csrc", "fastpriv", "tests/kernels"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "tests" / "kernels" / "test_x.py").write_text("def test_y():\n    pass\n")
    (tmp_path / "fastpriv" / "new.py").write_text(
        "# bound: computed by fit_nothing - x\n_A = 1e-15\n# bound: tested by kernels/test_x::test_y - x\n_B = 1e-15\n"
        "# bound: tested by kernels/test_x::test_z, kernels/test_w - x\n_C = 1e-15\n"
    )
    _, faults = bounds.table(tmp_path)
    assert len(faults) == 3, faults
    assert "tools/fit_nothing.py must be a file" in faults[0]
    assert "tests/kernels/test_x.py must define test_z" in faults[1]
    assert "tests/kernels/test_w.py must be a file" in faults[2]


def test_a_marker_may_run_over_two_lines():
    c = "/* bound: tested by kernels/test_sphere - one\n * and two */\n#define FP_NEW 1e-15\n"
    python = "# bound: tested by kernels/test_sphere - one\n#    and two\n_NEW = 1e-15\n"
    for name, text in (("csrc/fp_new.h", c), ("fastpriv/new.py", python)):
        rows, faults = bounds.rows_of(name, text)
        assert not faults
        assert rows[0].marker.text == "one and two"
        assert rows[0].marker.evidence == ("tests/kernels/test_sphere.py",)


def test_what_rests_on_a_kernel_is_found_through_its_headers():
    users = bounds.resting()
    assert {"hockey_stick_divergence", "notions.lip_delta"} <= users["csrc/line/fp_hockey_stick.h"]
    assert {"conversions.LipCurve", "notions.lip_delta"} <= users["csrc/line/fp_lip_solver.h"]
    assert {"awgn_capacity", "assess"} <= users["csrc/awgn/fp_awgn_quadrature_bounds_loops.h"], "included by a macro"
    by_name_at_run_time = users["fastpriv/posteriors/ball_arithmetic.py"]
    assert {"posterior", "Posterior"} & by_name_at_run_time
    assert "conversions.convert" in users["fastpriv/conversions/average_bayesian_privacy.py"]
    assert "special.sphere_mean" in users["csrc/special/fp_sphere_tables.h"]
    assert "GaussianMechanism" not in users["csrc/special/fp_sphere_tables.h"]
    assert "awgn_capacity" not in users["csrc/line/fp_hockey_stick.h"]


def test_every_public_function_has_its_files():
    listed = {name for names in bounds.resting().values() for name in names}
    rooms = {room: getattr(fastpriv, room) for room in ("calibration", "divergences", "notions")}
    wanted = {f"{room}.{name}" for room, module in rooms.items() for name in module.__all__}
    wanted |= {f"conversions.{row.function}" for row in fastpriv.conversions.CONVERSIONS}
    wanted |= {f"special.{name}" for name in fastpriv.special.__all__}
    assert not wanted - listed, sorted(wanted - listed)[:20]


def test_the_files_of_a_function_are_printed(capsys):
    assert bounds.main(["--for", "conversions.convert"]) == 0
    assert "csrc/lmip: fp_lmip_solver.h; " in capsys.readouterr().out
    assert bounds.main(["--for", "awgn_capacity"]) == 0
    assert "no tested constants" in capsys.readouterr().out
    with pytest.raises(SystemExit):
        bounds.main(["--for", "no_such_function"])
    assert "--for must be a public name" in capsys.readouterr().err


def test_the_command_writes_and_checks(capsys):
    assert bounds.main(["--check"]) == 0
    assert capsys.readouterr().err == ""
