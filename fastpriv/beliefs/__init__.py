"""What a release does to beliefs about the secret.

``gaussian`` holds the shift of beliefs about a secret on the line behind Gaussian noise.
"""
