"""``FASTPRIV_ISA`` is obeyed or refused, and what the machine has is said."""

import os
import subprocess
import sys

import pytest

from fastpriv import DomainError
from fastpriv.cli.info import installation, show_versions
from fastpriv.kernels import _special, instruction_sets
from fastpriv.kernels.instruction_sets import INSTRUCTION_SETS, check_forced, of_this_machine
from kernels.variants import parameters

UNSET = "Unset it to use the best that the machine has."


@pytest.mark.parametrize("word", ["AVX2", "avx", "sse2", "best", " avx2", "0"])
def test_an_unknown_word_is_refused(word):
    text = f"FASTPRIV_ISA must be one of baseline, avx2, avx512; got '{word}'. {UNSET}"
    with pytest.raises(DomainError, match=f"^{text}$"):
        check_forced(word)


@pytest.mark.parametrize(
    ("machine", "allowed", "lacking"),
    [(0, "baseline", ["avx2", "avx512"]), (1, "baseline, avx2", ["avx512"]), (2, "baseline, avx2, avx512", [])],
)
def test_a_variant_that_the_machine_lacks_is_refused(machine, allowed, lacking, monkeypatch):
    monkeypatch.setattr(instruction_sets, "MACHINE_ISA", machine)
    assert ", ".join(of_this_machine()) == allowed
    for word in lacking:
        text = rf"^FASTPRIV_ISA must be an instruction set of this machine \({allowed}\); got '{word}'. {UNSET}$"
        with pytest.raises(DomainError, match=text):
            check_forced(word)
    for word in (None, "", *of_this_machine()):
        check_forced(word)


def test_an_unknown_word_stops_the_import_of_every_kernel():
    code = "try:\n    from fastpriv.kernels import _density\nexcept ValueError as fault:\n    print(fault)"
    run = subprocess.run(
        [sys.executable, "-c", code], env=os.environ | {"FASTPRIV_ISA": "avx3"}, stdout=subprocess.PIPE, text=True,
        check=True,
    )
    assert run.stdout == f"FASTPRIV_ISA must be one of baseline, avx2, avx512; got 'avx3'. {UNSET}\n"


def test_a_report_says_what_the_machine_has_and_what_is_used(capsys):
    found = installation()
    assert found["instruction sets"] == list(of_this_machine())
    forced = os.environ.get("FASTPRIV_ISA")
    assert found["instruction set"] == _special.ISA == (forced or of_this_machine()[-1])
    show_versions()
    assert f"instruction sets {', '.join(of_this_machine())}\n" in capsys.readouterr().out


def test_a_variant_that_the_machine_lacks_is_a_skipped_test():
    built = parameters(INSTRUCTION_SETS, ("baseline", "avx2"))
    assert [parameter.values for parameter in built] == [(name,) for name in INSTRUCTION_SETS]
    assert [[mark.args for mark in parameter.marks if mark.name == "skip"] for parameter in built] == [
        [], [], [("not run: this CPU has no avx512",)]
    ]
