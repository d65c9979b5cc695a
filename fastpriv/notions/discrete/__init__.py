"""The notions of a secret behind a channel.

``arguments`` reads priors and channels; ``table`` goes through the rows of a channel, ``columns`` reads its first pass;
``classes`` reads channels known by structure; ``leakage`` takes the way that a channel allows; ``curves`` holds the
hockey-sticks, ``beliefs`` the expected posteriors.
"""
