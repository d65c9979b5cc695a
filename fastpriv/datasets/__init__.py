"""Real data that ships with the package; ``README.md`` beside it states sources and licences."""

from __future__ import annotations

from importlib.resources import files

import numpy as np
from numpy.typing import NDArray

from .. import _validate

__all__ = ["ADULT_COLUMNS", "adult"]

ADULT_COLUMNS = ("age", "education-num", "hours-per-week")


def adult(column: str = "age") -> NDArray[np.float64]:
    """A column of the Adult data set: 32,561 people of the 1994 census of the United States.

    Parameters
    ----------
    column : {"age", "education-num", "hours-per-week"}
        Age in years, years-of-education code from 1 to 16, or working hours a week.

    Returns
    -------
    ndarray of float64, shape (32561,)
        One entry a person, in the order of the source.

    Raises
    ------
    DomainError
        For any other column name.

    Notes
    -----
    Source: Becker and Kohavi (1996), Adult, UCI Machine Learning Repository, doi:10.24432/C5XW20, licence CC BY 4.0.

    Examples
    --------
    >>> import fastpriv
    >>> ages = fastpriv.datasets.adult("age")
    >>> len(ages), ages.min(), ages.max()
    (32561, np.float64(17.0), np.float64(90.0))
    """
    index = ADULT_COLUMNS.index(_validate.choice("column", column, ADULT_COLUMNS))
    with files(__name__).joinpath("adult.csv").open(encoding="ascii") as lines:
        return np.loadtxt(lines, delimiter=",", skiprows=1, usecols=index, dtype=np.float64)
