"""Capacities: a secret in a ball behind noise, Gaussian signals, the binary asymmetric channel, finite channels."""
