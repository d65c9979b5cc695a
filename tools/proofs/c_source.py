"""The expression trees and tables of the headers in csrc: a reader of the part of C that they are written in.

A function is executed on nodes instead of numbers. Calls are followed, loops with constant ends are unrolled, and
operations on constants are carried out as the machine does, in double precision or with 64-bit integers; so a call on
numbers alone is an interpreter. The value of any local variable may be replaced (``replace``): the node that it had is
kept in ``definitions``, and a variable of the same name takes its place in all that follows.
"""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

MASK = (1 << 64) - 1
TOKEN = re.compile(
    r"\s*(0[xX][0-9a-fA-F]*\.?[0-9a-fA-F]*[pP][+-]?\d+|0[xX][0-9a-fA-F]+[uUlL]*"
    r"|\d+\.?\d*[eE][+-]?\d+|\d+\.\d*|\.\d+|\d+[uUlL]*|\w+"
    r"|<<=|>>=|->|\+\+|--|<<|>>|<=|>=|==|!=|&&|\|\||\+=|-=|\*=|/=|[-+*/%&|^~!<>=?:;,.(){}\[\]])"
)
BINARY = [["||"], ["&&"], ["|"], ["^"], ["&"], ["==", "!="], ["<", ">", "<=", ">="], ["<<", ">>"], ["+", "-"],
          ["*", "/", "%"]]
BINDING = {op: level for level, ops in enumerate(BINARY) for op in ops}
TYPES = {"double", "int", "uint64_t", "int64_t", "void", "fp_dd"}
STRUCTURES = {"fp_span", "fp_unevaluated", "fp_gauss_parts"}


class Node:
    """An operation on nodes; ``op`` is 'input' for a variable, and a constant is a Python number, not a node.

    Equal trees are one object, so that trees are compared by identity.
    """

    op: str
    args: tuple[Any, ...]
    __slots__ = ("args", "op")
    _known: ClassVar[dict[Any, Node]] = {}

    def __new__(cls, op: str, args: tuple[Any, ...]) -> Node:
        """The one node of this operation on these arguments."""
        key = (op, *((type(x), x.hex()) if isinstance(x, float) else (type(x), x) for x in args))
        node = cls._known.get(key)
        if node is None:
            node = cls._known[key] = super().__new__(cls)
            node.op, node.args = op, args
        return node


class Bits(int):
    """A 64-bit integer, as uint64_t; plain int is the int of C."""


def bits_of(x: float) -> int:
    """The 64 bits of a double."""
    return int.from_bytes(struct.pack("<d", x), "little")


def double_of(bits: int) -> float:
    """The double of 64 bits."""
    return float(struct.unpack("<d", (bits & MASK).to_bytes(8, "little"))[0])


def number(text: str) -> Any:
    """A literal of C: float, int, or Bits with the suffix u."""
    low = text.lower()
    if low.startswith("0x"):
        return float.fromhex(text) if "p" in low else Bits(int(low.rstrip("ul"), 16))
    if re.fullmatch(r"\d+[ul]*", low):
        return int(low.rstrip("ul")) if "u" not in low else Bits(low.rstrip("ul"))
    return float(text)


class Source:
    """Macros, tables and functions of some headers."""

    def __init__(self, root: Path, *headers: str) -> None:
        self.macros: dict[str, str] = {}
        self.tables: dict[str, Any] = {}
        self.functions: dict[str, tuple[list[str], list[str]]] = {}
        for header in headers:
            self._read((root / "csrc" / header).read_text())

    def _read(self, text: str) -> None:
        text = re.sub(r"/\*.*?\*/", " ", text, flags=re.S)
        text = re.sub(r"\\\n", " ", text)
        inner = []  # macros with arguments are replaced in what follows them up to #undef
        for name, parameters, body in re.findall(r"^#define (\w+)\(([^)]*)\) +(.+)$", text, re.M):
            inner.append((name, [p.strip() for p in parameters.split(",")], body))
        for name, body in re.findall(r"^#define (\w+) +(.+)$", text, re.M):
            self.macros[name] = body.strip()
        text = re.sub(r"^#.*$", "", text, flags=re.M)
        for name, parameters, body in inner:
            text = _expand(text, name, parameters, body)
        for body in re.findall(r"^enum \{(.*?)\}", text, re.M | re.S):
            for name, value in re.findall(r"(\w+) = (\w+)", body):
                self.macros[name] = value
        for name, sizes, body in re.findall(r"^static const double (\w+)((?:\[\w*\])+)[^=]*= (\{.*?\});", text,
                                            re.M | re.S):
            numbers = [float.fromhex(x) if "x" in x else float(x)
                       for x in re.findall(r"-?(?:0x[\da-fA-F.]+p[+-]?\d+|\d+\.?\d*(?:e[+-]?\d+)?)", body)]
            sides = [self.constant(x) for x in re.findall(r"\[(\w+)\]", sizes)]
            self.tables[name] = _shaped(numbers, sides[1:])
        for match in re.finditer(r"^(?:FP_INLINE|static inline) (?:const )?\w+ \*?(\w+)\(([^)]*)\)\s*\{(.*?)^\}|"
                                 r"^(?:FP_INLINE|static inline) \w+ (\w+)\(([^)]*)\) \{(.*?)\}$", text, re.M | re.S):
            name, parameters, body = match.group(1, 2, 3) if match[1] else match.group(4, 5, 6)
            names = [p.split()[-1].lstrip("*") for p in parameters.split(",") if p.strip() != "void"]
            self.functions[name] = (names, tokens(body))

    def constant(self, name: str) -> Any:
        """The value of a macro of numbers alone, or of a literal."""
        return Execution(self).expression(tokens(self.macros.get(name, name)), {})

    def run(self, function: str, *arguments: Any, replace: tuple[str, ...] = ()) -> Execution:
        """Execute a function; ``result`` of what is returned has its value."""
        execution = Execution(self, replace)
        execution.result = execution.call(function, list(arguments))
        return execution


def _shaped(numbers: list[float], sides: list[int]) -> list[Any]:
    if not sides:
        return numbers
    size = math.prod(sides)
    return [_shaped(numbers[i : i + size], sides[1:]) for i in range(0, len(numbers), size)]


def _expand(text: str, name: str, parameters: list[str], body: str) -> str:
    while match := re.search(rf"\b{name}\(([^()]*)\)", text):
        values, one = [v.strip() for v in match[1].split(",")], body
        for parameter, value in zip(parameters, values, strict=True):
            one = re.sub(rf"\b{parameter}\b", value, one)
        text = text[: match.start()] + one + text[match.end() :]
    return text


def tokens(text: str) -> list[str]:
    """Words and signs of C."""
    found, at = [], 0
    text = re.sub(r"^\s*#.*$", "", text, flags=re.M)
    while at < len(text.rstrip()):
        match = TOKEN.match(text, at)
        if not match:
            raise SyntaxError(f"C that this reader does not know: {text[at : at + 40]!r}")
        found.append(match[1])
        at = match.end()
    return found


class Returned(Exception):
    """The value of a return statement."""

    def __init__(self, value: Any) -> None:
        self.value = value


class Pointer:
    """The address of a local variable."""

    def __init__(self, scope: dict[str, Any], name: str) -> None:
        self.scope, self.name = scope, name


class Execution:
    """One execution of a function on nodes and numbers."""

    def __init__(self, source: Source, replace: tuple[str, ...] = ()) -> None:
        self.source, self.replace = source, replace
        self.definitions: dict[str, Any] = {}
        self.result: Any = None

    # ------------------------------------------------------------------------------------------------- statements

    def call(self, name: str, arguments: list[Any]) -> Any:
        """What a function returns."""
        parameters, body = self.source.functions[name]
        scope = dict(zip(parameters, arguments, strict=True))
        try:
            self._block(body, scope, name)
        except Returned as returned:
            return returned.value
        return None

    def _block(self, code: list[str], scope: dict[str, Any], function: str) -> None:
        at = 0
        while at < len(code):
            at = self._statement(code, at, scope, function)

    def _statement(self, code: list[str], at: int, scope: dict[str, Any], function: str) -> int:
        """Execute the statement at a position; return the position after it."""
        word = code[at]
        if word == ";":
            return at + 1
        if word == "{":
            end = _closing(code, at)
            self._block(code[at + 1 : end], scope, function)
            return end + 1
        if word == "for":
            end = _closing(code, at + 1)
            first, test, step = _split(code[at + 2 : end], ";")
            after = self._skip(code, end + 1)
            self._declare_or_assign(first, scope, function)
            while self.expression(test, scope):
                self._statement(code, end + 1, scope, function)
                self._declare_or_assign(step, scope, function)
            return after
        if word == "if":
            end = _closing(code, at + 1)
            test = self.expression(code[at + 2 : end], scope)
            if isinstance(test, Node):
                raise ValueError(f"{function} branches on a variable; give it numbers")
            after = self._skip(code, end + 1)
            if test:
                self._statement(code, end + 1, scope, function)
            if after < len(code) and code[after] == "else":
                if not test:
                    self._statement(code, after + 1, scope, function)
                after = self._skip(code, after + 1)
            return after
        end = at
        depth = 0
        while code[end] != ";" or depth:
            depth += (code[end] in "({[") - (code[end] in ")}]")
            end += 1
        if word == "return":
            raise Returned(self.expression(code[at + 1 : end], scope))
        self._declare_or_assign(code[at:end], scope, function)
        return end + 1

    def _skip(self, code: list[str], at: int) -> int:
        if code[at] == "{":
            return _closing(code, at) + 1
        if code[at] in ("for", "if"):
            at = self._skip(code, _closing(code, at + 1) + 1)
            return self._skip(code, at + 1) if at < len(code) and code[at] == "else" else at
        return code.index(";", at) + 1

    def _declare_or_assign(self, code: list[str], scope: dict[str, Any], function: str) -> None:
        while code and code[0] in {"static", "const"} | TYPES | STRUCTURES:
            kind, code = code[0], code[1:]
            if kind in STRUCTURES:
                scope[code[0]] = {}
        for part in _split(code, ","):
            part = part[2:] if part[:1] == ["*"] and part[1:2] == ["const"] else part
            if len(part) == 2 and part[1] in ("++", "--"):
                scope[part[0]] += 1 if part[1] == "++" else -1
                continue
            if len(part) < 3:
                continue
            at = next((i for i, t in enumerate(part) if t in ("=", "+=", "-=", "*=", "/=")), 0)
            if not at:
                raise SyntaxError(f"statement that this reader does not know: {' '.join(part)}")
            target, sign, right = part[:at], part[at], part[at + 1 :]
            if right[0] == "{":
                value: Any = [self.expression(x, scope) for x in _split(right[1:-1], ",")]
                value = dict(zip(("hi", "lo"), value, strict=True)) if "[" not in target else value
                target = target[:1]
            else:
                value = self.expression(right, scope)
            if sign != "=":
                value = self.binary(sign[0], self.expression(target, scope), value)
            self._store(target, value, scope, function)

    def _store(self, target: list[str], value: Any, scope: dict[str, Any], function: str) -> None:
        if len(target) == 2 and target[0] == "*" and isinstance(scope.get(target[1]), Pointer):
            pointer = scope[target[1]]
            scope, name = pointer.scope, pointer.name
            label = f"{function}.{target[1]}"
        elif len(target) == 3 and target[1] == ".":
            scope[target[0]][target[2]] = value
            self.definitions[f"{function}.{target[0]}.{target[2]}"] = value
            return
        else:
            name = target[-1] if target[0] == "*" else target[0]
            label = f"{function}.{name}"
        self.definitions[label] = value
        scope[name] = Node("input", (label,)) if label in self.replace else value

    # ------------------------------------------------------------------------------------------------ expressions

    def expression(self, code: list[str], scope: dict[str, Any]) -> Any:
        """The node or number of an expression, by the values of names."""
        parser = _Parser(self, code, scope)
        value = parser.conditional()
        if parser.at != len(code):
            raise SyntaxError(f"expression that this reader does not know: {' '.join(code)}")
        return value

    def binary(self, op: str, a: Any, b: Any) -> Any:
        """An operation on nodes or numbers."""
        if not isinstance(a, Node) and not isinstance(b, Node):
            return _compute(op, a, b)
        if op in "+-*/" or op in ("<", ">", "<=", ">=", "==", "!="):
            return Node(op, (float(a) if isinstance(a, int) else a, float(b) if isinstance(b, int) else b))
        return Node(op, (a, b))


def _compute(op: str, a: Any, b: Any) -> Any:
    if isinstance(a, float) or isinstance(b, float):
        a, b = float(a), float(b)
        if op == "/" and b == 0.0:
            return math.copysign(math.inf, a) * math.copysign(1.0, b) if a else math.nan
    unsigned = isinstance(a, Bits) or (isinstance(b, Bits) and op not in ("<<", ">>"))
    operations: dict[str, Callable[[], Any]] = {
        "+": lambda: a + b, "-": lambda: a - b, "*": lambda: a * b, "<<": lambda: a << b, ">>": lambda: a >> b,
        "/": lambda: a / b if isinstance(a, float) else int(a / b), "%": lambda: math.fmod(a, b),
        "&": lambda: a & b, "|": lambda: a | b, "^": lambda: a ^ b,
        "<": lambda: int(a < b), ">": lambda: int(a > b), "<=": lambda: int(a <= b), ">=": lambda: int(a >= b),
        "==": lambda: int(a == b), "!=": lambda: int(a != b), "&&": lambda: int(bool(a) and bool(b)),
        "||": lambda: int(bool(a) or bool(b)),
    }
    value = operations[op]()
    return Bits(value & MASK) if unsigned and isinstance(value, int) else value


def _closing(code: list[str], at: int) -> int:
    """Position of the bracket that closes the one at a position."""
    depth = 0
    for i in range(at, len(code)):
        depth += (code[i] in "({[") - (code[i] in ")}]")
        if depth == 0:
            return i
    raise SyntaxError("brackets that do not close")


def _split(code: list[str], separator: str) -> list[list[str]]:
    parts: list[list[str]] = [[]]
    depth = 0
    for token in code:
        depth += (token in "({[") - (token in ")}]")
        if token == separator and depth == 0:
            parts.append([])
        else:
            parts[-1].append(token)
    return parts if parts[-1] else parts[:-1]


class _Parser:
    def __init__(self, execution: Execution, code: list[str], scope: dict[str, Any]) -> None:
        self.execution, self.code, self.scope, self.at = execution, code, scope, 0

    def _next(self) -> str:
        return self.code[self.at] if self.at < len(self.code) else ""

    def _take(self, token: str = "") -> str:
        if token and self._next() != token:
            raise SyntaxError(f"{token} must stand in {' '.join(self.code)}")
        self.at += 1
        return self.code[self.at - 1]

    def conditional(self) -> Any:
        test = self._level(0)
        if self._next() != "?":
            return test
        self._take("?")
        yes = self.conditional()
        self._take(":")
        no = self.conditional()
        if isinstance(test, Node):
            return yes if yes is no else Node("?", (test, yes, no))
        return yes if test else no

    def _level(self, least: int) -> Any:
        """An expression of operators that bind at least so tightly."""
        value = self._unary()
        while (binding := BINDING.get(self._next(), -1)) >= least:
            op = self._take()
            value = self.execution.binary(op, value, self._level(binding + 1))
        return value

    def _unary(self) -> Any:
        token = self._next()
        if token == "(" and self.code[self.at + 1] in TYPES and self.code[self.at + 2] == ")":
            kind = self.code[self.at + 1]
            self.at += 3
            value = self._unary()
            if isinstance(value, Node):
                return Node(f"({kind})", (value,))
            return Bits(int(value) & MASK) if kind == "uint64_t" else float(value) if kind == "double" else int(value)
        if token == "-":
            self._take()
            value = self._unary()
            return Node("neg", (value,)) if isinstance(value, Node) else -value
        if token == "~":
            self._take()
            value = self._unary()
            return Bits(~value & MASK) if isinstance(value, Bits) else ~value
        if token == "!":
            self._take()
            return int(not self._unary())
        if token == "*":
            self._take()
            pointer = self.scope[self._take()]
            return pointer.scope[pointer.name]
        if token == "&":
            self._take()
            return Pointer(self.scope, self._take())
        return self._postfix()

    def _postfix(self) -> Any:
        token = self._take()
        if token == "(":
            value = self.conditional()
            self._take(")")
        elif token[0].isdigit() or token[0] == ".":
            return number(token)
        elif self._next() == "(":
            value = self._called(token)
        elif token in self.scope:
            value = self.scope[token]
        elif token in self.execution.source.macros:
            value = self.execution.expression(tokens(self.execution.source.macros[token]), {})
        elif token in self.execution.source.tables:
            value = self.execution.source.tables[token]
        elif token in ("INFINITY", "NAN"):
            value = math.inf if token == "INFINITY" else math.nan
        else:
            raise NameError(f"{token} is not known in {' '.join(self.code)}")
        while self._next() in ("[", "."):
            if self._take() == "[":
                index = self.conditional()
                self._take("]")
                if isinstance(index, Node):
                    raise ValueError("a table read at a variable index; replace what is read from it")
                value = value[index]
            else:
                value = value[self._take()]
        return value

    def _called(self, name: str) -> Any:
        self._take("(")
        arguments: list[Any] = []
        while self._next() != ")":
            arguments.append(self.conditional())
            if self._next() == ",":
                self._take()
        self._take(")")
        numbers = not any(isinstance(x, Node) for x in arguments)
        if name == "fp_bits":
            return Bits(bits_of(arguments[0])) if numbers else Node("bits", tuple(arguments))
        if name == "fp_double":
            return double_of(arguments[0]) if numbers else Node("double", tuple(arguments))
        name = name.removeprefix("__builtin_") if name in ("__builtin_fabs", "__builtin_sqrt") else name
        if name in ("fabs", "sqrt"):
            plain = {"fabs": abs, "sqrt": math.sqrt}[name]
            return plain(arguments[0]) if numbers else Node(name, tuple(arguments))
        if name == "__builtin_fma":
            if numbers:
                raise ValueError("a fused operation on numbers")
            return Node("fma", tuple(float(x) if isinstance(x, int) else x for x in arguments))
        return self.execution.call(name, arguments)
