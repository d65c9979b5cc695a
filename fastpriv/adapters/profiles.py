"""Certified curves as functions of one number, in the shapes that riskcal and OpenDP take."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..base.errors import explain_missing_package
from ..composition import advantage, certified_curves, compose, trade_off_curve


def riskcal_evaluator(
    pair_of_parameter: Callable[[float], Any], *, count: int = 1, alpha: float | None = None,
    epsilon: float | None = None, delta: float | None = None,
) -> Callable[[float], Any]:
    """A ``PrivacyEvaluator`` of riskcal: the certified risks of the releases at one value of the parameter.

    Parameters
    ----------
    pair_of_parameter : callable
        Takes the parameter, such as a noise multiplier, and returns what ``compose`` takes.
    count : int, default 1
        Number of releases.
    alpha : float, optional
        False positive rate at which ``beta``, the least false negative rate, is wanted.
    epsilon, delta : float, optional
        The one of both that is fixed; the other one is computed.

    Returns
    -------
    callable
        Returns ``riskcal.calibration.core.PrivacyMetrics``: upper bounds of advantage, epsilon and delta, a lower bound
        of beta.

    Raises
    ------
    BackendMissingError
        If riskcal is not installed.

    Notes
    -----
    **Accuracy** that of ``advantage``, ``trade_off_curve`` and ``compose``; ``tests/surfaces/test_hosts.py``.

    Source: riskcal, calibration.core (version 1.5.1).

    Examples
    --------
    >>> from fastpriv import PoissonSampledGaussian, adapters
    >>> evaluator = adapters.riskcal_evaluator(lambda s: PoissonSampledGaussian(s, 0.01), count=100)  # doctest: +SKIP
    >>> evaluator(1.0).advantage  # doctest: +SKIP
    0.05...
    """
    with explain_missing_package("riskcal_evaluator", "riskcal 1.5 or later", "riskcal"):
        from riskcal.calibration.core import PrivacyMetrics

    def evaluate(parameter: float) -> Any:
        releases = compose(pair_of_parameter(parameter), count)
        levels = {"alpha": alpha, "epsilon": epsilon, "delta": delta}
        if alpha is not None:
            curves = (trade_off_curve(releases, None, alpha, null=null) for null in ("p", "q"))
            levels["beta"] = min(float(curve.beta.lower) for curve in curves)
        if delta is not None:
            levels["epsilon"] = float(releases.epsilon(delta, direction="worst").upper)
        elif epsilon is not None:
            levels["delta"] = float(releases.delta(epsilon, direction="worst").upper)
        return PrivacyMetrics(advantage=float(advantage(releases).upper), **levels)

    return evaluate


def opendp_privacy_profile(p: Any, q: Any = None) -> Any:
    """The ``PrivacyProfile`` of OpenDP of a pair or a composition: the certified upper bound of delta at each epsilon.

    Parameters
    ----------
    p, q
        As ``compose`` takes them: a mechanism, a channel, a ``Composition``, or two distributions.

    Returns
    -------
    opendp PrivacyProfile
        Its ``delta(epsilon)`` and ``epsilon(delta)`` hold; ``opendp.prelude.enable_features("contrib",
        "honest-but-curious")`` must have been called, as OpenDP asks for every curve of one's own.

    Raises
    ------
    BackendMissingError
        If OpenDP is not installed.

    Notes
    -----
    **Accuracy** that of ``compose``; ``tests/surfaces/test_hosts.py``.

    Source: OpenDP, measures.new_privacy_profile (version 0.16.0).

    Examples
    --------
    >>> from fastpriv import GaussianMechanism, adapters
    >>> profile = adapters.opendp_privacy_profile(GaussianMechanism(1.0, 1.0))  # doctest: +SKIP
    >>> profile.delta(epsilon=1.0)  # doctest: +SKIP
    0.126...
    """
    certified_curves(p, q)  # raises, with the names of both
    releases = compose(p if q is None else (p, q))
    with explain_missing_package("opendp_privacy_profile", "OpenDP 0.12 or later", "opendp"):
        from opendp.measures import new_privacy_profile
    return new_privacy_profile(lambda epsilon: float(releases.delta(epsilon, direction="worst").upper))
