"""A start in doubles for ``awgn.refined_capacity``: Blahut-Arimoto on a grid of radii, its peaks, then Newton's method.

Slow and plain. log g(r, rho) is kept up to terms in rho alone, which cancel from everything but the value.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from scipy.special import gammaln, ive

__all__ = ["path", "start"]

REACH = 9.5


def log_bessel(d, x):
    """log 0F1(; d/2; x^2/4) and its derivative in x."""
    x = np.asarray(x, float)
    if d == 1:
        return np.abs(x) + np.log1p(np.exp(-2 * np.abs(x))) - np.log(2), np.tanh(x)
    nu, tiny = d / 2 - 1, x < 1e-3
    if d < 50:
        y = np.where(tiny, 1.0, x)
        main = gammaln(d / 2) + np.log(ive(nu, y)) + y - nu * np.log(y / 2)
        slope = ive(nu + 1, y) / ive(nu, y)
        return np.where(tiny, x * x / (2 * d), main), np.where(tiny, x / d, slope)
    # exp(x t) averaged over the first coordinate t = tanh(s) of the sphere
    root = np.hypot(d - 1, 2 * x)
    t = 2 * x / (d - 1 + root)
    width = 1 / np.sqrt((1 - t) * (1 + t) * root)
    steps = np.linspace(-1, 1, 81)
    s = np.arctanh(t)[..., None] + np.maximum(9 * width, 42 / (d - 1))[..., None] * steps
    size = np.abs(s)
    exponent = x[..., None] * np.tanh(s) - (d - 1) * (size + np.log1p(np.exp(-2 * size)) - np.log(2))
    top = exponent.max(-1, keepdims=True)
    mass = np.exp(exponent - top)
    total = mass.sum(-1)
    step = np.maximum(9 * width, 42 / (d - 1)) * (steps[1] - steps[0])
    norm = gammaln(d / 2) - gammaln((d - 1) / 2) - np.log(np.pi) / 2
    return top[..., 0] + np.log(total * step) + norm, (mass * np.tanh(s)).sum(-1) / total


class Shell:
    """Gauss-Legendre nodes for ||y||, 12 to a unit."""

    def __init__(self, d, low, high):
        start = max(0.0, np.sqrt(low**2 + d - 1) - REACH)
        stop = np.sqrt(high**2 + d) + REACH
        panels = int(stop - start) + 1
        root, weight = np.polynomial.legendre.leggauss(12)
        half = (stop - start) / (2 * panels)
        self.d = d
        self.rho = (start + half * (2 * np.arange(panels)[:, None] + 1 + root)).ravel()
        self.log_volume = np.tile(np.log(half * weight), panels) + (d - 1) * np.log(self.rho) - self.rho**2 / 2
        self.log_volume += np.log(2) - d / 2 * np.log(2) - gammaln(d / 2)

    def rows(self, r):
        """log of exp(-r^2/2) G(r rho), its derivative in r, and the law of rho given r on the nodes."""
        r = np.asarray(r, float)[:, None]
        log, slope = log_bessel(self.d, r * self.rho)
        log = log - r * r / 2
        return log, self.rho * slope - r, np.exp(log + self.log_volume)


def log_output(log, p):
    top = log.max(0)
    return np.log(p @ np.exp(log - top)) + top


def blahut_arimoto(shell, grid, p, steps, power):
    log, _, law = shell.rows(grid)
    top = log.max(0)
    scaled = np.exp(log - top)
    for _ in range(steps):
        i = grid**2 / 2 - law @ (np.log(p @ scaled) + top)
        p = p * np.exp(np.clip(power * (i - p @ i), -20, 20))
        p /= p.sum()
        p = np.maximum(p, 1e-60)
    return p


def peaks(grid, p, floor):
    """Runs of the grid around each local maximum, gathered to their means."""
    inner = np.flatnonzero((p[1:-1] > p[:-2]) & (p[1:-1] >= p[2:])) + 1
    tops = [0] * int(p[0] > p[1]) + list(inner) + [len(p) - 1] * int(p[-1] > p[-2])
    cuts = [0] + [a + int(np.argmin(p[a:b])) for a, b in pairwise(tops)] + [len(p)]
    radii, mass = [], []
    for a, b, top in zip(cuts[:-1], cuts[1:], tops, strict=True):
        total = p[a:b].sum()
        if total > floor:
            radii.append(grid[top] if top in (0, len(p) - 1) else p[a:b] @ grid[a:b] / total)
            mass.append(total)
    radii[-1] = grid[-1]
    return np.array(radii), np.array(mass) / sum(mass)


def newton(shell, radii, p, steps=30):
    """i(r_j) = C, i'(r_j) = 0 in (log p_j, r_j, C)."""
    radii, log_p = np.array(radii), np.log(p)
    free = np.flatnonzero((radii > 0) & (radii < radii[-1]))
    k, m = len(radii), len(radii) + len(free)
    capacity = None
    for _ in range(steps):
        log, slope, law = shell.rows(radii)
        p = np.exp(log_p)
        logs = log_output(log, p)
        i = radii**2 / 2 - law @ logs
        tilt = law * slope
        # second derivative of the law in r, by differences of the first
        h = 1e-4
        _, up_slope, up = shell.rows(radii + h)
        _, down_slope, down = shell.rows(np.maximum(radii - h, 0))
        di = radii - tilt @ logs
        bend = 1 - (up * up_slope - down * down_slope) @ logs / (2 * h)
        capacity = p @ i / p.sum() if capacity is None else capacity
        residual = np.concatenate([i - capacity, di[free], [p.sum() - 1]])
        share = np.exp(log + log_p[:, None] - logs)
        moves = np.vstack([share, (share * slope)[free]])
        tests = np.vstack([law, tilt[free]])
        system = np.zeros((m + 1, m + 1))
        system[:m, :m] = -tests @ moves.T
        system[free, np.arange(k, m)] += di[free]
        system[np.arange(k, m), np.arange(k, m)] += bend[free]
        system[:k, m], system[m, :k] = -1, p
        step = np.linalg.lstsq(system, -residual, rcond=1e-15)[0]
        damping = 1 / max(1.0, np.abs(step[:k]).max(), 6 * np.abs(step[k:m]).max(initial=0.0))
        log_p = log_p + damping * step[:k]
        radii[free] += damping * step[k:m]
        capacity += damping * step[m]
        if not (np.all(np.isfinite(step)) and np.all(np.diff(radii) > 0) and radii[0] >= 0):
            return None
        if damping == 1 and np.abs(step).max() < 1e-6:
            return radii, np.exp(log_p), capacity
    return None


def start(d, amplitude, low=0.0, spacing=0.125, rounds=12, tolerance=1e-8):
    """Radii and probabilities near the best input among radii from ``low`` to ``amplitude``."""
    amplitude = float(amplitude)
    shell = Shell(d, low, amplitude)
    count = max(8, int((amplitude - low) / spacing))
    grid = np.linspace(low, amplitude, count + 1)
    p = np.full(len(grid), 1e-12)
    p[-1] = 1.0
    p = blahut_arimoto(shell, grid, p / p.sum(), 20, 1.0)
    found = None
    for attempt in range(rounds):
        p = blahut_arimoto(shell, grid, p, int(1500 * 1.6**attempt), min(1.9, 1 + attempt / 4))
        for floor in (1e-40, 1e-12):
            found = newton(shell, *peaks(grid, p, floor))
            if found is None:
                continue
            radii, q, capacity = found
            log, _, _ = shell.rows(radii)
            logs = log_output(log, q)
            _, _, law = shell.rows(grid)
            excess = (grid**2 / 2 - law @ logs - capacity).max()
            if excess < tolerance * max(1.0, capacity):
                return radii, q, capacity
    raise ArithmeticError(f"no start at d={d}, R={amplitude}")


def excess(shell, radii, p, capacity, points):
    log, _, _ = shell.rows(radii)
    _, _, laws = shell.rows(points)
    return points**2 / 2 - laws @ log_output(log, p) - capacity


def path(d, amplitude, first=None, stride=0.25, tolerance=1e-9):
    """The best input followed from ``first`` = (R, radii, p), or a small ball, to ``amplitude``.

    Spheres are born at the centre and leave it.
    """
    if first is None:
        reached = min(amplitude, 2 * np.sqrt(d))
        radii, p, capacity = start(d, reached)
    else:
        reached, radii, p = first
        capacity = None
    while reached < amplitude:
        goal = min(reached + stride, amplitude)
        shell = Shell(d, 0.0, goal)
        trial = newton(shell, np.append(radii[:-1] * goal / reached, goal), p)
        for _ in range(4):
            if trial is None:
                break
            points = np.linspace(0, goal, int(16 * goal))
            above = excess(shell, *trial, points)
            if above.max() < tolerance:
                break
            r, q, _ = trial
            if r[0] > 0:
                trial = newton(shell, np.append(0.0, r), np.append(q[0] / 100, q))
            else:
                guess = (newton(shell, np.append(at, r[1:]), q) for at in (0.3, 0.6, 0.9, 1.2, 1.5))
                trial = next((g for g in guess if g is not None and g[0][0] > 0.05), None)
        if trial is None or above.max() >= tolerance:
            stride /= 2
            if stride < 1e-4:
                raise ArithmeticError(f"lost at d={d}, R={reached}")
            continue
        radii, p, capacity = trial
        radii[-1] = goal
        reached, stride = goal, min(2 * stride, 0.5)
    return radii, p, capacity
