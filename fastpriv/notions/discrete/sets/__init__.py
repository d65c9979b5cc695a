"""Channels that release a set of secrets, under priors of many distinct probabilities: integrals of products over bits,
and sums over the secrets in order of their prior, where classes of like releases would be too many."""
