"""What a release does to beliefs about the secret.

``bayes`` is the function ``posterior``, which tells likelihoods apart; ``streams`` holds those with one number a secret
(``passes`` reads, ``rounding`` bounds, ``output`` writes), ``result`` the answer. ``gaussian`` holds the shift of
beliefs about a secret on the line behind Gaussian noise.
"""
