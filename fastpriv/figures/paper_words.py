"""What is said about figures 1 to 4 of the paper: titles, captions, what is seen, what was wrong in print.

Numbers in the sentences are read from the computed figures, never written down here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from .paper_data import PaperFigure

__all__ = ["SOURCE", "WORDS", "Words"]

SOURCE = "Ngo, Östman and Graell i Amat, On local mutual-information privacy, 2024"


@dataclass(frozen=True, eq=False)
class Words:
    """The sentences of one figure: ``corrections`` are pairs of what was printed and what is right."""

    title: str
    caption: str
    seen: Callable[[PaperFigure], str]
    corrections: Callable[[PaperFigure], tuple[tuple[str, str], ...]]


def _seen1(figure: PaperFigure) -> str:
    achievable = figure.curve("ldp_delta_achievable", mu_bits=0.1)
    epsilon = achievable.axes["epsilon_nats"]
    at = int(np.argmin(np.abs(np.log(epsilon))))
    general = achievable.found.upper[at]
    gaussian = figure.curve("ldp_delta_gaussian", mu_bits=0.1).found.upper[at]
    limit = figure.curve("saturation", mu_bits=0.1).found.value
    return (
        f"However large ε is, the δ that μ bits promise stays above a level p̄, {limit:.4f} for μ = 0.1. The δ of "
        f"Gaussian noise with the same μ falls to 0: at ε = {epsilon[at]:.3g} it is {gaussian:.2g}, and {general:.3g} "
        "is promised. A small μ by itself promises little LDP."
    )


def _corrections1(figure: PaperFigure) -> tuple[tuple[str, str], ...]:
    return (
        (
            "Equation (10) holds for every data distribution space.",
            "It holds when the space contains all laws on two points; with fewer laws, μ says less.",
        ),
        (
            "The capacity (11) of the binary asymmetric channel, by cases.",
            "One formula serves everywhere; where the crossover probabilities add up to 1 it is 0/0 and the capacity "
            "is 0.",
        ),
    )


def _seen2(figure: PaperFigure) -> str:
    ends = [figure.curve("ratio", dimension=d).found for d in (1, 10)]
    return (
        f"For large σ² both fall as 1/σ². Their ratio falls from {ends[0].value[0]:.3g} (d = 1) and "
        f"{ends[1].value[0]:.3g} (d = 10) at the left to {ends[0].value[-1]:.4f} and {ends[1].value[-1]:.4f} at the "
        "right. For two antipodal inputs the sharp form is exact; where two inputs are the best there are (d = 1, "
        "σ² > 0.36) it is the optimum."
    )


def _corrections2(figure: PaperFigure) -> tuple[tuple[str, str], ...]:
    return (
        ("The gap between (12) and the optimum is almost constant.", "Their ratio is: it tends to 4, the gap to 0."),
        (
            "Equation (12) as the one conversion from LDP.",
            "For Gaussian noise it is 2dΔ²/σ² · log₂e bits; it is infinite for any curve δ(ε) that does not vanish. "
            "For two inputs, μ ≤ log₂e ∫ δ(ε)/(1 + e^ε) dε is sharp.",
        ),
    )


def _seen3(figure: PaperFigure) -> str:
    parts = []
    for mu in (0.1, 0.01):
        crossing = figure.curve("crossing", mu_bits=mu).found.value
        pointwise = figure.curve("pointwise_lmip", mu_bits=mu).found.value
        parts.append(f"μ = {mu:g}: broken for ε < {crossing:.6g}, since one input alone leaks {pointwise:.3g} bit")
    return (
        f"Gaussian noise that leaks μ on average has a larger δ than the printed guarantee ({'; '.join(parts)}). "
        "The tight guarantee for the rarest of the 21 inputs hardly falls with ε. The shape of (13) is right for a "
        "bound on the worst input instead of the average."
    )


def _corrections3(figure: PaperFigure) -> tuple[tuple[str, str], ...]:
    return (
        (
            "Equation (13): μ-CD-LMIP gives (ε, δ)-LIP with KL(Ber(p₁) ‖ Ber(p₀)) ≤ μ.",
            "False: μ bounds the average over inputs, the proof needs every input. With π the probability of the worst "
            "input: π d(p₁‖p₀) + (1 − π) d(s‖p₀) ≤ μ, p₀ = (1 − π)s + πp₁; δ = 1 − π once μ reaches the binary entropy "
            "of π. As printed it holds under sup_x KL(P_x ‖ P_M) ≤ μ.",
        ),
        (
            "“N(0, 1/4) truncated in a set of 21 points”.",
            "The variance is 1/4, and the weights are the density at the points, normalised.",
        ),
    )


def _seen4(figure: PaperFigure) -> str:
    tenth = figure.curve("ratio_at_tenth").found.value
    both = figure.curve("ratio_both_directions").found.value
    bound, entropy = figure.curve("cd_lmip_from_lip"), figure.curve("entropy").found.value
    vacuous = bound.axes["sigma_squared"][bound.found.lower > entropy]
    return (
        f"Equation (14) is {tenth:.3g} times too large where the mechanism leaks 0.1 bit, and says more than all there "
        f"is to know ({entropy:.3g} bits) for σ² up to {vacuous.max():.2g}. Keeping the two directions of LIP apart "
        f"costs a factor of {both.min():.3g} to {both.max():.3g} instead."
    )


def _corrections4(figure: PaperFigure) -> tuple[tuple[str, str], ...]:
    return (
        ("The caption speaks of an (ε, δ(ε))-LDP mechanism.", "It should say LIP: δ(ε) is the LIP curve."),
        ("“The Gaussian mechanism considered in Fig. 4”.", "The one of figure 3."),
        (
            "Equation (14), μ ≤ log₂e ∫ (e^ε + e^−ε) δ(ε) dε.",
            "True and very loose. Better: μ ≤ log₂e ∫ [sup_x H(P_x‖P_M) + e^−ε sup_x H(P_M‖P_x)] dε; with averages "
            "over x in place of the suprema it is exact.",
        ),
    )


WORDS = {
    "figure1": Words(
        "What LMIP promises about LDP",
        "The achievable LDP curve, eq. (10), of any mechanism with CI-LMIP at most μ, the level it cannot fall below, "
        "and the optimal LDP curve, eq. (9), of Gaussian noise with the same μ (d = 10, Δ = 1).",
        _seen1, _corrections1,
    ),
    "figure2": Words(
        "What LDP promises about LMIP",
        "The CI-LMIP, eq. (12), that follows from the LDP curve of Gaussian noise, and its optimal CI-LMIP, eq. (8), "
        "the capacity of the channel with peak power (Δ = 1, d = 1 and 10). Right: the one over the other.",
        _seen2, _corrections2,
    ),
    "figure3": Words(
        "What LMIP promises about LIP",
        "The LIP curve of eq. (13) as printed for CD-LMIP at most μ and its limit 1 − 2^−μ; the optimal LIP curve, eq. "
        "(6), of Gaussian noise with that μ on 21 inputs; and two guarantees that hold.",
        _seen3, _corrections3,
    ),
    "figure4": Words(
        "What LIP promises about LMIP",
        "The CD-LMIP, eq. (14), that follows from the LIP curve of Gaussian noise, the form that keeps both directions "
        "apart, and the optimal CD-LMIP, on the 21 inputs of figure 3. Right: the guarantees over the optimum.",
        _seen4, _corrections4,
    ),
}  # fmt: skip
