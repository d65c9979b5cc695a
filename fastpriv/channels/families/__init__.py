"""Channels that are known by parameters, and what several make together; never written out.

``responses`` treats secrets alike but for the true one (randomised response, default rows, exponential mechanism),
``subsets`` releases sets (unary encoding, subset selection; ``membership`` and ``binomials`` count in them),
``geometric`` adds noise to integers; ``products`` and ``cascades`` combine.
"""
