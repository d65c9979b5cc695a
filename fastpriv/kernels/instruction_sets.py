"""The instruction sets that kernels are compiled for, and the one that ``FASTPRIV_ISA`` in the environment forces."""

from __future__ import annotations

from ..base.errors import DomainError
from ._special import MACHINE_ISA

__all__ = ["INSTRUCTION_SETS", "check_forced", "of_this_machine"]

#: narrowest first; the positions are the numbers of the enumeration in csrc/common/fp_dispatch.h
INSTRUCTION_SETS = ("baseline", "avx2", "avx512")


def of_this_machine() -> tuple[str, ...]:
    """The instruction sets that this machine can run, narrowest first, whatever ``FASTPRIV_ISA`` says."""
    return INSTRUCTION_SETS[: int(MACHINE_ISA) + 1]


def check_forced(word: str | None) -> None:
    """Refuse a word in ``FASTPRIV_ISA`` that is no instruction set of this machine; None and "" force nothing.

    Raises
    ------
    DomainError
        It names the word and the words that this machine allows.
    """
    if not word:
        return
    if word not in INSTRUCTION_SETS:
        raise DomainError(
            f"FASTPRIV_ISA must be one of {', '.join(INSTRUCTION_SETS)}; got {word!r}. Unset it to use the best that "
            "the machine has."
        )
    if word not in of_this_machine():
        raise DomainError(
            f"FASTPRIV_ISA must be an instruction set of this machine ({', '.join(of_this_machine())}); got {word!r}. "
            "Unset it to use the best that the machine has."
        )
