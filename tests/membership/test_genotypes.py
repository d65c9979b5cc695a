"""The simulated genotypes that ship: their size, and linkage as on a human chromosome."""

from importlib.resources import files

import numpy as np

import fastpriv


def test_the_file_is_small_and_every_attribute_varies():
    assert files("fastpriv.studies.datasets").joinpath("genotypes.npz").stat().st_size < 500_000
    panel = fastpriv.studies.membership.Panel(**fastpriv.studies.datasets.genotypes())
    assert (panel.n_people, panel.n_attributes) == (1000, 6000)
    positions = panel.attributes.astype(int)
    assert np.diff(positions).min() >= 1300
    assert panel.people[[0, 500]].tolist() == ["CEU0", "CHB0"]
    frequencies = panel.frequencies()
    assert frequencies.min() >= 0.09, "carriers of alleles of frequency 0.05"
    assert frequencies.max() <= 0.8, "carriers of alleles of frequency 0.5"
    assert not panel.select(people=slice(500)).overlap(panel.select(people=slice(500, None))).rows.size


def test_neighbouring_sites_are_linked_and_distant_ones_are_not():
    values = fastpriv.studies.datasets.genotypes()["values"][:500, :2000]  # one population
    values = values[:, (values.mean(axis=0) > 0.05) & (values.mean(axis=0) < 0.95)]
    squared = np.corrcoef(values.T) ** 2
    near, far = np.diag(squared, 1).mean(), np.diag(squared, 1000).mean()
    assert 0.2 < near < 0.5
    assert far < 0.01
