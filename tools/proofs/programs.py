"""Runs of Sollya and Gappa on inputs that are written to a temporary directory."""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from fractions import Fraction
from pathlib import Path
from typing import Any

from c_source import Node


class ProofError(Exception):
    """A statement that does not follow."""


def missing() -> list[str]:
    """Programs that are not installed."""
    return [name for name in ("sollya", "gappa") if shutil.which(name) is None]


def _output(program: list[str], text: str, suffix: str) -> str:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"input{suffix}"
        path.write_text(text)
        result = subprocess.run([*program, str(path)], capture_output=True, text=True, timeout=3600, check=False)
    return result.stdout + result.stderr


def hexadecimal(x: float) -> str:
    """A double for Sollya and Gappa."""
    return x.hex()


def polynomial(coefficients: list[float], variable: str = "x") -> str:
    """Sum of c_i x^i as text of Sollya, in Horner's form."""
    text = ""
    for c in reversed(coefficients):
        text = f"({hexadecimal(c)})" if not text else f"({hexadecimal(c)} + {variable} * {text})"
    return text


def supnorm(approximation: str, function: str, low: float, high: float, relative: bool = False) -> float:
    """Certified bound of the approximation's error by Sollya; ``approximation`` is a polynomial in x."""
    kind = "relative" if relative else "absolute"
    script = (f"prec = 200;\ndisplay = hexadecimal;\n"
              f"a = supnorm({approximation}, {function}, [{hexadecimal(low)};{hexadecimal(high)}], {kind}, 2^(-20));\n"
              "round(sup(a), D, RU);\n")
    output = _output(["sollya"], script, ".sollya")
    numbers = re.findall(r"0x[\d.a-fA-F]+p[+-]?\d+", output)
    if len(numbers) != 1:
        raise ProofError(f"Sollya did not bound {function}: {output.strip()[:200]}")
    return float.fromhex(numbers[0])


def rounding(node: Any, inputs: dict[str, tuple[float, float]], split: tuple[str, int] | None = None) -> float:
    """Certified bound by Gappa of |computed - ideal| of a node, the inputs being doubles in these intervals.

    The exact side is the same tree without roundings. ``split`` names an input whose interval is divided.
    """
    names: dict[Any, str] = {}
    lines = ["@rnd = float<ieee_64, ne>;"]
    lines += [f"{_word(x)} = rnd({_word(x)}_);" for x in inputs]

    def write(one: Any) -> str:
        if not isinstance(one, Node):
            return f"({hexadecimal(float(one))})" if float(one) < 0 else hexadecimal(float(one))
        if one.op == "input":
            return _word(one.args[0])
        if one in names:
            return names[one]
        if one.op == "neg":
            args = [write(one.args[0])]
            text, exact = f"-{args[0]}", f"-{_exact(args[0])}"
        else:
            args = [write(x) for x in one.args]
            text = f"{args[0]} {one.op} {args[1]}"
            exact = f"{_exact(args[0])} {one.op} {_exact(args[1])}"
        name = f"t{len(names)}"
        names[one] = name
        lines.append(f"{name} rnd= {text};")
        lines.append(f"e{name} = {exact};")
        return name

    goal = write(node)
    ranges = " /\\ ".join(f"{_word(x)} in [{_decimal(a)}, {_decimal(b)}]" for x, (a, b) in inputs.items())
    lines.append(f"{{ {ranges} -> {goal} - {_exact(goal)} in ? }}")
    if split:
        lines.append(f"$ {_word(split[0])} in {split[1]};")
    output = _output(["gappa"], "\n".join(lines) + "\n", ".g")
    match = re.search(r" in \[(\S+?)(?: \{.*?\})?, (\S+?)(?: \{.*?\})?\]", output)
    if not match:
        raise ProofError(f"Gappa gave no bound: {output.strip()[:300]}")
    return max(_up(abs(_dyadic(x))) for x in match.groups())


def _word(name: str) -> str:
    return "v" + re.sub(r"\W", "_", name)


def _exact(name: str) -> str:
    return "e" + name if re.fullmatch(r"t\d+", name) else name


def _decimal(x: float) -> str:
    fraction = Fraction(x)
    return f"{fraction.numerator}b-{fraction.denominator.bit_length() - 1}"


def _dyadic(text: str) -> Fraction:
    """Gappa's 123b-45 is 123 2^-45."""
    whole, _, exponent = text.partition("b")
    return Fraction(int(whole)) * Fraction(2) ** int(exponent or 0)


def _up(x: Fraction) -> float:
    value = float(x)
    return value if Fraction(value) >= x else value * (1 + 2.0**-50)
