"""What a release does to beliefs about the secret.

``bayes`` is the function ``posterior``, which tells likelihoods apart, ``result`` its answer. ``dense`` holds those
with one number a secret; ``implicit`` those over domains that are never written out: one number for all secrets but a
few, tuples, functions of the secret's number; ``subsets`` those over all subsets of a pool. ``gaussian`` holds the
shift of beliefs about a secret on the line behind Gaussian noise.
"""
