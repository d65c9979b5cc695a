"""Makes fastpriv/studies/datasets/genotypes.npz: carriers of alleles at neighbouring sites, simulated with msprime.

``python tools/simulate_genotypes.py`` needs msprime 1.x, which is no dependency of the package, and writes the file
that ``fastpriv.datasets.genotypes`` reads. 1,000 diploid people of the OutOfAfrica model of Gutenkunst et al. (2009),
500 of its CEU and 500 of its CHB population, on 12.5 Mb with recombination and mutation at rates of human autosomes; of
the sites where the derived allele has a frequency between 0.05 and 0.95, every site that keeps a distance of 1,300
bases from the one before, and of these the first 6,000. A person carries the minor allele, the one of frequency at most
1/2 among the simulated, on at least one chromosome, or not.
"""

from pathlib import Path

import msprime
import numpy as np

SEED = 20_260
PEOPLE = {"CEU": 500, "CHB": 500}
LENGTH = 12_500_000  # bases
RECOMBINATION = 1.25e-8  # of a base in a generation
MUTATION = 2.35e-8  # of a base in a generation, as Gutenkunst et al. assume
SITES = 6000
DISTANCE = 1300  # bases between neighbouring sites, at least
LEAST_FREQUENCY = 0.05  # of either allele


def demography() -> msprime.Demography:
    """Africa, Europe and Asia by Gutenkunst et al. 2009, table 1, with 25 years a generation."""
    years = 25
    africa, europe, asia = 12_300, 1000 * np.exp(0.004 * 21_200 / years), 510 * np.exp(0.0055 * 21_200 / years)
    model = msprime.Demography()
    model.add_population(name="YRI", initial_size=africa)
    model.add_population(name="CEU", initial_size=europe, growth_rate=0.004)
    model.add_population(name="CHB", initial_size=asia, growth_rate=0.0055)
    model.add_population(name="OOA", initial_size=2100)
    model.add_population(name="AMH", initial_size=africa)
    model.add_population(name="ANC", initial_size=7300)
    model.set_symmetric_migration_rate(["CEU", "CHB"], 9.6e-5)
    model.set_symmetric_migration_rate(["YRI", "CHB"], 1.9e-5)
    model.set_symmetric_migration_rate(["YRI", "CEU"], 3e-5)
    model.add_population_split(time=21_200 / years, derived=["CEU", "CHB"], ancestral="OOA")
    model.add_symmetric_migration_rate_change(time=21_200 / years, populations=["YRI", "OOA"], rate=25e-5)
    model.add_population_split(time=140_000 / years, derived=["YRI", "OOA"], ancestral="AMH")
    model.add_population_split(time=220_000 / years, derived=["AMH"], ancestral="ANC")
    return model


def main() -> None:
    """Simulate and write the file."""
    trees = msprime.sim_ancestry(
        samples=PEOPLE, demography=demography(), sequence_length=LENGTH,
        recombination_rate=RECOMBINATION, random_seed=SEED,
    )
    trees = msprime.sim_mutations(trees, rate=MUTATION, random_seed=SEED, model=msprime.BinaryMutationModel())
    columns, positions = [], []
    for site in trees.variants():
        if positions and site.site.position < positions[-1] + DISTANCE:
            continue
        frequency = site.genotypes.mean()
        if LEAST_FREQUENCY <= frequency <= 1 - LEAST_FREQUENCY:
            minor = site.genotypes == (frequency <= 0.5)
            columns.append(minor.reshape(-1, 2).any(axis=1))
            positions.append(int(site.site.position))
        if len(positions) == SITES:
            break
    assert len(positions) == SITES, f"{len(positions)} sites; simulate more bases"
    carriers = np.array(columns).T
    path = Path(__file__).parents[1] / "fastpriv" / "studies" / "datasets" / "genotypes.npz"
    steps = np.diff(positions, prepend=0).astype(np.uint32)  # they pack better than positions
    np.savez_compressed(path, packed=np.packbits(carriers.T, axis=1), steps=steps)  # a row a site packs better
    print(f"{path.stat().st_size} bytes, {positions[-1]} bases, carriers {carriers.mean():.3f}")


if __name__ == "__main__":
    main()
