"""How much a test goes through: a few cases by default, all of them under ``-m slow``."""

import pytest

__all__ = ["few_first", "few_or_all"]


def few_or_all(name, few, every):
    """The argument ``name`` is ``few`` in the default suite and ``every`` in the slow one."""
    return pytest.mark.parametrize(name, [few, pytest.param(every, marks=pytest.mark.slow)])


def few_first(values, count):
    """Parameters of which the first ``count`` belong to the default suite and the others to the slow one."""
    values = list(values)
    return values[:count] + [pytest.param(value, marks=pytest.mark.slow) for value in values[count:]]
