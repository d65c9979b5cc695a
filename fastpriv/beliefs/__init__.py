"""What a release does to beliefs about the secret.

``bayes`` is the function ``posterior``, which tells likelihoods apart; ``streams`` holds those with one number a secret
(``passes`` reads, ``rounding`` bounds, ``output`` writes), ``result`` the answer. Of the others ``defaults`` are one
number for all secrets but a few, ``products`` tuples, ``indices`` functions of the secret's number; ``implicit`` holds
what these three are made of. ``gaussian`` holds the shift of
beliefs about a secret on the line behind Gaussian noise.
"""
