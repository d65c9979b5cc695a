"""Genotypes in PLINK .bed files (through bed-reader) and variant calls (through cyvcf2), block by block."""

from __future__ import annotations

import gzip
import io
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import BackendMissingError, DomainError
from .genotype_blocks import ABSENT, BLOCK_ATTRIBUTES, GenotypeBlock, counted_block, damaged_file

__all__ = ["bed_blocks", "vcf_blocks"]

_BED_MAGIC = b"\x6c\x1b\x01"  # the first bytes of a .bed with one block of bytes a SNP (PLINK 1.9, file formats)
_BED_PEOPLE = b"\x6c\x1b\x00"  # with one block of bytes a person, which PLINK wrote long ago
# The last bytes of a complete file in BGZF blocks: an empty block (SAM specification, section 4.1.2).
_BGZF_END = bytes.fromhex("1f8b08040000000000ff0600424302001b0003000000000000000000")
# Remedy where a reader is missing.
_EXTRA = "Install it with: pip install 'fastpriv[genotypes]'"


def bed_blocks(file: Path, counted: Any) -> tuple[list[str], Iterator[GenotypeBlock]]:
    """People and blocks of a PLINK file, whose two bits a genotype bed-reader turns into copies of A1."""
    try:
        from bed_reader import open_bed
    except ImportError:
        raise BackendMissingError(f"read_panel needs bed-reader for {str(file)!r}. {_EXTRA}") from None
    for ending in (".bim", ".fam"):
        if not file.with_suffix(ending).is_file():
            raise FileNotFoundError(
                f"path must have its {ending} beside it; got {str(file)!r} alone. Copy it with .bim and .fam."
            )
    n_people, n_snps = (_lines(file.with_suffix(ending)) for ending in (".fam", ".bim"))
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
        whole = (size - 3) % each == 0
        reason = (
            f"{(size - 3) // each} SNPs where the .bim has {n_snps}" if whole
            else f"{size} bytes where {n_snps} SNPs of {n_people} people take {3 + n_snps * each}"
        )  # fmt: skip
        raise DomainError(
            f"path must be a .bed that agrees with its .bim and .fam; got {str(file)!r} with {reason}. It was cut, or "
            "the .bim or .fam is that of another file."
        )
    bed = open_bed(file, count_A1=True, num_threads=1)
    iids = bed.iid.tolist()
    people = iids if len(set(iids)) == len(iids) else [f"{a}:{b}" for a, b in zip(bed.fid.tolist(), iids, strict=True)]
    first, second = bed.allele_1, bed.allele_2
    ids, chromosome, position = bed.sid, bed.chromosome, bed.bp_position

    def blocks() -> Iterator[GenotypeBlock]:
        with bed:
            for start in range(0, n_snps, BLOCK_ATTRIBUTES):
                part = slice(start, min(start + BLOCK_ATTRIBUTES, n_snps))
                copies = bed.read(np.s_[:, part], dtype="int8", order="C")
                copies[copies < 0] = ABSENT
                names = [
                    name if name not in (".", "0", "") else f"{where}:{at}"
                    for name, where, at in zip(ids[part].tolist(), chromosome[part].tolist(), position[part].tolist(),
                                               strict=True)
                ]  # fmt: skip
                yield counted_block(file, copies, np.int8(2), counted, ("A1", "A2"), first[part].tolist(),
                                    second[part].tolist(), names, start)  # fmt: skip

    return people, blocks()


def _lines(file: Path) -> int:
    """Number of lines that are not empty at the end."""
    count, last = 0, b"\n"
    with open(file, "rb") as stream:
        while part := stream.read(2**20):
            count, last = count + part.count(b"\n"), part[-1:]
    return count + (last != b"\n")


def vcf_blocks(file: Path, counted: Any, multiallelic: str) -> tuple[list[str], Iterator[GenotypeBlock]]:
    """People and blocks of variant calls, which cyvcf2 reads one site at a time."""
    try:
        from cyvcf2 import VCF
    except ImportError:
        raise BackendMissingError(f"read_panel needs cyvcf2 for {str(file)!r}. {_EXTRA}") from None
    _check_end(file)
    try:
        calls = VCF(str(file))
    except Exception as fault:  # cyvcf2 raises plain exceptions
        raise damaged_file(file, fault) from None
    people = list(calls.samples)
    if not people:
        raise DomainError(f"path must be a VCF with genotypes of people; got {str(file)!r} without any. Check it.")

    def blocks() -> Iterator[GenotypeBlock]:
        sites: list[tuple[NDArray[np.int8], NDArray[np.int8], str, str, str]] = []
        start = 0
        for site in _sites(file, calls):
            if len(site.ALT) > 1 and multiallelic != "any_alt":
                if multiallelic == "drop":
                    continue
                raise DomainError(
                    f"path must be a VCF of sites with two alleles; got {str(file)!r} with {site.REF} and "
                    f"{', '.join(site.ALT)} at {_site_name(site)!r}. Choose multiallelic='drop' or 'any_alt'."
                )
            sites.append((*_copies(file, site), _site_name(site), site.REF, ",".join(site.ALT) or "."))
            if len(sites) == BLOCK_ATTRIBUTES:
                yield block(sites, start)
                start, sites = start + len(sites), []
        if sites:
            yield block(sites, start)

    def block(sites: list[Any], start: int) -> GenotypeBlock:
        copies, ploidy, names, ref, alt = zip(*sites, strict=True)
        return counted_block(file, np.stack(copies, axis=1), np.stack(ploidy, axis=1), counted, ("alt", "ref"),
                             list(alt), list(ref), list(names), start)  # fmt: skip

    return people, blocks()


def _sites(file: Path, calls: Any) -> Iterator[Any]:
    """The sites of a file; an error of the reader says that the file is damaged."""
    number = 0
    while True:
        try:
            site = next(calls)
        except StopIteration:
            return
        except Exception as fault:  # cyvcf2 raises plain exceptions
            raise damaged_file(file, DomainError(f"site {number} must be readable; got: {fault}")) from None
        yield site
        number += 1


def _copies(file: Path, site: Any) -> tuple[NDArray[np.int8], NDArray[np.int8]]:
    """Copies of alternative alleles of each person, and how many copies there are of all alleles."""
    try:
        alleles = site.genotype.array()[:, :-1]  # the last column says whether they are phased
    except Exception:  # cyvcf2 raises plain exceptions
        raise DomainError(
            f"path must be a VCF with genotypes, GT; got {str(file)!r} without them at {_site_name(site)!r}. Leave the "
            "site out."
        ) from None
    absent = (alleles == -1).any(axis=1) | (alleles < 0).all(axis=1)
    ploidy = (alleles >= 0).sum(axis=1)  # -2 fills the rows of people with fewer copies
    return np.where(absent, ABSENT, (alleles > 0).sum(axis=1)).astype(np.int8), ploidy.astype(np.int8)


def _site_name(site: Any) -> str:
    return str(site.ID) if site.ID else f"{site.CHROM}:{site.POS}"


def _check_end(file: Path) -> None:
    """Refuse a file that was cut: htslib reads what is left of it without an error."""
    with open(file, "rb") as stream:
        head = stream.read(18)
        stream.seek(max(0, os.fstat(stream.fileno()).st_size - len(_BGZF_END)))
        tail = stream.read()
    if head[:2] != b"\x1f\x8b":
        whole = file.name.lower().endswith(".bcf") or tail.endswith(b"\n")
    elif head[12:14] == b"BC":
        whole = tail == _BGZF_END
    else:  # plain gzip, whose end is only known by unpacking it
        try:
            with gzip.open(file, "rb") as stream:
                last = b""
                while part := stream.read(io.DEFAULT_BUFFER_SIZE * 64):
                    last = part[-1:]
            whole = last == b"\n"
        except (EOFError, OSError):
            whole = False
    if not whole:
        raise DomainError(
            f"path must be a whole file; got {str(file)!r}, which was cut before its end. Copy it again, and compare "
            "the sizes."
        )
