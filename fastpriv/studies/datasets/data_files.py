"""Columns, genotypes and pictures that ship with the package; ``README.md`` beside it states sources and licences."""

from __future__ import annotations

from importlib.resources import files
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...base import validate
from ...base.numerics import FloatArray, IntArray

ADULT_COLUMNS = ("age", "education-num", "hours-per-week")  # columns of numbers, in the order of the file
ADULT_CATEGORIES = ("education", "occupation", "native-country")  # columns of names, after those of numbers in the file


def adult(column: str = "age") -> NDArray[Any]:
    """A column of the Adult data set: 32,561 people of the 1994 census of the United States.

    Parameters
    ----------
    column : {"age", "education-num", "hours-per-week", "education", "occupation", "native-country"}
        Age in years, years-of-education code from 1 to 16, or working hours a week; or names of the highest level of
        schooling, the occupation, or the country of birth, ``?`` where there is no answer.

    Returns
    -------
    ndarray of float64 or str, shape (32561,)
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
    >>> ages = fastpriv.studies.datasets.adult("age")
    >>> len(ages), ages.min(), ages.max()
    (32561, np.float64(17.0), np.float64(90.0))
    >>> fastpriv.studies.datasets.adult("education")[:3]
    array(['Bachelors', 'Bachelors', 'HS-grad'], dtype='<U12')
    """
    names = ADULT_COLUMNS + ADULT_CATEGORIES
    index = names.index(validate.choice("column", column, names))
    with files(__package__).joinpath("adult.csv").open(encoding="ascii") as lines:
        if column in ADULT_CATEGORIES:
            return np.array([line.rstrip("\n").split(",")[index] for line in lines][1:])
        return np.loadtxt(lines, delimiter=",", skiprows=1, usecols=index, dtype=np.float64)


def genotypes() -> dict[str, Any]:
    """Simulated genotypes: 1,000 people and 6,000 neighbouring sites, carriers of the minor allele.

    Returns
    -------
    dict
        The arguments of ``membership.Panel``: ``Panel(**genotypes())`` is the panel.
        ``values``, a bool array of shape (1000, 6000), is True for who has the minor allele on one chromosome at least.
        ``people`` names 500 people of European history, ``CEU0`` to ``CEU499``, and 500 of Chinese history, ``CHB0`` to
        ``CHB499``. ``attributes`` has the position of each site, in bases. Neighbouring sites are linked as on a human
        chromosome: squared correlations of 0.3 next to each other, 0.06 at 20 sites.

    Notes
    -----
    No genotype is of a real person. ``tools/simulate_genotypes.py`` in the repository simulated them with msprime, by
    the model of Gutenkunst et al. (2009), PLoS Genetics 5(10): e1000695.

    Examples
    --------
    >>> import fastpriv
    >>> panel = fastpriv.membership.Panel(**fastpriv.studies.datasets.genotypes())
    >>> panel
    <Panel of 1000 people, 6000 attributes>
    >>> round(float(panel.frequencies().mean()), 3)
    0.368
    """
    with files(__package__).joinpath("genotypes.npz").open("rb") as stream, np.load(stream) as archive:
        packed, steps = archive["packed"], archive["steps"]  # a row a site
    people = [f"{population}{k}" for population in ("CEU", "CHB") for k in range(500)]
    positions = [str(position) for position in np.cumsum(steps).tolist()]
    values = np.unpackbits(packed, axis=1, count=len(people)).T
    return {"values": values.view(np.bool_), "people": people, "attributes": positions}


def digits() -> tuple[FloatArray, IntArray]:
    """Handwritten digits: 1,797 pictures of 8 x 8 pixels, as scikit-learn's ``load_digits`` has them.

    Returns
    -------
    pixels : ndarray of float64, shape (1797, 64)
        Rows of each picture one after the other, whole numbers from 0 to 16.
    labels : ndarray of int64, shape (1797,)
        The digits.

    Notes
    -----
    Source: Alpaydin and Kaynak (1998), Optical Recognition of Handwritten Digits, UCI Machine Learning Repository,
    doi:10.24432/C50P49, licence CC BY 4.0; the test part.

    Examples
    --------
    >>> import fastpriv
    >>> pixels, labels = fastpriv.studies.datasets.digits()
    >>> pixels.shape, pixels.max(), labels[:4]
    ((1797, 64), np.float64(16.0), array([0, 1, 2, 3]))
    """
    with files(__package__).joinpath("digits.npz").open("rb") as stream, np.load(stream) as archive:
        return archive["pixels"].astype(np.float64), archive["labels"].astype(np.int64)
