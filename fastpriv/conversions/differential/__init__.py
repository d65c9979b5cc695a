"""Conversions among the relatives of differential privacy: (epsilon, delta), Renyi, concentrated, Gaussian, f-DP."""
