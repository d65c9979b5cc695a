"""How likely a release misses its target: in closed form, by summing a row, or by counting samples; and claims of it.

``ways`` chooses; ``normal`` holds Gaussian noise, ``finite`` channels, ``trials`` everything that can be drawn from,
``claims`` the verdicts; ``fastpriv.notions.pac`` is what people call.
"""
