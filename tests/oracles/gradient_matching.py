"""Truth about gradient matching for softmax regression, term by term in mpmath; slow and readable."""

from mpmath import mp, mpf

__all__ = ["derivatives", "objective"]

DIGITS = 200


def objective(records, labels, shares, weights, target):
    """|sum of s_i (softmax(W x_i) - q_i) [x_i; 1]' - T|^2; numbers of mpmath or floats."""
    classes, width = len(weights), len(weights[0])
    total = [[-mpf(t) for t in row] for row in target]
    for x, q, s in zip(records, labels, shares, strict=True):
        z = [mp.fsum(mpf(w) * mpf(v) for w, v in zip(row, [*x, 1], strict=True)) for row in weights]
        powers = [mp.exp(one - max(z)) for one in z]
        for c in range(classes):
            error = powers[c] / mp.fsum(powers) - mpf(q[c])
            for d in range(width):
                total[c][d] += mpf(s) * error * mpf([*x, 1][d])
    return mp.fsum(one**2 for row in total for one in row)


def derivatives(records, labels, shares, weights, target):
    """The objective, and its central differences by records and by label weights at a step of 1e-25."""
    with mp.workdps(DIGITS):
        x = [[mpf(float(v)) for v in row] for row in records]
        q = [[mpf(float(v)) for v in row] for row in labels]
        rest = [list(map(float, shares)), *([list(map(float, row)) for row in table] for table in (weights, target))]
        step = mpf(10) ** -25

        def difference(table, i, k):
            kept = table[i][k]
            values = []
            for sign in (1, -1):
                table[i][k] = kept + sign * step
                values.append(objective(x, q, *rest))
            table[i][k] = kept
            return (values[0] - values[1]) / (2 * step)

        return objective(x, q, *rest), *(
            [[difference(table, i, k) for k in range(len(table[0]))] for i in range(len(table))] for table in (x, q)
        )
