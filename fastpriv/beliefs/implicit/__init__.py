"""Posteriors over domains that are never written out: numbers with a radius, groups of secrets that are alike, and what
is known of domains that only a function tells of."""
