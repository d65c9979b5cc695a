"""Where the C headers are."""

from __future__ import annotations

from pathlib import Path

__all__ = ["get_include"]


def get_include() -> str:
    """The directory to pass to a C compiler (``-I``) for ``#include <fastpriv.h>``.

    The header has functions ``fastpriv_ndtr(x)``, ``fastpriv_gaussian_delta(r, epsilon)`` and others, all static, so
    that nothing is linked but the mathematical library; ``fastpriv_awgn.h`` has the capacity under a peak-power
    constraint. Compile with ``-ffp-contract=off``, or bits may differ
    from those of ``fastpriv.special`` on processors with fused multiplication.

    Notes
    -----
    **Accuracy** the bits of the ufuncs of ``fastpriv.special``, by ``tests/contracts/test_back_end.py``.

    Source: the headers themselves name theirs.

    Examples
    --------
    >>> from pathlib import Path
    >>> import fastpriv
    >>> (Path(fastpriv.get_include()) / "fastpriv.h").exists()
    True
    """
    package = Path(__file__).parents[1]
    installed = package / "include"
    return str(installed if installed.is_dir() else package.parent / "csrc")
