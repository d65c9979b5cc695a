"""Channels that release a set of secrets, under priors of so many distinct probabilities that classes of equal releases
would be too many: integrals of products over bits, and sums over the secrets in order of their prior."""
