"""fastpriv: a fast, certified estimation engine for privacy. Every number comes with its bounds.

``assess``, ``sweep``          what releasing a column with noise leaks: tables, files, figures
``Channel``, ...               channels over finite domains, written out or known by parameters
``notions``                    LDP, LIP, MBP, ABP, information, leakage, PAC accuracy; ``notions.summary`` has all
``posterior``, ...             what one release does to beliefs; its likelihoods, ``BatchGradient``
``kl_divergence``, ...         divergences of ``GaussianMixture`` and ``Density``
``conversions``                one notion from another: ``conversions.convert``
``channel_capacity``, ...      what a channel or noise leaks at most: ``awgn_capacity``, ``gaussian_game``
``calibration``                the noise that meets a target
``figures``, ``datasets``      pictures, real data
``special``                    elementary functions as ufuncs
``Estimate``                   what every number is: ``value``, ``lower``, ``upper``, ``kind``, ``unit``
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

__version__ = "0.3.0"

# public name -> module that defines it; loaded on first use, so that `import fastpriv` costs little more than NumPy
_WHERE = {
    "Assessment": "assessment.reports.result",
    "assess": "assessment.run",
    "Sweep": "assessment.reports.sweep",
    "sweep": "assessment.run",
    "read_categories": "assessment.inputs.columns",
    "read_column": "assessment.inputs.columns",
    "show_versions": "info",
    "Estimate": "estimate",
    "BackendMissingError": "errors",
    "DomainError": "errors",
    "NotConvergedError": "errors",
    "SamplingWarning": "errors",
    "ShapeError": "errors",
    "AnyChannel": "channels",
    "Channel": "channels",
    "DefaultChannel": "channels",
    "DiscreteLaplace": "channels",
    "ExponentialMechanism": "channels",
    "GeometricMechanism": "channels",
    "ProductChannel": "channels",
    "RandomizedResponse": "channels",
    "SparseChannel": "channels",
    "SubsetSelection": "channels",
    "UnaryEncoding": "channels",
    "DefaultLikelihood": "channels.likelihoods.kinds",
    "DenseLikelihood": "channels.likelihoods.kinds",
    "IndexLikelihood": "channels.likelihoods.kinds",
    "Likelihood": "channels.likelihoods.kinds",
    "ProductLikelihood": "channels.likelihoods.kinds",
    "SubsetLikelihood": "channels.likelihoods.subsets",
    "Posterior": "beliefs.result",
    "posterior": "beliefs.bayes",
    "posterior_mode": "beliefs.bayes",
    "read_channel": "channels.files",
    "write_channel": "channels.files",
    "Density": "distributions",
    "GaussianMixture": "distributions",
    "LogRatio": "distributions",
    "Pmf": "distributions",
    "read_mixture": "distributions.files",
    "write_mixture": "distributions.files",
    "hockey_stick_divergence": "divergences.hockey_stick",
    "log_hockey_stick_divergence": "divergences.hockey_stick",
    "total_variation": "divergences.hockey_stick",
    "rank_of_subset": "channels.likelihoods.combinations",
    "subset_of_rank": "channels.likelihoods.combinations",
    "BatchGradient": "mechanisms.batch_gradient",
    "GaussianMechanism": "mechanisms.gaussian",
    "AwgnCapacity": "capacity.awgn.ball",
    "awgn_capacity": "capacity.awgn.ball",
    "awgn_sigma_from_capacity": "capacity.awgn.ball",
    "bac_capacity": "capacity.bac",
    "binary_entropy": "capacity.bac",
    "ChannelCapacity": "capacity.finite.discrete",
    "channel_capacity": "capacity.finite.discrete",
    "maximal_leakage": "capacity.finite.discrete",
    "average_power_capacity": "capacity.gaussian.game",
    "gaussian_game": "capacity.gaussian.game",
    "gaussian_information": "capacity.gaussian.game",
    "noise_filling": "capacity.gaussian.game",
    "saddle_point_gaps": "capacity.gaussian.game",
    "water_filling": "capacity.gaussian.game",
    "kl_divergence": "divergences.kl",
    "jensen_shannon": "divergences.kl",
    "renyi_divergence": "divergences.renyi",
    "entropy": "divergences.information",
    "label_information": "divergences.information",
    "mutual_information": "divergences.information",
    "HockeyStickCurve": "conversions.lmip.curves",
    "LipCurve": "conversions.lmip.curves",
    "cd_lmip_from_hockey_sticks": "conversions.lmip.information_from_curves",
    "cd_lmip_from_lip": "conversions.lmip.information_from_curves",
    "ci_lmip_from_ldp": "conversions.lmip.information_from_curves",
    "kl_from_hockey_stick": "conversions.lmip.information_from_curves",
    "ldp_delta_from_ci_lmip": "conversions.lmip.ci_lmip_and_ldp",
    "ldp_delta_saturation": "conversions.lmip.ci_lmip_and_ldp",
    "ldp_extremal_channel": "conversions.lmip.ci_lmip_and_ldp",
    "epsilon_from_ci_lmip": "conversions.lmip.ci_lmip_and_ldp",
    "lip_delta_from_cd_lmip": "conversions.lmip.cd_lmip_and_lip",
    "lip_delta_for_prior": "conversions.lmip.cd_lmip_and_lip",
    "lip_delta_from_cd_lmip_as_published": "conversions.lmip.cd_lmip_and_lip",
    "lip_delta_from_pointwise_lmip": "conversions.lmip.cd_lmip_and_lip",
    "lip_delta_saturation": "conversions.lmip.cd_lmip_and_lip",
    "lip_extremal_channel": "conversions.lmip.cd_lmip_and_lip",
    "pointwise_extremal_channel": "conversions.lmip.cd_lmip_and_lip",
    "pointwise_saturation": "conversions.lmip.cd_lmip_and_lip",
    "ExtremalPair": "conversions.lmip.extremes",
}
_ROOMS = ("calibration", "conversions", "datasets", "divergences", "figures", "notions", "special")

__all__ = ["__version__", *_WHERE, *_ROOMS]


def __getattr__(name: str) -> Any:
    if name in _WHERE:
        value = getattr(import_module(f".{_WHERE[name]}", __name__), name)
    elif name in _ROOMS:
        value = import_module(f".{name}", __name__)
    else:
        raise AttributeError(f"module 'fastpriv' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({name for name in globals() if name.startswith("__")} | set(__all__))
