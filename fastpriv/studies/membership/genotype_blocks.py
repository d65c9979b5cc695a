"""Genotypes of some attributes of all people: which allele is counted, and whether alleles were swapped.

Genotypes of two copies of each chromosome are numbers of copies of an allele, 0, 1 or 2.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...base import validate
from ...base.errors import DomainError
from ...base.numerics import FloatArray

__all__ = ["ABSENT", "BLOCK_ATTRIBUTES", "GenotypeBlock", "ReferenceComparison", "counted_block", "damaged_file"]

BLOCK_ATTRIBUTES = 1024  # read and packed together, a multiple of 8
ABSENT = -1  # stands for a missing genotype in a block
# An allele whose frequency is this far from that of the reference, and less than half as far with the other allele
# counted, was swapped: populations rarely differ so much, and an allele of frequency 1/2 tells nothing.
_FLIPPED_DISTANCE = 0.25


class GenotypeBlock(NamedTuple):
    """Some attributes of all people."""

    copies: NDArray[np.int8]  # (K, width) copies of the counted allele, ``ABSENT`` where they are missing
    homozygous: NDArray[np.bool_]  # (K, width) whether all copies are of the counted allele
    names: list[str]
    alleles: list[str]  # the counted ones, "" where the file names none
    others: list[str]  # the ones that are not counted
    frequency: FloatArray  # of the counted alleles among those known, NaN where none is


def counted_block(
    file: Path, copies: NDArray[np.int8], ploidy: Any, counted: Any, words: tuple[str, str], first: list[str],
    second: list[str], names: list[str], start: int,
) -> GenotypeBlock:  # fmt: skip
    """A block of the alleles that are counted, from the copies of the first of the two, of ``ploidy`` in all."""
    known = copies != ABSENT
    total = np.where(known, ploidy, 0).sum(axis=0)
    with np.errstate(invalid="ignore"):
        frequency = np.where(known, copies, 0).sum(axis=0) / total
    swap = _allele_choice(file, counted, words, first, second, names, start, frequency)
    copies = np.where(known & swap, ploidy - copies, copies).astype(np.int8)
    alleles = [two if other else one for one, two, other in zip(first, second, swap.tolist(), strict=True)]
    others = [one if other else two for one, two, other in zip(first, second, swap.tolist(), strict=True)]
    homozygous = known & (copies == ploidy) & (copies > 0)
    return GenotypeBlock(copies, homozygous, names, alleles, others, np.where(swap, 1 - frequency, frequency))


def _allele_choice(
    file: Path, counted: Any, words: tuple[str, str], first: Sequence[str], second: Sequence[str],
    names: Sequence[str], start: int, frequency: FloatArray,
) -> NDArray[np.bool_]:  # fmt: skip
    """Whether the second of two alleles is counted, for each attribute; ``frequency`` is that of the first."""
    if isinstance(counted, str):
        validate.choice("counted_allele", counted, (*words, "minor"))
        if counted == "minor":
            return np.asarray(frequency > 0.5)
        return np.full(len(names), counted == words[1])
    if isinstance(counted, Mapping):
        unknown = next((name for name in names if name not in counted), None)
        if unknown is not None:
            raise DomainError(
                f"counted_allele must name the allele of every SNP; got none for {unknown!r} of {str(file)!r}. Add it."
            )
        wanted = [str(counted[name]) for name in names]
    else:
        given = validate.sequence("counted_allele", counted, "alleles, one for each SNP")
        if len(given) < start + len(names):
            raise DomainError(
                f"counted_allele must name the allele of every SNP; got {len(given)} for more in {str(file)!r}. "
                "Name them in the order of the file."
            )
        wanted = [str(one) for one in given[start : start + len(names)]]
    for name, allele, one, two in zip(names, wanted, first, second, strict=True):
        if allele not in (one, two):
            raise DomainError(
                f"counted_allele must be an allele of its SNP; got {allele!r} at {name!r}, which has {one!r} and "
                f"{two!r} in {str(file)!r}. The alleles may be those of the other strand."
            )
    return np.array([allele != one for allele, one in zip(wanted, first, strict=True)])


class ReferenceComparison:
    """Frequencies of counted alleles beside those of a reference, to find alleles that were swapped."""

    def __init__(self, file: Path, reference: Mapping[str, tuple[str, float]] | None) -> None:
        self.file, self.reference = file, reference
        self.compared = 0
        self.swapped: list[tuple[str, str, float, float]] = []
        if reference is not None and not isinstance(reference, Mapping):
            raise DomainError(
                f"reference must be a mapping from names to alleles and frequencies; got {validate.shown(reference)}. "
                "Write {'rs1': ('A', 0.25)}."
            )

    def add(self, block: GenotypeBlock) -> None:
        """Compare the attributes of a block."""
        if self.reference is None:
            return
        for name, allele, other, found in zip(
            block.names, block.alleles, block.others, block.frequency.tolist(), strict=True
        ):
            if name not in self.reference or found != found:
                continue
            wanted, frequency = self._entry(name)
            if wanted not in (allele, other):
                raise DomainError(
                    f"reference must name an allele of each SNP of the file; got {wanted!r} at {name!r}, which has "
                    f"{allele!r} and {other!r} in {str(self.file)!r}. Its alleles come from another file, or from the "
                    "other strand."
                )
            found = found if wanted == allele else 1 - found
            self.compared += 1
            apart = abs(found - frequency)
            if apart > _FLIPPED_DISTANCE and abs(1 - found - frequency) < apart / 2:
                self.swapped.append((name, wanted, found, frequency))

    def _entry(self, name: str) -> tuple[str, float]:
        assert self.reference is not None
        try:
            allele, frequency = self.reference[name]
            if isinstance(allele, str) and 0.0 <= float(frequency) <= 1.0:
                return allele, float(frequency)
        except (TypeError, ValueError):
            pass
        raise DomainError(
            f"reference must hold an allele and its frequency between 0 and 1; got "
            f"{validate.shown(self.reference[name])} at {name!r}. Write {{'rs1': ('A', 0.25)}}."
        )

    def check(self) -> None:
        """Raise if alleles were swapped, or nothing could be compared."""
        if self.reference is None:
            return
        if not self.compared:
            raise DomainError(
                f"reference must know SNPs of the file; got none of those in {str(self.file)!r}. Compare the names."
            )
        if self.swapped:
            name, allele, found, frequency = self.swapped[0]
            raise DomainError(
                f"path must be a file whose alleles are those of the reference; got {str(self.file)!r}, in which "
                f"{allele!r} at {name!r} has frequency {found:.4g} instead of {frequency:.4g} ({len(self.swapped)} of "
                f"{self.compared} SNPs fit with their alleles swapped). Check that the .bim, or the alleles, belong to "
                "these genotypes."
            )


def damaged_file(file: Path, fault: Exception) -> DomainError:
    """The error for a file that cannot be read, with the reason."""
    reason = " ".join(str(fault).split()).rstrip(".") or type(fault).__name__
    return DomainError(f"path must be a whole file; got {str(file)!r}, in which {reason}. Write it anew.")
