"""Proved integral of the positive part of a signed sum of Gaussian densities.

Notation. f(x) = sum_k c_k N(x; m_k, s_k^2), with real c_k of either sign and distinct (m_k, s_k). Every sign change
of f is isolated with ball arithmetic, and the integral of max(f, 0) is then a sum of differences of the normal cdf.

On a cell [x0 - r, x0 + r] all terms are divided by the largest one at x0 (a positive factor keeps signs and roots),

    g(h) = sum_k sign(c_k) exp(e_k + v_k h + q_k h^2),   h = x - x0,

and the cell is decided by the first of these that succeeds:

1. the smallest value of the positive part exceeds the largest value of the negative part, or the reverse;
2. the Taylor polynomial of g of degree N - 1, with Cauchy's bound on the rest, has a constant term larger than all
others;
3. the same polynomial has a linear term larger than all others: g is monotone, and its end points settle the matter.

Otherwise the cell is cut. Beyond the cells the term of the largest s_k (then of the outermost m_k) dominates. A cell
that stays undecided down to 2^(-prec/4) standard deviations (a double root) enters the integral with a ball that
covers both answers. The whole computation is repeated with twice the precision until the answer has the radius asked
for.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from flint import arb, arb_series, ctx, fmpq

__all__ = ["FIRST_PRECISION", "Precision", "exact", "positive_part", "sign_changes", "square", "working_precision"]

FIRST_PRECISION = 128
LAST_PRECISION = 1 << 14
_CELLS = 40_000


class Precision(ArithmeticError):
    """The working precision is too low to decide."""


class working_precision:
    """Set the bits of ball arithmetic and the length of power series for a while."""

    def __init__(self, bits):
        self.bits = bits

    def __enter__(self):
        self.before = ctx.prec, ctx.cap
        ctx.prec, ctx.cap = self.bits, max(24, self.bits // 4)

    def __exit__(self, *_):
        ctx.prec, ctx.cap = self.before


def exact(number):
    """The ball of a double, an int or a Fraction; exact for the first two."""
    if isinstance(number, Fraction):
        return arb(fmpq(number.numerator, number.denominator))
    return arb(number)


def square(ball):
    """``ball ** 2``, which is nan for a ball of midpoint 0 in some releases."""
    return ball * ball


@dataclass
class Term:
    sign: int
    c: arb
    m: arb
    s: arb
    log_size: arb  # log(|c| / s)
    rate: arb  # 1 / (2 s^2)


@dataclass
class Segment:
    sign: int  # +1, -1, or 0 for undecided
    left: arb  # a ball around a root, an exact cut, or -inf
    right: arb
    bound: arb | None = None  # of |f| on an undecided segment


def collect(p, q, alpha):
    """Terms of p - alpha q; p and q map (mean, sigma) to an exact Fraction; alpha is 1 or a ball known to be
    irrational."""
    rows = []
    for key in sorted(set(p) | set(q)):
        a, b = p.get(key, Fraction(0)), q.get(key, Fraction(0))
        if alpha == 1:
            coefficient = a - b
            if coefficient == 0:
                continue
            c = exact(coefficient)
        else:
            c = exact(a) - alpha * exact(b)
        if c.contains(0):
            raise Precision
        m, s = exact(key[0]), exact(key[1])
        rows.append(Term(1 if c > 0 else -1, c, m, s, (abs(c) / s).log(), 1 / (2 * s * s)))
    return rows


def positive_part(p, q, epsilon, relative_bits=100):
    """The ball of the integral of max(p - e^epsilon q, 0); exactly zero when no x has p > e^epsilon q.

    ``p`` and ``q`` map (mean, sigma), both doubles, to the exact weight, a Fraction; ``epsilon`` is a double. An answer
    that is zero because p - e^epsilon q only touches zero from below is a ball around zero of radius at most 1e-200.
    """
    bits = FIRST_PRECISION
    while True:
        with working_precision(bits):
            try:
                terms = collect(p, q, 1 if epsilon == 0 else arb(epsilon).exp())
                total = _integrate(terms, _segments(terms))
                if total.is_zero() or (total > 0 and total.rel_accuracy_bits() >= relative_bits):
                    return total
                if bits > 1000 and total.abs_upper() < arb(10) ** -200:
                    return total
            except Precision:
                pass
        bits *= 2
        if bits > LAST_PRECISION:
            raise Precision(f"undecided at {LAST_PRECISION} bits")


def sign_changes(p, q, epsilon, bits=256):
    """Balls of all sign changes of p - e^epsilon q, from left to right."""
    while True:
        with working_precision(bits):
            try:
                segments = _segments(collect(p, q, 1 if epsilon == 0 else arb(epsilon).exp()))
                if all(segment.sign for segment in segments):
                    return [segment.left for segment in segments[1:]]
            except Precision:
                pass
        bits *= 2
        if bits > LAST_PRECISION:
            raise Precision(f"undecided at {LAST_PRECISION} bits")


def _segments(terms):
    """The line cut into segments of one sign, in order; neighbours of equal sign are joined."""
    if len({term.sign for term in terms}) < 2:
        sign = terms[0].sign if terms else -1
        return [Segment(sign, arb.neg_inf(), arb.pos_inf())]
    left, right = _reach(terms, -1), _reach(terms, 1)
    first, last = _leader(terms, -1), _leader(terms, 1)
    pieces = [Segment(first.sign, arb.neg_inf(), left), *_cells(terms, left, right)]
    pieces.append(Segment(last.sign, right, arb.pos_inf()))
    joined = [pieces[0]]
    for piece in pieces[1:]:
        if piece.sign == joined[-1].sign and piece.sign != 0:
            joined[-1].right = piece.right
        else:
            joined.append(piece)
    return joined


def _leader(terms, side):
    """The term that dominates at side * infinity."""
    return max(terms, key=lambda term: (_float(term.s), side * _float(term.m)))


def _reach(terms, side):
    """An exact point beyond which (on that side) the leading term exceeds the sum of all others."""
    lead = _leader(terms, side)
    step = max((term.s for term in terms), key=_float) * 2
    edge = max((side * term.m for term in terms), key=_float)
    for _ in range(400):
        x = side * (edge + step).mid()
        ratios, falling = arb(0), True
        for term in terms:
            if term is lead:
                continue
            slope = side * ((x - lead.m) * lead.rate - (x - term.m) * term.rate)
            falling = falling and slope <= 0
            gap = term.log_size - lead.log_size + square(x - lead.m) * lead.rate - square(x - term.m) * term.rate
            ratios += gap.exp()
        if falling and ratios < 1:
            return x
        step *= 2
    raise Precision


def _cells(terms, left, right):
    """Segments that tile [left, right], in order."""
    smallest = min((term.s for term in terms), key=_float)
    floor = (smallest * arb(2) ** -(ctx.prec // 4)).mid()
    stack, out, count = [(left, right)], [], 0
    weight = arb(fmpq(499 + ctx.prec % 7, 1024))  # cuts that avoid points of symmetry
    while stack:
        a, b = stack.pop()
        count += 1
        if count > _CELLS:
            raise Precision
        found = _decide(terms, a, b)
        if found is not None:
            out.extend(found)
        elif b - a < floor:
            out.append(Segment(0, a, b, _size(terms, a, b)))
        else:
            cut = (a + (b - a) * weight).mid()
            if not (a < cut and cut < b):
                raise Precision
            stack += [(cut, b), (a, cut)]
    return out


def _local(terms, a, b):
    """Centre, radius and the list (sign, e, v, q) of the terms divided by the largest one at the centre."""
    x0 = ((a + b) / 2).mid()
    r = arb.max(b - x0, x0 - a).upper()
    sizes = [term.log_size - square(x0 - term.m) * term.rate for term in terms]
    top = max(range(len(terms)), key=lambda k: sizes[k].mid())
    slope, bend = -2 * (x0 - terms[top].m) * terms[top].rate, -terms[top].rate
    rows = [
        (t.sign, size - sizes[top], -2 * (x0 - t.m) * t.rate - slope, -t.rate - bend)
        for t, size in zip(terms, sizes, strict=True)
    ]
    rows[top] = (terms[top].sign, arb(0), arb(0), arb(0))
    return x0, r, rows, sizes[top]


def _range(e, v, q, r):
    """Lower and upper bounds of e + v h + q h^2 for |h| <= r."""
    al = abs(v)
    if q < 0:
        low = e - al * r + q * r * r
        inside, outside = al < -2 * q * r, al >= -2 * q * r
        high = e - v * v / (4 * q) if inside else e + al * r + (q * r * r if outside else 0)
    elif q > 0:
        high = e + al * r + q * r * r
        inside, outside = al < 2 * q * r, al >= 2 * q * r
        low = e - v * v / (4 * q) if inside else e - al * r + (q * r * r if outside else 0)
    else:
        spread = al * r + abs(q) * r * r
        low, high = e - spread, e + spread
    return low, high


def _decide(terms, a, b):
    x0, r, rows, _ = _local(terms, a, b)
    least, most = {1: arb(0), -1: arb(0)}, {1: arb(0), -1: arb(0)}
    for sign, e, v, q in rows:
        low, high = _range(e, v, q, r)
        least[sign] += low.exp()
        most[sign] += high.exp()
    for sign in (1, -1):
        if least[sign] > most[-sign]:
            return [Segment(sign, a, b)]
    series = _taylor(rows, r)
    if series is None:
        return None
    coefficients, rest, rest_slope, sharp = series
    if sharp and all(c.contains(0) for c in coefficients[:12]):
        raise Precision  # rounding alone hides the sign, cutting would not help
    others = sum((abs(c) for c in coefficients[1:]), rest)
    if abs(coefficients[0]) > others:
        return [Segment(1 if coefficients[0] > 0 else -1, a, b)]
    others = sum((n * abs(c) for n, c in enumerate(coefficients) if n > 1), rest_slope)
    if abs(coefficients[1]) > others:
        return _monotone(rows, x0, a, b)
    return None


def _taylor(rows, r):
    """Coefficients of g(r t), and bounds of the rest of sum |c_n| and of sum n |c_n|; None if the cell is too wide.

    The last entry is False if some term entered with its size only.
    """
    length, sharp = ctx.cap, True
    total, rest, rest_slope = None, arb(0), arb(0)
    for sign, e, v, q in rows:
        spread = _float(abs(v) * r + 2 * abs(q) * r * r)
        if not spread < length / 3:
            if e + abs(v) * r + abs(q) * r * r < -length:  # negligible: enter it with its size only
                ratio, bound = 2, (e + 2 * abs(v) * r + 4 * abs(q) * r * r).exp()
                part, sharp = None, False
            else:
                return None
        else:
            ratio = int(max(2, min(64, length / (2 * spread + 1e-9))))
            bound = (e + abs(v) * r * ratio + abs(q) * (r * ratio) ** 2).exp()
            part = arb_series([e, v * r, q * r * r], prec=length).exp()
        if part is None:  # |c_n| <= bound 2^-n for every n
            part = arb_series([arb(0, (bound * arb(2) ** -n).upper()) for n in range(length)], prec=length)
        total = sign * part if total is None else total + sign * part
        inverse = arb(1) / ratio
        tail = bound * inverse**length / (1 - inverse)
        rest += tail
        rest_slope += tail * (length + 1 / (arb(ratio) - 1))
    coefficients = [total[n] for n in range(length)]
    return coefficients, rest, rest_slope, sharp


def _value(rows, h):
    """g(h) and g'(h)."""
    value, slope = arb(0), arb(0)
    for sign, e, v, q in rows:
        part = (e + (v + q * h) * h).exp()
        value += sign * part
        slope += sign * (v + 2 * q * h) * part
    return value, slope


def _sign(ball):
    return 1 if ball > 0 else -1 if ball < 0 else 0


def _monotone(rows, x0, a, b):
    low, high = a - x0, b - x0
    at_low, at_high = _sign(_value(rows, low)[0]), _sign(_value(rows, high)[0])
    if not (at_low and at_high):
        raise Precision
    if at_low == at_high:
        return [Segment(at_low, a, b)]
    h = ((low + high) / 2).mid()
    for _ in range(ctx.prec):
        value, slope = _value(rows, h)
        sign = _sign(value)
        if not sign:
            break
        low, high = (h, high) if sign == at_low else (low, h)
        step = (h - value.mid() / slope.mid()).mid()
        if not (low < step and step < high):
            step = ((low + high) / 2).mid()
        if abs(step - h) <= abs(b - a) * arb(2) ** (8 - ctx.prec):
            h = step
            break
        h = step
    radius = (abs(b - a) * arb(2) ** (8 - ctx.prec)).upper()
    for _ in range(ctx.prec):
        left, right = h - radius, h + radius
        if _sign(_value(rows, left)[0]) == at_low and _sign(_value(rows, right)[0]) == at_high:
            root = x0 + arb(h, radius)
            return [Segment(at_low, a, root), Segment(at_high, root, b)]
        radius *= 16
        if radius > b - a:
            break
    raise Precision


def _size(terms, a, b):
    """Upper bound of |f| on [a, b], without the factor 1 / sqrt(2 pi)."""
    _, r, rows, log_top = _local(terms, a, b)
    series = _taylor(rows, r)
    if series is None:
        raise Precision
    coefficients, rest, _, _ = series
    rate = max((term.rate for term in terms), key=_float)
    far = max(abs(a - term.m) + abs(b - term.m) for term in terms)
    swing = (2 * far * rate * r + rate * r * r).exp()  # the largest change of the factor divided out
    return (sum((abs(c) for c in coefficients), rest) * log_top.exp() * swing).upper()


def _integrate(terms, segments):
    total = arb(0)
    root = arb(2).sqrt()
    for segment in segments:
        if segment.sign > 0:
            for t in terms:
                total += t.c * _cdf_difference(
                    (segment.left - t.m) / (t.s * root), (segment.right - t.m) / (t.s * root)
                )
        elif segment.sign == 0:
            area = segment.bound * (segment.right - segment.left) / (2 * arb.pi()).sqrt()
            total += arb(0, 1) * (area / 2) + area / 2
    return total


def _cdf_difference(u, v):
    """Phi(v sqrt 2) - Phi(u sqrt 2), without cancellation in the tails."""
    if u > 0:
        return (_erfc(u) - _erfc(v)) / 2
    if v < 0:
        return (_erfc(-v) - _erfc(-u)) / 2
    if u > -1 and v < 1:
        return (v.erf() - u.erf()) / 2
    return 1 - (_erfc(-u) + _erfc(v)) / 2


def _erfc(x):
    if not x.is_finite():
        return arb(0) if x > 0 else arb(2)
    if not x > 1000:
        return x.erfc()
    # far out ``arb.erfc`` is a bound only; the asymptotic series has an error below the first term left out
    term, total, step = arb(1), arb(0), -1 / (2 * x * x)
    for n in range(1, ctx.prec):
        total += term
        term *= (2 * n - 1) * step
        if abs(term) < arb(2) ** -ctx.prec:
            break
    return (total + arb(0, 1) * abs(term).upper()) * (-x * x).exp() / (x * arb.pi().sqrt())


def _float(ball):
    return float(ball.mid()) if abs(ball.mid()) < arb(2) ** 1000 else (float("inf") if ball > 0 else float("-inf"))
