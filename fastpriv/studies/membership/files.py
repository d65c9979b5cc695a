"""Panels in files: .npy, .npz, CSV, PLINK .bed and variant calls (VCF).

An attribute of a panel is one bit, so the caller says which allele counts and how copies become a bit. Files of
genotypes are read in blocks of attributes, which are packed at once.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...base import validate
from ...base.errors import DomainError
from ...base.files import atomic_write
from .genotype_blocks import ABSENT, GenotypeBlock, ReferenceComparison
from .genotype_files import bed_blocks, vcf_blocks
from .matrix_files import matrix_blocks, read_matrix_file
from .panels import ByteArray, Panel

__all__ = ["read_panel", "write_panel"]

_ENDINGS = (".npy", ".npz", ".csv", ".csv.gz", ".bed", ".vcf", ".vcf.gz", ".bcf")  # of the files that are read
_CODINGS = ("binary", "carrier", "homozygous")  # how numbers of copies become a bit
_MISSING = ("raise", "drop_attributes", "as_zero")  # what becomes of missing genotypes
_MULTIALLELIC = ("raise", "drop", "any_alt")  # what becomes of sites with more than two alleles


def read_panel(
    path: str | os.PathLike[str], *, counted_allele: str | Sequence[str] | Mapping[str, str] | None = None,
    coding: str | None = None, missing: str = "raise", multiallelic: str = "raise", bitorder: str | None = None,
    reference: Mapping[str, tuple[str, float]] | None = None,
) -> Panel:  # fmt: skip
    """Read a panel from a file.

    Parameters
    ----------
    path : path-like
        ``.npy``: a matrix, one row a person. ``.npz``: what ``write_panel`` writes, or a key ``values`` with the
        matrix, or ``packed`` (bits along rows) with ``shape`` or ``n_attributes``; perhaps ``people`` and
        ``attributes``. ``.csv``, ``.csv.gz``: one row a person, with the names of the attributes in the first line; a
        first column named ``person`` has names of the people; a file of numbers alone has no names. ``.bed``: PLINK 1
        binary genotypes, with ``.bim`` and ``.fam`` beside it. ``.vcf``, ``.vcf.gz``, ``.bcf``: variant calls.
    counted_allele : {"A1", "A2", "ref", "alt", "minor"}, sequence or mapping of str
        Which allele a 1 stands for; needed for files that name alleles, and only for them. A .bed counts ``"A1"`` or
        ``"A2"``, the fifth or sixth column of its .bim; VCF ``"ref"`` or ``"alt"``; ``"minor"`` is the one of frequency
        below 1/2 among the people of the file (A1 or alt at 1/2). A sequence names the allele of each attribute in the
        order of the file, a mapping that of each name.
    coding : {"binary", "carrier", "homozygous"}, optional
        How copies of the allele become a bit: ``"carrier"`` is at least one copy, ``"homozygous"`` all copies,
        ``"binary"``, the default where no alleles are named, takes entries that are 0 or 1 already.
    missing : {"raise", "drop_attributes", "as_zero"}, default "raise"
        What becomes of missing genotypes, and of those with a missing allele: an error with the first of them, no
        attribute that has one, or 0.
    multiallelic : {"raise", "drop", "any_alt"}, default "raise"
        What becomes of sites of a VCF with more than one alternative allele: an error with the first of them, no such
        site, or one alternative allele made of all.
    bitorder : {"little", "big"}, optional
        The order of the bits in a byte of ``packed``, needed where the file does not say it; ``numpy.packbits`` packs
        ``"big"`` unless told otherwise.
    reference : mapping, optional
        name -> (allele, its frequency) of SNPs in another sample of the population. A SNP whose frequency fits better
        with its alleles swapped, or that has no such allele, is an error: a .bim whose alleles are swapped says nothing
        of it by itself.

    Returns
    -------
    Panel
        With the names of the file: of SNPs those of their ids, or ``chromosome:position`` where they have none.

    Raises
    ------
    FileNotFoundError, IsADirectoryError
        When there is no such file.
    DomainError
        For other endings, damaged files, entries that are not genotypes, and what the parameters forbid. Errors name
        person, attribute and entry.
    BackendMissingError
        For .bed without bed-reader, for VCF without cyvcf2: the extra ``genotypes``.

    Notes
    -----
    2,500 people and 1e6 SNPs take 0.3 GB as a panel; a .bed is read in blocks of 1,024 SNPs.

    **Accuracy**: bits are exact; which allele is counted is compared with bed-reader and cyvcf2, and with files made
    byte by byte, in tests/membership/test_panel_files.py.

    Examples
    --------
    >>> import os, tempfile
    >>> from fastpriv.membership import read_panel
    >>> path = os.path.join(tempfile.mkdtemp(), "genotypes.csv")
    >>> with open(path, "w") as stream:
    ...     _ = stream.write("person,rs1,rs2\\na,0,2\\nb,1,0\\n")
    >>> read_panel(path, coding="carrier").to_array().astype(int)
    array([[0, 1],
           [1, 0]])
    """
    file = validate.path("path", path)
    ending = next((one for one in sorted(_ENDINGS, key=len, reverse=True) if file.name.lower().endswith(one)), None)
    if ending is None:
        raise DomainError(f"path must end in one of {', '.join(_ENDINGS)}; got {str(file)!r}. Convert the file.")
    if not file.is_file():
        fault = IsADirectoryError if file.is_dir() else FileNotFoundError
        raise fault(f"path must be an existing file; got {str(file)!r}. Check the path.")
    validate.choice("missing", missing, _MISSING)
    validate.choice("multiallelic", multiallelic, _MULTIALLELIC)
    with_alleles = ending in (".bed", ".vcf", ".vcf.gz", ".bcf")
    _check_allele_arguments(file, with_alleles, counted_allele, coding, reference)
    people: list[str] | None
    if ending == ".bed":
        people, blocks = bed_blocks(file, counted_allele)
    elif with_alleles:
        people, blocks = vcf_blocks(file, counted_allele, multiallelic)
    else:
        found = read_matrix_file(file, bitorder)
        if isinstance(found, Panel):
            return found
        values, people, names = found
        if coding in (None, "binary") and values.dtype.kind in "biu":
            return Panel(values, people=people, attributes=names)
        blocks = matrix_blocks(file, values, people, names, coding or "binary")
    return _packed(file, people, blocks, coding or "binary", missing, reference)


def write_panel(path: str | os.PathLike[str], panel: Panel) -> None:
    """Write a panel to an .npz file with its bits packed, so that ``read_panel`` reads an equal one.

    Parameters
    ----------
    path : path-like
        A name that ends in ``.npz``. The file appears whole or not at all.
    panel : Panel
        The panel.

    Raises
    ------
    DomainError, OSError
        For another ending; if the file cannot be written.

    Examples
    --------
    >>> import os, tempfile
    >>> from fastpriv.membership import Panel, read_panel, write_panel
    >>> path = os.path.join(tempfile.mkdtemp(), "panel.npz")
    >>> write_panel(path, Panel([[1, 0, 1], [0, 0, 1]], people=["a", "b"]))
    >>> read_panel(path).people
    array(['a', 'b'], dtype='<U1')
    """
    file = validate.path("path", path)
    validate.instance("panel", panel, Panel)
    if not file.name.lower().endswith(".npz"):
        raise DomainError(f"path must end in .npz for a panel; got {str(file)!r}. Rename it.")
    names = {"people": panel.people, "attributes": panel.attributes}
    arrays: dict[str, Any] = {key: value for key, value in names.items() if value is not None}
    with atomic_write(file) as stream:
        np.savez_compressed(
            stream, packed=panel.packed, n_attributes=panel.n_attributes, bitorder=np.array("little"), **arrays
        )


def _check_allele_arguments(
    file: Path, with_alleles: bool, counted_allele: Any, coding: str | None, reference: Any
) -> None:
    """Refuse to guess the allele and the coding, and refuse arguments that the file gives no meaning."""
    if not with_alleles:
        if counted_allele is not None or reference is not None:
            name = "reference" if counted_allele is None else "counted_allele"
            raise DomainError(
                f"{name} must be left out for a file that names no alleles; got {str(file)!r}. Its numbers are copies "
                "of the allele that whoever wrote it counted."
            )
        if coding is not None:
            validate.choice("coding", coding, _CODINGS)
        return
    if counted_allele is None:
        own = "'A1', 'A2'" if file.name.lower().endswith(".bed") else "'ref', 'alt'"
        raise DomainError(
            f"counted_allele must be given for a file of alleles; got None for {str(file)!r}. Choose {own}, 'minor', "
            "or name the allele of each SNP."
        )
    if coding not in _CODINGS[1:]:
        raise DomainError(
            f"coding must be carrier or homozygous for a file of genotypes; got {validate.shown(coding)}. Carriers "
            "have at least one copy of the counted allele."
        )


def _packed(
    file: Path, people: list[str] | None, blocks: Iterator[GenotypeBlock], coding: str, missing: str,
    reference: Mapping[str, tuple[str, float]] | None,
) -> Panel:  # fmt: skip
    """The panel of the attributes of all blocks; whole bytes are packed as soon as there are some."""
    chunks: list[ByteArray] = []
    rest: NDArray[np.bool_] | None = None  # columns that do not fill a byte yet
    names: list[str] = []
    compared = ReferenceComparison(file, reference)
    for block in blocks:
        absent = block.copies == ABSENT
        kept = np.ones(len(block.names), dtype=np.bool_)
        if absent.any():
            if missing == "raise":
                k, j = (int(i) for i in np.argwhere(absent)[0])
                person = str(k) if people is None else people[k]
                raise DomainError(
                    f"path must be a file without missing genotypes; got {str(file)!r}, which lacks that of person "
                    f"{person!r} at {block.names[j]!r} ({int(absent.sum())} of {absent.size} in these attributes). "
                    "Choose missing='drop_attributes' or 'as_zero'."
                )
            if missing == "drop_attributes":
                kept = ~absent.any(axis=0)
        compared.add(block)
        bits = (block.copies > 0) if coding == "carrier" else block.homozygous & ~absent
        if coding == "binary":
            bits = block.copies == 1
        bits = bits if kept.all() else bits[:, kept]
        names += [name for name, keep in zip(block.names, kept.tolist(), strict=True) if keep]
        bits = bits if rest is None or not rest.shape[1] else np.concatenate([rest, bits], axis=1)
        whole = bits.shape[1] // 8 * 8
        if whole:
            chunks.append(np.packbits(bits[:, :whole], axis=1, bitorder="little"))
        rest = bits[:, whole:]
    compared.check()
    if rest is None or not names:
        raise DomainError(
            f"path must be a file with at least one attribute that is kept; got {str(file)!r} without any. Check the "
            "policies for missing genotypes and for sites of many alleles."
        )
    if rest.shape[1]:
        chunks.append(np.packbits(rest, axis=1, bitorder="little"))
    packed = np.empty((len(rest), -(-len(names) // 8)), dtype=np.uint8)
    at = 0
    chunks.reverse()
    while chunks:  # each is given back when it is copied
        chunk = chunks.pop()
        packed[:, at : at + chunk.shape[1]] = chunk
        at += chunk.shape[1]
    packed.setflags(write=False)
    return Panel.from_packed(packed, len(names), people=people, attributes=names)
