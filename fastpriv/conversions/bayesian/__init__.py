"""Conversions of the Bayesian notions: MBP, ABP, LIP, leakage, robustness, and what their estimators err by."""
