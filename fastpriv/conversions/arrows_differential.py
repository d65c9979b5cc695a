"""The conversions among the relatives of differential privacy: rows of ``registry.ARROWS``."""

from __future__ import annotations

from .arrow import EVERY_PAIR, Arrow, Assumption

__all__ = ["DIFFERENTIAL"]

_KOV = "Kairouz, Oh and Viswanath, The composition theorem for differential privacy (2017), the dominating mechanism"
_BS = "Bun and Steinke, Concentrated differential privacy (2016)"
_MIRONOV = "Mironov, Renyi differential privacy (2017)"
_SHARP = "Steinke, Sharp RDP and zCDP from pure DP (2024)"
_CKS = "Canonne, Kamath and Steinke, The discrete Gaussian (2020), proposition 12"
_DRS = "Dong, Roth and Su, Gaussian differential privacy (2022)"
_BW = "Balle and Wang, Improving the Gaussian mechanism (2018), theorem 8"
_MA = "Humphries et al., Investigating membership inference attacks under data dependencies (2023)"
_HERE = "proved in the notes of the module"
_GAUSSIAN = Assumption("the mechanism is Gaussian")
_STRAIGHT = Assumption("the function is straight between the points")
_APPROXIMATE, _RENYI, _ZCDP = "differential.approximate", "differential.renyi", "differential.concentrated"
_GDP, _F, _GROUPS = "differential.gaussian", "differential.tradeoff", "differential.groups"

DIFFERENTIAL = (
    Arrow("ldp", "dp", "dp_delta_from_ldp", "tight", _KOV, _APPROXIMATE, result="delta"),
    Arrow("ldp", "dp", "dp_epsilon_from_ldp", "tight", _KOV, _APPROXIMATE, result="epsilon"),
    Arrow("dp", "dp", "dp_delta_from_dp", "tight", _KOV, _APPROXIMATE, result="delta"),
    Arrow("total_variation", "dp", "dp_delta_from_total_variation", "tight", "the definitions", _APPROXIMATE,
          valid="at every epsilon", result="delta"),
    Arrow("ldp", "total_variation", "total_variation_from_ldp", "tight", _KOV, _APPROXIMATE),
    Arrow("dp", "total_variation", "total_variation_from_dp", "tight", _KOV, _APPROXIMATE),
    Arrow("gdp", "total_variation", "total_variation_from_gdp", "tight", f"{_DRS}, corollary 1", _GDP),
    Arrow("kl", "total_variation", "total_variation_from_kl", "bound",
          "Pinsker's inequality; Bretagnolle and Huber (1979)", _APPROXIMATE),
    Arrow("ldp", "membership_advantage", "membership_advantage_from_ldp", "tight", _MA, _APPROXIMATE),
    Arrow("dp", "membership_advantage", "membership_advantage_from_dp", "tight", f"{_MA}; {_KOV}", _APPROXIMATE),
    Arrow("total_variation", "membership_advantage", "membership_advantage_from_total_variation", "tight",
          "lemma of Neyman and Pearson", _APPROXIMATE),
    Arrow("dp", "approximate_lip", "lip_delta_from_dp", "bound", "convexity of the hockey-stick divergence",
          _APPROXIMATE, result="delta",
          assumptions=(EVERY_PAIR,)),
    Arrow("ldp", "rdp", "rdp_from_ldp", "tight",
          f"{_SHARP}, theorem 4; {_MIRONOV}, on randomised response", _RENYI,
          valid="order at least 1", result="renyi"),
    Arrow("ldp", "rdp", "rdp_from_ldp_as_published", "published",
          f"{_BS}, pure to concentrated privacy; monotonicity in the order", _RENYI,
          valid="order at least 1", result="renyi", note="true; near the least for small order times epsilon"),
    Arrow("zcdp", "rdp", "rdp_from_zcdp", "tight", f"{_BS}, definition 1.1", _RENYI, valid="order at least 1",
          result="renyi"),
    Arrow("gdp", "rdp", "rdp_from_gdp", "tight",
          f"{_DRS}, Gaussian to Renyi privacy; {_MIRONOV}, on the Gaussian mechanism", _RENYI,
          valid="order at least 1", result="renyi"),
    Arrow("rdp", "kl", "kl_from_rdp", "bound", "monotonicity in the order", _RENYI, valid="order at least 1"),
    Arrow("ldp", "kl", "kl_from_ldp", "tight", f"{_HERE}; order 1 of rdp_from_ldp", _RENYI),
    Arrow("ldp", "kl", "kl_from_ldp_as_published", "published",
          "Dwork and Rothblum, Concentrated differential privacy (2016), the mean loss of pure privacy", _RENYI,
          note="true, loose for large epsilon; the mean of concentrated privacy"),
    Arrow("rdp", "dp", "dp_epsilon_from_rdp", "bound", _CKS, _RENYI, valid="order at least 1", result="epsilon",
          note="the least for one direction of the divergence, to 1e-6"),
    Arrow("rdp", "dp", "dp_epsilon_from_rdp_as_published", "published", f"{_MIRONOV}, proposition 3", _RENYI,
          valid="order at least 1", result="epsilon", note="true, above the other"),
    Arrow("rdp", "dp", "dp_epsilon_from_rdp_curve", "bound", _CKS, _RENYI, valid="orders at least 1",
          result="epsilon", note="least over many orders"),
    Arrow("rdp", "dp", "dp_delta_from_rdp", "bound", _CKS, _RENYI, valid="order at least 1", result="delta"),
    Arrow("rdp", "dp", "dp_delta_from_rdp_curve", "bound", _CKS, _RENYI, valid="orders at least 1", result="delta",
          note="least over many orders"),
    Arrow("ldp", "zcdp", "zcdp_from_ldp", "tight", f"{_SHARP}; {_HERE}", _ZCDP),
    Arrow("ldp", "zcdp", "zcdp_from_ldp_as_published", "published", f"{_BS}, pure to concentrated privacy", _ZCDP,
          note="true, loose for large epsilon"),
    Arrow("gdp", "zcdp", "zcdp_from_gdp", "tight", f"{_BS}, proposition on the Gaussian mechanism", _ZCDP),
    Arrow("zcdp", "kl", "kl_from_zcdp", "tight", f"{_BS}, definition 1.1, order 1", _ZCDP),
    Arrow("zcdp", "dp", "dp_epsilon_from_zcdp", "bound", f"{_CKS}, at the best order", _ZCDP, result="epsilon"),
    Arrow("zcdp", "dp", "dp_epsilon_from_zcdp_as_published", "published", f"{_BS}, proposition 1.3", _ZCDP,
          result="epsilon", note="true, above the other"),
    Arrow("zcdp", "dp", "dp_delta_from_zcdp", "bound", f"{_CKS}, at the best order", _ZCDP, result="delta"),
    Arrow("gdp", "dp", "dp_delta_from_gdp", "tight", f"{_DRS}, corollary 1; {_BW}", _GDP, result="delta"),
    Arrow("gdp", "dp", "dp_epsilon_from_gdp", "tight", f"{_DRS}, corollary 1; {_BW}", _GDP, result="epsilon"),
    Arrow("ldp", "gdp", "gdp_from_ldp", "tight", _HERE, _GDP),
    Arrow("dp", "gdp", "gdp_from_dp", "tight", f"{_DRS}, corollary 1, inverted", _GDP,
          assumptions=(_GAUSSIAN,)),
    Arrow("ldp", "tradeoff", "tradeoff_from_ldp", "tight", f"{_DRS}, the trade-off of (epsilon, delta)", _F,
          note="the guarantee is the lower bound"),
    Arrow("dp", "tradeoff", "tradeoff_from_dp", "tight", f"{_DRS}, the trade-off of (epsilon, delta)", _F,
          note="the guarantee is the lower bound"),
    Arrow("dp_curve", "tradeoff", "tradeoff_from_dp_curve", "tight",
          f"{_DRS}, from (epsilon, delta) to a trade-off", _F,
          note="the guarantee is the lower bound; at the points given"),
    Arrow("gdp", "tradeoff", "tradeoff_from_gdp", "tight", f"{_DRS}, the definition of Gaussian privacy", _F,
          note="the guarantee is the lower bound"),
    Arrow("tradeoff", "dp", "dp_delta_from_tradeoff", "tight", f"{_DRS}, from a trade-off to (epsilon, delta)", _F,
          valid="type_one increasing from 0 to 1",
          result="delta",
          assumptions=(_STRAIGHT,)),
    Arrow("ldp", "group_ldp", "group_ldp_from_ldp", "tight",
          "Dwork and Roth, Algorithmic foundations (2014), group privacy", _GROUPS, valid="whole group"),
    Arrow("dp", "group_dp", "group_dp_delta_from_dp", "bound", "Vadhan, The complexity of differential privacy (2017), "
          "section 2.1, its sum kept", _GROUPS, valid="whole group", result="delta", note="at group times epsilon"),
    Arrow("zcdp", "group_zcdp", "group_zcdp_from_zcdp", "tight", f"{_BS}, group privacy", _GROUPS,
          valid="whole group"),
    Arrow("gdp", "group_gdp", "group_gdp_from_gdp", "tight", f"{_DRS}, group privacy", _GROUPS, valid="whole group"),
)  # fmt: skip
