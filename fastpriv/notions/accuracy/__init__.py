"""How likely a release misses its target, and claims of privacy and accuracy at once.

``pac`` holds what people call; ``exact_accuracy`` computes the probability exactly, ``monte_carlo`` counts samples;
``claims`` judges claims of MBP or ABP together with accuracy.
"""
