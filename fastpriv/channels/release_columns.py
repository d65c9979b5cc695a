"""Log likelihoods of one release under every secret, as channels of known structure return them."""

from __future__ import annotations

from typing import Any, NamedTuple

from numpy.typing import NDArray

from ..base.numerics import FloatArray

__all__ = ["DefaultColumn", "ProductColumn"]


class DefaultColumn(NamedTuple):
    """Log likelihoods of one release: listed secrets have their own, all others one default.

    Parameters
    ----------
    size : int
        Number of secrets.
    default : float
        Log likelihood under the secrets that are not listed.
    indices, values : ndarray, shape (e,)
        The secrets that are listed, and their log likelihoods.

    Examples
    --------
    >>> from fastpriv import DefaultLikelihood, RandomizedResponse
    >>> DefaultLikelihood(*RandomizedResponse(10**12, 3.0).column(5)).size
    1000000000000
    """

    size: int
    default: float
    indices: NDArray[Any]
    values: FloatArray


class ProductColumn(NamedTuple):
    """Log likelihoods of one release of a product: the sum of one column for each coordinate.

    Parameters
    ----------
    columns : tuple
        What ``column`` of the factor of each coordinate returns.

    Examples
    --------
    >>> from fastpriv import RandomizedResponse
    >>> len(RandomizedResponse(3, 1.0).power(5).column([0, 0, 1, 2, 0]).columns)
    5
    """

    columns: tuple[Any, ...]
