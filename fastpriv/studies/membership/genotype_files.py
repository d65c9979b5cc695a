"""Genotypes in PLINK .bed files (through bed-reader) and variant calls (through cyvcf2), block by block.

Genotypes of two copies of each chromosome are numbers of copies of an allele, 0, 1 or 2.
"""

from __future__ import annotations

import gzip
import io
import itertools
import os
import re
import sys
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...base import validate
from ...base.errors import DomainError, explain_missing_package
from ...base.numerics import FloatArray

BLOCK_ATTRIBUTES = 1024  # read and packed together, a multiple of 8
ABSENT = -1  # stands for a missing genotype in a block
_BED_MAGIC = b"\x6c\x1b\x01"  # the first bytes of a .bed with one block of bytes a SNP (PLINK 1.9, file formats)
_BED_PEOPLE = b"\x6c\x1b\x00"  # with one block of bytes a person, which PLINK wrote long ago
# The last bytes of a complete file in BGZF blocks: an empty block (SAM specification, section 4.1.2).
_BGZF_END = bytes.fromhex("1f8b08040000000000ff0600424302001b0003000000000000000000")
_BIM_COLUMNS = 6  # chromosome, name, centimorgans, position, both alleles
_FAM_COLUMNS = 6  # family, person, father, mother, sex, phenotype
# The names of the columns before those of people (VCF specification, section 1.3).
_VCF_COLUMNS = ["#CHROM", "POS", "ID", "REF", "ALT", "QUAL", "FILTER", "INFO", "FORMAT"]
_VCF_CHROMOSOME = re.compile(r"[0-9A-Za-z!#$%&+./:;?@^_|~-][0-9A-Za-z!#$%&*+./:;=?@^_|~-]*")  # section 1.4.7
_VCF_FORMAT = re.compile(r"[A-Za-z_][0-9A-Za-z_.]*(:[A-Za-z_][0-9A-Za-z_.]*)*")  # section 1.6.2
# The extra that has both readers.
_EXTRA = "'fastpriv[genotypes]'"


class GenotypeBlock(NamedTuple):
    """Some attributes of all people."""

    copies: NDArray[np.int8]  # (K, width) copies of the counted allele, ``ABSENT`` where they are missing
    homozygous: NDArray[np.bool_]  # (K, width) whether all copies are of the counted allele
    names: list[str]
    alleles: list[str]  # the counted ones, "" where the file names none
    others: list[str]  # the ones that are not counted
    frequency: FloatArray  # of the counted alleles among those known, NaN where none is


def _counted_block(
    file: Path, copies: NDArray[np.int8], ploidy: Any, counted: Any, words: tuple[str, str], first: list[str],
    second: list[str], names: list[str], start: int,
) -> GenotypeBlock:
    """A block of the alleles that are counted, from the copies of the first of the two, of ``ploidy`` in all."""
    known = copies != ABSENT
    total = np.where(known, ploidy, 0).sum(axis=0)
    with np.errstate(invalid="ignore"):
        frequency = np.where(known, copies, 0).sum(axis=0) / total
    swap = _allele_choice(file, counted, words, first, second, names, start, frequency)
    copies = np.where(known & swap, ploidy - copies, copies).astype(np.int8)
    alleles = [two if other else item for item, two, other in zip(first, second, swap.tolist(), strict=True)]
    others = [entry if other else two for entry, two, other in zip(first, second, swap.tolist(), strict=True)]
    homozygous = known & (copies == ploidy) & (copies > 0)
    return GenotypeBlock(copies, homozygous, names, alleles, others, np.where(swap, 1 - frequency, frequency))


def _allele_choice(
    file: Path, counted: Any, words: tuple[str, str], first: Sequence[str], second: Sequence[str],
    names: Sequence[str], start: int, frequency: FloatArray,
) -> NDArray[np.bool_]:
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
        values = validate.sequence("counted_allele", counted, "alleles, one for each SNP")
        if len(values) < start + len(names):
            raise DomainError(
                f"counted_allele must name the allele of every SNP; got {len(values)} for more in {str(file)!r}. "
                "Name them in the order of the file."
            )
        wanted = [str(item) for item in values[start : start + len(names)]]
    for name, allele, element, two in zip(names, wanted, first, second, strict=True):
        if allele not in (element, two):
            raise DomainError(
                f"counted_allele must be an allele of its SNP; got {allele!r} at {name!r}, which has {element!r} and "
                f"{two!r} in {str(file)!r}. The alleles may be those of the other strand."
            )
    return np.array([allele != entry for allele, entry in zip(wanted, first, strict=True)])


def damaged_file(file: Path, fault: Exception) -> DomainError:
    """The error for a file that cannot be read, with the reason."""
    reason = " ".join(str(fault).split()).rstrip(".") or type(fault).__name__
    return DomainError(f"path must be a whole file; got {str(file)!r}, in which {reason}. Write it anew.")


def bed_blocks(file: Path, counted: Any) -> tuple[list[str], Iterator[GenotypeBlock]]:
    """People and blocks of a PLINK file, whose two bits a genotype bed-reader turns into copies of A1."""
    with explain_missing_package("read_panel", f"bed-reader for {str(file)!r}", _EXTRA):
        from bed_reader import open_bed
    for ending in (".bim", ".fam"):
        if not file.with_suffix(ending).is_file():
            raise FileNotFoundError(
                f"path must have its {ending} beside it; got {str(file)!r} alone. Copy it with .bim and .fam."
            )
    families, people = _table(file.with_suffix(".fam"), _FAM_COLUMNS, (0, 1))
    chromosome, ids, position, first, second = _table(file.with_suffix(".bim"), _BIM_COLUMNS, (0, 1, 3, 4, 5))
    n_people, n_snps = len(people), len(ids)
    for ending, count in ((".fam", n_people), (".bim", n_snps)):
        if not count:
            raise DomainError(
                f"path must have a {ending} with at least one line; got {str(file.with_suffix(ending))!r} without any. "
                "Copy it again."
            )
    with open(file, "rb") as stream:
        magic, size = stream.read(3), os.fstat(stream.fileno()).st_size
    if magic == _BED_PEOPLE:
        raise DomainError(
            f"path must be a .bed with SNPs in order; got {str(file)!r}, which has people in order, as PLINK wrote "
            "long ago. Convert it with plink --make-bed."
        )
    if magic != _BED_MAGIC:
        raise DomainError(
            f"path must be a PLINK .bed file, which begins with bytes 6c 1b 01; got {magic.hex(' ')} in "
            f"{str(file)!r}. Check the file."
        )
    each = -(-n_people // 4)
    if size != 3 + n_snps * each:
        reason = f"{size} bytes where {n_snps} SNPs of {n_people} people take {3 + n_snps * each}"
        if (size - 3) % each == 0:
            reason = f"{(size - 3) // each} SNPs where the .bim has {n_snps}"
        raise DomainError(
            f"path must be a .bed that agrees with its .bim and .fam; got {str(file)!r} with {reason}. It was cut, or "
            "the .bim or .fam is that of another file."
        )
    bed = open_bed(file, iid_count=n_people, sid_count=n_snps, count_A1=True, num_threads=1)
    if len(set(people)) != n_people:
        people = [f"{family}:{person}" for family, person in zip(families, people, strict=True)]

    def blocks() -> Iterator[GenotypeBlock]:
        with bed:
            for start in range(0, n_snps, BLOCK_ATTRIBUTES):
                part = slice(start, min(start + BLOCK_ATTRIBUTES, n_snps))
                copies = bed.read(np.s_[:, part], dtype="int8", order="C")
                copies[copies < 0] = ABSENT
                names = [
                    name if name not in (".", "0", "") else f"{where}:{at}"
                    for name, where, at in zip(ids[part], chromosome[part], position[part], strict=True)
                ]
                yield _counted_block(
                    file, copies, np.int8(2), counted, ("A1", "A2"), first[part], second[part], names, start
                )

    return people, blocks()


def _table(file: Path, width: int, columns: tuple[int, ...]) -> tuple[list[str], ...]:
    """The named columns of a .bim or .fam, whose lines have ``width`` entries between spaces."""
    entries: tuple[list[str], ...] = tuple([] for _ in columns)
    with open(file, "rb") as stream:
        for number, line in enumerate(stream, 1):
            try:
                cells = line.decode().split()
            except UnicodeDecodeError as fault:
                raise damaged_file(file, DomainError(f"line {number} must be in UTF-8; got {fault}")) from None
            if len(cells) != width or "\0" in line.decode():
                raise damaged_file(file, DomainError(f"line {number} must have {width} entries; got {len(cells)}"))
            for column, cell in zip(entries, (cells[j] for j in columns), strict=True):
                column.append(sys.intern(cell) if len(cell) <= 2 else cell)  # alleles and chromosomes are repeated
    return entries


def vcf_blocks(file: Path, counted: Any, multiallelic: str) -> tuple[list[str], Iterator[GenotypeBlock]]:
    """People and blocks of variant calls, which cyvcf2 reads one site at a time."""
    with explain_missing_package("read_panel", f"cyvcf2 for {str(file)!r}", _EXTRA):
        from cyvcf2 import VCF
    chromosomes = _check_records(file)
    try:
        calls = VCF(str(file))
    except Exception as fault:  # cyvcf2 raises plain exceptions
        raise damaged_file(file, fault) from None
    # The library hands out a record that it could not parse if the header does not declare its chromosome.
    for name in sorted(chromosomes.difference(calls.seqnames)):
        calls.add_to_header(f"##contig=<ID={name}>")
    try:
        people = list(calls.samples)
    except UnicodeDecodeError as fault:
        raise damaged_file(file, fault) from None
    if not people:
        raise DomainError(f"path must be a VCF with genotypes of people; got {str(file)!r} without any. Check it.")

    def blocks() -> Iterator[GenotypeBlock]:
        sites: list[tuple[NDArray[np.int8], NDArray[np.int8], str, str, str]] = []
        start = 0
        for number, site in enumerate(_sites(file, calls)):
            if len(site.ALT) > 1 and multiallelic != "any_alt":
                if multiallelic == "drop":
                    continue
                raise DomainError(
                    f"path must be a VCF of sites with two alleles; got {str(file)!r} with {site.REF} and "
                    f"{', '.join(site.ALT)} at {_site_name(site)!r}. Choose multiallelic='drop' or 'any_alt'."
                )
            sites.append((*_copies(file, site, number), _site_name(site), site.REF, ",".join(site.ALT) or "."))
            if len(sites) == BLOCK_ATTRIBUTES:
                yield block(sites, start)
                start, sites = start + len(sites), []
        if sites:
            yield block(sites, start)

    def block(sites: list[Any], start: int) -> GenotypeBlock:
        copies, ploidy, names, ref, alt = zip(*sites, strict=True)
        return _counted_block(file, np.stack(copies, axis=1), np.stack(ploidy, axis=1), counted, ("alt", "ref"),
                              list(alt), list(ref), list(names), start)

    return people, blocks()


def _sites(file: Path, calls: Any) -> Iterator[Any]:
    """The sites of a file; an error of the reader says that the file is damaged."""
    for number in itertools.count():
        try:
            site = next(calls)
            _ = site.CHROM, site.ID, site.REF, site.ALT  # decoded here, where an error names the site
        except StopIteration:
            return
        except Exception as fault:  # cyvcf2 raises plain exceptions
            raise damaged_file(file, DomainError(f"site {number} must be readable; got: {fault}")) from None
        yield site


def _copies(file: Path, site: Any, number: int) -> tuple[NDArray[np.int8], NDArray[np.int8]]:
    """Copies of alternative alleles of each person, and how many copies there are of all alleles."""
    try:
        alleles = site.genotype.array()[:, :-1]  # the last column says whether they are phased
    except Exception:  # cyvcf2 raises plain exceptions
        raise DomainError(
            f"path must be a VCF with genotypes, GT; got {str(file)!r} without them at site {number}. Leave the site "
            "out."
        ) from None
    if alleles.max(initial=0) > len(site.ALT):
        reason = f"site {number} must have genotypes of its {1 + len(site.ALT)} alleles; got allele {alleles.max()}"
        raise damaged_file(file, DomainError(reason))
    absent = (alleles == -1).any(axis=1) | (alleles < 0).all(axis=1)
    ploidy = (alleles >= 0).sum(axis=1)  # -2 fills the rows of people with fewer copies
    return np.where(absent, ABSENT, (alleles > 0).sum(axis=1)).astype(np.int8), ploidy.astype(np.int8)


def _site_name(site: Any) -> str:
    return str(site.ID) if site.ID else f"{site.CHROM}:{site.POS}"


def _check_records(file: Path) -> set[str]:
    """Refuse a file that is cut or has incomplete records; return the chromosomes of a text file.

    The C library reads what is left of a cut file without an error, and hands out records that it could not parse, on
    which even a question for the chromosome may end the process.
    """
    with open(file, "rb") as stream:
        head = stream.read(18)
        stream.seek(max(0, os.fstat(stream.fileno()).st_size - len(_BGZF_END)))
        tail = stream.read()
    packed, binary = head[:2] == b"\x1f\x8b", file.name.lower().endswith(".bcf")
    if binary and not packed:
        raise DomainError(
            f"path must be a .bcf in compressed blocks, which have check sums; got {str(file)!r} without. Convert it "
            "with bcftools view -Ob."
        )
    chromosomes: set[str] = set()
    whole = not (packed and head[12:14] == b"BC") or tail == _BGZF_END
    try:
        with closing(gzip.open(file, "rb") if packed else open(file, "rb")) as stream:
            if binary:
                while stream.read(io.DEFAULT_BUFFER_SIZE * 64):
                    pass
            elif whole:
                whole = _check_lines(file, stream, chromosomes)
    except (EOFError, OSError, zlib.error):
        whole = False
    if not whole:
        raise DomainError(
            f"path must be a whole file; got {str(file)!r}, which was cut before its end. Copy it again, and compare "
            "the sizes."
        )
    return chromosomes


def _check_lines(file: Path, stream: Iterable[bytes], chromosomes: set[str]) -> bool:
    """Check the columns of each line of variant calls; return whether the last line ends."""
    columns, line = 0, b"\n"
    for number, line in enumerate(stream, 1):
        if not line.endswith(b"\n"):
            return False
        try:
            cells = line.rstrip(b"\r\n").decode().split("\t", len(_VCF_COLUMNS))
            fault = ("text", "a byte 0") if b"\0" in line else None
        except UnicodeDecodeError as error:
            fault = ("in UTF-8", str(error))
        if not fault and not columns and number > 1 and cells[:8] == _VCF_COLUMNS[:8]:
            columns = 1 + line.count(b"\t")
        elif not fault and columns:
            fault = _record_fault(cells, 1 + line.count(b"\t"), columns)
            chromosomes.add(cells[0])
        if fault:
            constraint, value = fault
            raise damaged_file(file, DomainError(f"line {number} must be {constraint}; got {value}"))
    return True


def _record_fault(cells: list[str], count: int, columns: int) -> tuple[str, str] | None:
    """What the first columns of a record of ``count`` columns must be and are, None if nothing is wrong."""
    if count != columns:
        return f"a record of {columns} columns, as many as the header", str(count)
    if not all(cells):
        return "a record with an entry in each column", f"none in column {cells.index('') + 1}"
    if not _VCF_CHROMOSOME.fullmatch(cells[0]):
        return "a record that begins with a chromosome", validate.shown(cells[0])
    if not (cells[1].isascii() and cells[1].isdigit() and len(cells[1]) <= 10 and int(cells[1]) < 2**31):
        return "a record with a position in its second column", validate.shown(cells[1])
    if len(cells) > len(_VCF_COLUMNS) and not _VCF_FORMAT.fullmatch(cells[8]):
        return "a record with names between colons as its FORMAT", validate.shown(cells[8])
    return None
