"""The passes over beliefs: every instruction set within 1e-14 of the others, and the same bits for any cut of tiles."""

import numpy as np
import pytest

from fastpriv.kernels import _posterior
from kernels.variants import each_wider_variant, printed

PROGRAM = """
import numpy as np
import fastpriv
generator = np.random.default_rng(3)
for size in (1, 7, 100, 513, 300_000):
    for scale in (1e-6, 0.3, 3.0, 200.0):
        likelihood = scale * generator.standard_normal(size)
        likelihood[generator.random(size) < 0.1] = -np.inf
        likelihood[0] = 0.0
        prior = generator.exponential(size=size) ** 4 + 1e-310
        prior[generator.random(size) < 0.1] = 0.0
        prior[0] = 1.0
        prior /= prior.sum()
        with np.errstate(divide="ignore"):
            logs = np.log(prior)
        for given in ({}, {"prior": prior}, {"log_prior": logs}, {"prior": prior.astype(np.float32)}):
            p = fastpriv.posterior(likelihood, **given)
            numbers = p.log_evidence, p.entropy, p.kl, p.js, p.max_log_ratio, p.vulnerability
            print(*(e.value for e in numbers), *(e.width for e in numbers), p.map_index, p.ties)
"""


@pytest.mark.slow
@each_wider_variant
def test_every_instruction_set(variant):
    plain, numbers = (
        np.array([line.split() for line in printed(PROGRAM, name).splitlines()], dtype=float)
        for name in ("baseline", variant)
    )
    apart = np.abs(numbers[:, :6] - plain[:, :6])
    worst = np.argmax(np.max(apart - 1e-13 * np.abs(plain[:, :6]) - plain[:, 6:12], axis=1))
    assert np.all(apart <= 1e-13 * np.abs(plain[:, :6]) + plain[:, 6:12]), (numbers[worst], plain[worst])
    assert np.array_equal(numbers[:, 12:], plain[:, 12:])


def test_blocks_are_told_from_each_other():
    rows = []
    likelihood = np.random.default_rng(0).standard_normal(5000)
    for start in range(0, 5000, 1000):
        best, places = np.empty(3), np.empty(3, dtype=np.intp)
        row, count = _posterior.evidence_sums(
            likelihood[start : start + 1000], None, False, 0.0, True, start, best, places
        )
        assert count == 3
        assert sorted(best) == sorted(np.sort(likelihood[start : start + 1000])[-3:])
        rows.append(row)
    whole = _posterior.merge_evidence_sums(rows)
    assert whole[4:7] == (likelihood.argmax(), likelihood.argmax(), likelihood.argmin())
    folded = rows[0]
    for row in rows[1:]:
        folded = _posterior.merge_evidence_sums([folded, row])
    assert folded == whole


def test_what_a_kernel_refuses():
    empty, one = np.empty(0), np.zeros(1)
    places = np.empty(0, dtype=np.intp)
    with pytest.raises(ValueError, match="a block must have entries"):
        _posterior.evidence_sums(empty, None, False, 0.0, True, 0, empty, places)
    with pytest.raises(ValueError, match="likelihoods and prior of a block must have one length"):
        _posterior.evidence_sums(one, np.zeros(2), False, 0.0, True, 0, empty, places)
    with pytest.raises(ValueError, match="the posterior must have the length of the block"):
        _posterior.divergence_sums(one, None, False, 1.0, 0.0, 0.0, np.zeros(2))
    with pytest.raises(ValueError, match="there must be a block to join"):
        _posterior.merge_evidence_sums([])
