"""What a model update leaks: victims, their training under protections, and the updates that an attacker sees.

Notation: N records x in R^D with labels y in {0, ..., C - 1}; weights w in R^P, one flat vector. A record's loss is its
cross-entropy in nats, and the gradient of a batch of S records is the mean of theirs, g in R^P. A round of training
starts from weights that the attacker knows, takes some steps on a batch, and shares g or the new weights, protected.
"""

from ...base.public_names import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
