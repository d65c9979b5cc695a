"""Mutations: one change at a time in a copy of the headers, after which a proof must fail.

A coefficient is changed by 2^-45 of itself. Where that leaves the stated bound true (a term of high order adds next to
nothing), the change is multiplied by 16 until a proof fails: such a coefficient is counted apart, for the proof was
right to pass. Every shift and every whole number in a function is changed by 1, and sums are formed in another order.
"""

from __future__ import annotations

import re
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from programs import ProofError

ELEMENTARY = "special/fp_elementary.h"
HEXADECIMAL = r"-?0x[\da-f]\.[\da-f]+p[+-]?\d+"
ERFC, SINES = "special/fp_erfc.h", "composition/fp_sin_cos.h"
#: Expressions of other headers, what they become, and the proof that is to fail.
ELSEWHERE = (
    (ERFC, "r * (limit + r * fp_polynomial(1.0 - 8.0 * r, table, 24))",
     "r * limit + r * r * fp_polynomial(1.0 - 8.0 * r, table, 24)", "normal"),
    (ERFC, "((1.0 - r_high * sum_high) - (r_high * sum_low + r_low * sum_high)) - r_low * sum_low", "1.0 - r * sum",
     "normal"),
    (ERFC, "(x - (sum - 4.0)) - sum * residue", "((x - sum) + 4.0) - sum * residue", "normal"),
    (ERFC, "y + y * (r + q)", "y * (1.0 + (r + q))", "normal"),
    (ERFC, "*low = 0.5 * ((x - high) * (x + high))", "*low = 0.5 * (x * x - high * high)", "normal"),
    (ERFC, "size > 28.0 ? 0.0", "size > 26.0 ? 0.0", "normal"),
    (ERFC, "x > 40.0 ? 0.0 : value", "x > 30.0 ? 0.0 : value", "normal"),
    (ERFC, "~(uint64_t)0x7ffffff", "~(uint64_t)0x7fffff", "normal"),
    (ERFC, "x * value - limit) * sum", "x * value - limit) / r", "normal"),
    (ERFC, "#define FP_SQRT_2PI 0x1.40d931ff62706p+1", "#define FP_SQRT_2PI 0x1.40d931ff627a6p+1", "normal"),
    ("special/fp_normal_tail.h", "* (1.0 - product * (1.0 / 3.0))", "", "normal_tail_sums"),
    (SINES, "(y - turns * 0x1.921fb5p+1) - turns * 0x1.110b46p-25", "y - turns * (0x1.921fb5p+1 + 0x1.110b46p-25)",
     "sin_cos"),
    (SINES, "0x1.921fb5p+1", "0x1.921fb6p+1", "sin_cos"),
    (SINES, "0x1.3145c06e0e689p-77", "0x1.3145c06e0e689p-76", "sin_cos"),
    (SINES, "6755399441055744.0", "675539944105574.0", "sin_cos"),
    (SINES, "s * x + 0.16666666666666666", "s * x + 0.16666666666667140", "sin_cos"),
    (SINES, "c * x + 0.041666666666666664", "c * x + 0.041666666666667848", "sin_cos"),
    (SINES, "s * x + -0.0083333333333333332", "s * x + -0.0083333333333335700", "sin_cos"),
    (SINES, "c * x + -0.0013888888888888889", "c * x + -0.0013888888888889284", "sin_cos"),
    (SINES, "*sine = r - r * x * s", "*sine = r * (1.0 - x * s)", "sin_cos"),
    (SINES, "1.0 - (0.5 * x - x * x * c)", "(1.0 - 0.5 * x) + x * x * c", "sin_cos"),
)
#: Expressions of fp_elementary.h, and the same in another order or with another sign.
ORDERS = (
    ("1.0 + (r + q), shifted), most", "(1.0 + r) + q, shifted), most"),
    ("const double r = high - rest", "const double r = x - (k * FP_LN2_HI + rest)"),
    ("+ ((high - r) - rest)", "+ (high - (r + rest))"),
    ("square * (0.5 + r * fp_polynomial(r, fp_exp_tail, 10)) + ((high - r) - rest)",
     "square * (0.5 + r * fp_polynomial(r, fp_exp_tail, 10))"),
    ("high = x - k * FP_LN2_HI, rest = k * FP_LN2_LO - low", "high = x - k * FP_LN2, rest = -low"),
    ("(r - sum) + q", "(q - sum) + r"),
    ("total + (((base - total) + sum) + (low + ((1.0 - base) - inverse)))",
     "((total + ((base - total) + sum)) + low) + ((1.0 - base) - inverse)"),
    ("total + (((base - total) + sum) + (low + ((1.0 - base) - inverse)))",
     "total + (low + ((1.0 - base) - inverse))"),
    ("k * FP_LN2_HI - ((half - (s * (half + tail) + (k * FP_LN2_LO + small))) - f)",
     "k * FP_LN2_HI - (half - (s * (half + tail) + (k * FP_LN2_LO + small))) + f"),
    ("k * FP_LN2_HI - ((half - (s * (half + tail) + (k * FP_LN2_LO + small))) - f)",
     "(k * FP_LN2_HI + f) - (half - (s * (half + tail) + (k * FP_LN2_LO + small)))"),
    ("s * (half + tail) + (k * FP_LN2_LO + small)", "(s * (half + tail) + small) + k * FP_LN2_LO"),
    ("(1.0 - (u - back)) + (x - back)", "(1.0 - u) + x"),
    ("scaled * (1.0 - f + f * f)", "scaled * (1.0 - f)"),
    ("z * fp_polynomial(z, fp_log_tail, 7)", "z * fp_polynomial(s, fp_log_tail, 7)"),
    ("even = even * square + c[i]", "even = even * x + c[i]"),
    ("return even + x * odd", "return even - x * odd"),
    ("const double square = x * x;", "const double square = x + x;"),
    ("s = f / (2.0 + f)", "s = f / (2.0 - f)"),
    ("half = 0.5 * f * f", "half = f * f"),
    ("x < -746.0", "x < -740.0"),
    ("x > 710.0 ? INFINITY : most", "x > 709.0 ? INFINITY : most"),
    ("value = x < -60.0 ? -1.0 : value;", "value = x < -6.0 ? -1.0 : value;"),
    ("tiny ? 54.0 : 0.0", "tiny ? 53.0 : 0.0"),
    ("tiny ? x * 0x1p54 : x", "tiny ? x * 0x1p53 : x"),
)


@dataclass(frozen=True)
class Mutation:
    """A change in a header: from one text to another, at a position."""

    header: str
    position: int
    old: str
    new: str
    what: str
    coefficient: bool = False


def changed(x: float, size: float) -> float:
    """A number moved by a relative size."""
    return x * (1.0 + size)


def coefficients(root: Path, header: str, table: str, size: float, every: int = 1) -> Iterator[Mutation]:
    """Every number of a table (or each of so many) changed by a relative size."""
    text = (root / "csrc" / header).read_text()
    start = re.search(rf"\b{table}(?:\[\w+\])+[^=]*= \{{", text)
    if not start:
        raise ProofError(f"csrc/{header} must define {table}")
    end = text.index("};", start.end())
    for i, match in enumerate(re.finditer(HEXADECIMAL, text[start.end() : end])):
        if i % every == 0 and float.fromhex(match[0]):
            new = changed(float.fromhex(match[0]), size).hex()
            yield Mutation(header, start.end() + match.start(), match[0], new, f"{table}, number {i}", True)


def constants(root: Path, header: str) -> Iterator[Mutation]:
    """Every shift and every whole number of functions changed by 1."""
    text = (root / "csrc" / header).read_text()
    for function in re.finditer(r"^FP_INLINE [^;{]+\{.*?^\}", text, re.M | re.S):
        body = re.sub(r"/\*.*?\*/", lambda m: " " * len(m[0]), function[0], flags=re.S)
        for match in re.finditer(r"(?<![\w.\[])(\d+)(?![\w.\]])|(?<=<< )\d+|0x[\da-f]{16}(?=u)", body):
            line = body[: match.start()].rpartition("\n")[2]
            if "#pragma" in line or "for (" in line:
                continue
            old = match[0]
            new = hex(int(old, 16) + 2**40) if old.startswith("0x") else str(int(old) + 1)
            name = re.search(r"(fp_\w+)\(", function[0])
            yield Mutation(header, function.start() + match.start(), old, new,
                           f"{old} of {name[1] if name else 'a function'}")


def orders(root: Path) -> Iterator[Mutation]:
    """Sums formed in another order."""
    text = (root / "csrc" / ELEMENTARY).read_text()
    for old, new in ORDERS:
        if old not in text:
            raise ProofError(f"csrc/{ELEMENTARY} no longer has {old!r}: mend the list of mutations")
        yield Mutation(ELEMENTARY, text.index(old), old, new, f"{old!r} as {new!r}")


#: Header, table, and the proofs that it is for; of long tables some numbers.
TABLES = (
    (ELEMENTARY, "fp_exp_tail", ("exp",), 1), (ELEMENTARY, "fp_log_tail", ("log",), 1),
    ("special/fp_erfc.h", "fp_erfcx_table", ("half_lines",), 2),
    ("special/fp_erfc.h", "fp_mills_table", ("half_lines",), 2),
    ("special/fp_dd_tables.h", "FP_DD_LN2", ("double_double",), 1),
    ("special/fp_dd_tables.h", "FP_DD_EXP_COARSE", ("double_double",), 13),
    ("special/fp_dd_tables.h", "FP_DD_LOG_FINE", ("double_double",), 51),
    ("special/fp_dd_tables.h", "FP_DD_MILLS", ("double_double",), 401),
    ("special/fp_normal_tail_table.h", "fp_normal_tail_table", ("normal_tail",), 401),
    ("special/fp_sphere_tables.h", "fp_sphere_low", ("sphere",), 7),
    ("special/fp_sphere_tables.h", "fp_sphere_high", ("sphere",), 29),
    ("common/fp_vector_tables.h", "fp_exp2_polynomial", ("vector",), 3),
    ("common/fp_vector_tables.h", "fp_log_table", ("vector",), 5),
    ("common/fp_vector_tables.h", "fp_information_series", ("vector",), 4),
    ("sampling/fp_normal_quantile_tables.h", "fp_normal_pieces", ("normal_quantile",), 67),
)


def caught(root: Path, mutation: Mutation, names: list[str], run: Callable[[list[str], Path], Any]) -> str:
    """The proof that fails, with its reason, for a mutation in a copy of the headers; empty where none does."""
    folder = Path(tempfile.mkdtemp())
    try:
        shutil.copytree(root / "csrc", folder / "csrc", ignore=shutil.ignore_patterns("*.c", "*.so", "*.pyx"))
        path = folder / "csrc" / mutation.header
        text = path.read_text()
        end = mutation.position + len(mutation.old)
        path.write_text(text[: mutation.position] + mutation.new + text[end:])
        for name in names:
            try:
                run([name], folder)
            except (ProofError, ArithmeticError, ValueError, SyntaxError, IndexError, RecursionError) as error:
                return f"{name}: {error}"
    finally:
        shutil.rmtree(folder)
    return ""


def main(root: Path, names: list[str], run: Callable[[list[str], Path], Any]) -> int:
    """Try all mutations that the named proofs are to catch; return 1 if one survives."""
    elementary = [name for name in ("exp", "log", "expm1", "log1p") if name in names]
    counts = {"caught": 0, "caught when larger": 0, "survived": 0}
    start = time.process_time()
    if elementary:
        for mutation in [*orders(root), *constants(root, ELEMENTARY)]:
            _report(mutation, caught(root, mutation, elementary, run), counts)
    for header, old, new, proof in ELSEWHERE:
        if proof in names:
            at = (root / "csrc" / header).read_text().index(old)
            mutation = Mutation(header, at, old, new, f"{old!r} as {new!r}")
            _report(mutation, caught(root, mutation, [proof], run), counts)
    for header, table, proofs, every in TABLES:
        if not set(proofs) <= set(names):
            continue
        for i, mutation in enumerate(coefficients(root, header, table, 2.0**-45, every)):
            reason, size = caught(root, mutation, list(proofs), run), 2.0**-45
            while not reason and size < 64.0:
                size *= 16.0
                larger = list(coefficients(root, header, table, size, every))[i]
                reason = caught(root, larger, list(proofs), run)
            _report(mutation, reason, counts, size)
    print(f"{sum(counts.values())} mutations: " + ", ".join(f"{n} {what}" for what, n in counts.items())
          + f"; {time.process_time() - start:.0f} s")
    return int(counts["survived"] > 0)


def _report(mutation: Mutation, reason: str, counts: dict[str, int], size: float = 2.0**-45) -> None:
    kind = "survived" if not reason else "caught" if size == 2.0**-45 else "caught when larger"
    counts[kind] += 1
    note = f" (at {size:.1g} of itself; a smaller change leaves the bound true)" if kind == "caught when larger" else ""
    print(f"{kind}{note}: {mutation.what}: {reason[:120]}", flush=True)
