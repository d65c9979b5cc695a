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
from ...base.column_files import ColumnFile
from ...base.errors import DomainError
from ...base.files import atomic_write, read_npy_header, read_npz
from .genotype_files import ABSENT, BLOCK_ATTRIBUTES, GenotypeBlock, bed_blocks, damaged_file, vcf_blocks
from .panels import ByteArray, Panel

_ENDINGS = (".npy", ".npz", ".csv", ".csv.gz", ".bed", ".vcf", ".vcf.gz", ".bcf")  # of the files that are read
_MISSING_CELLS = {"", "na", "nan", ".", "-9"}  # of a CSV, in lower case
# An allele whose frequency is this far from that of the reference, and less than half as far with the other allele
# counted, was swapped: populations rarely differ so much, and an allele of frequency 1/2 tells nothing.
_FLIPPED_DISTANCE = 0.25
_CODINGS = ("binary", "carrier", "homozygous")  # how numbers of copies become a bit
_MISSING = ("raise", "drop_attributes", "as_zero")  # what becomes of missing genotypes
_MULTIALLELIC = ("raise", "drop", "any_alt")  # what becomes of sites with more than two alleles


def read_panel(
    path: str | os.PathLike[str], *, counted_allele: str | Sequence[str] | Mapping[str, str] | None = None,
    coding: str | None = None, missing: str = "raise", multiallelic: str = "raise", bitorder: str | None = None,
    reference: Mapping[str, tuple[str, float]] | None = None,
) -> Panel:
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
    ending = next((item for item in sorted(_ENDINGS, key=len, reverse=True) if file.name.lower().endswith(item)), None)
    if ending is None:
        raise DomainError(f"path must end in one of {', '.join(_ENDINGS)}; got {str(file)!r}. Convert the file.")
    validate.existing_file("path", file)
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
        result: Any
        if ending == ".npy":
            result = _read_npy(file), None, None
        else:
            result = _read_npz(file, bitorder) if ending == ".npz" else _read_csv(file)
        if isinstance(result, Panel):
            return result
        values, people, names = result
        if coding in (None, "binary") and values.dtype.kind in "biu":
            return Panel(values, people=people, attributes=names)
        blocks = _matrix_blocks(file, values, people, names, coding or "binary")
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
        allele_choices = "'A1', 'A2'" if file.name.lower().endswith(".bed") else "'ref', 'alt'"
        raise DomainError(
            f"counted_allele must be given for a file of alleles; got None for {str(file)!r}. Choose {allele_choices}, "
            "'minor', or name the allele of each SNP."
        )
    if coding not in _CODINGS[1:]:
        raise DomainError(
            f"coding must be carrier or homozygous for a file of genotypes; got {validate.shown(coding)}. Carriers "
            "have at least one copy of the counted allele."
        )


def _read_npy(file: Path) -> NDArray[Any]:
    try:
        with open(file, "rb") as stream:
            header = read_npy_header(stream, file.stat().st_size)
            validate.memory("path", header.entries * header.dtype.itemsize, "Pack the bits in blocks.")
            return header.array(bytearray(stream.read(header.entries * header.dtype.itemsize)))
    except DomainError as fault:
        raise damaged_file(file, fault) from None


def _read_npz(file: Path, bitorder: str | None) -> Any:
    """A panel, of packed bits, or the numbers of a matrix with the names of people and attributes, if there are any."""

    def check_keys(keys: list[str]) -> None:
        if not ({"values"} <= set(keys) or ({"packed"} <= set(keys) and {"shape", "n_attributes"} & set(keys))):
            raise DomainError(
                f"path must be an archive with values, or with packed and n_attributes or shape; got {str(file)!r} "
                f"with {', '.join(keys)}. Write it with fastpriv.studies.membership.write_panel."
            )

    try:
        arrays = read_npz(file, check_keys, "Read it on a machine with more memory.")
    except DomainError as fault:
        raise fault if str(fault).startswith("path must") else damaged_file(file, fault) from None
    people, names = (arrays[key].tolist() if key in arrays else None for key in ("people", "attributes"))
    if "values" in arrays:
        return arrays["values"], people, names
    packed = arrays["packed"]
    size = arrays["n_attributes"] if "n_attributes" in arrays else arrays["shape"][-1:]
    count = int(size.ravel()[0])
    order = str(arrays["bitorder"]) if "bitorder" in arrays else bitorder
    if order is None:
        raise DomainError(
            f"bitorder must be given for a file that does not say it; got None for {str(file)!r}. numpy.packbits packs "
            "'big' unless told otherwise."
        )
    if validate.choice("bitorder", order, ("little", "big")) == "big" and packed.dtype == np.uint8:
        packed = np.packbits(np.unpackbits(packed, axis=1, count=count), axis=1, bitorder="little")
    packed.setflags(write=False)
    return Panel.from_packed(packed, count, people=people, attributes=names)


def _read_csv(file: Path) -> tuple[NDArray[Any], list[str] | None, list[str] | None]:
    """The numbers of a table, with NaN for missing ones, and the names in it."""
    table = ColumnFile(file, sep=",")
    if all(_number(name) is not None for name in table.names):  # a first line of genotypes, of which some are missing
        table = ColumnFile(file, sep=",", header=False)
    with_people = not table.headerless and table.names[0].strip().lower() == "person"
    names = None if table.headerless else [name.strip() for name in table.names[with_people:]]
    people: list[str] = []
    rows: list[NDArray[np.float32]] = []
    for cells in table.rows():
        row = [str(cell) for cell in cells[with_people:]]
        people += map(str, cells[:with_people])
        numbers = [_number(cell) for cell in row]
        if None in numbers:
            column = numbers.index(None)
            name = str(column) if names is None else names[column]
            raise DomainError(
                f"path must be a table of numbers; got {validate.shown(row[column])} in line {table.line} "
                f"of {str(file)!r} at attribute {validate.shown(name)}. Replace it by 0, 1 or 2."
            )
        rows.append(np.array(numbers, dtype=np.float32))
    if not rows or not rows[0].size:
        raise DomainError(f"path must be a table with people and attributes; got {str(file)!r} without any. Fill it.")
    return np.stack(rows), people if with_people else None, names


def _number(cell: str) -> float | None:
    """The number of a cell, NaN where it is missing, None where it is other text."""
    if cell.strip().lower() in _MISSING_CELLS:
        return float("nan")
    try:
        return float(cell)
    except ValueError:
        return None


def _matrix_blocks(
    file: Path, values: NDArray[Any], people: list[str] | None, names: list[str] | None, coding: str
) -> Iterator[GenotypeBlock]:
    """Blocks of a matrix of numbers of copies."""
    if values.ndim != 2:
        raise DomainError(f"path must hold a matrix; got shape {values.shape} in {str(file)!r}. One row a person.")
    if values.dtype.kind not in "biuf":
        raise DomainError(f"path must hold numbers; got {values.dtype} in {str(file)!r}. Convert them.")
    most = 1 if coding == "binary" else 2
    labels_of_all = [str(j) for j in range(values.shape[1])] if names is None else names
    for start in range(0, values.shape[1], BLOCK_ATTRIBUTES):
        part = values[:, start : start + BLOCK_ATTRIBUTES]
        labels = labels_of_all[start : start + part.shape[1]]
        absent = np.isnan(part) if part.dtype.kind == "f" else np.zeros(part.shape, dtype=np.bool_)
        with np.errstate(invalid="ignore"):
            copies = np.where(absent, ABSENT, part).astype(np.int8)
        wrong = (copies != part) & ~absent | (copies > most) | ((copies < 0) & ~absent)
        if wrong.any():
            k, j = (int(i) for i in np.argwhere(wrong)[0])
            person = str(k) if people is None else people[k]
            raise DomainError(
                f"path must be a file of {'0 and 1' if most == 1 else '0, 1 and 2'}; got {part[k, j].item()!r} for "
                f"person {person!r} at attribute {labels[j]!r} of {str(file)!r}. "
                + ("Choose coding='carrier' or 'homozygous' for genotypes." if most == 1 else "Correct the file.")
            )
        none = [""] * part.shape[1]
        yield GenotypeBlock(copies, copies == 2, labels, none, none, np.full(part.shape[1], np.nan))


def _packed(
    file: Path, people: list[str] | None, blocks: Iterator[GenotypeBlock], coding: str, missing: str,
    reference: Mapping[str, tuple[str, float]] | None,
) -> Panel:
    """The panel of the attributes of all blocks, which are packed one by one."""
    description, remedy = "a mapping from names to alleles and frequencies", "Write {'rs1': ('A', 0.25)}."
    validate.instance("reference", reference, (Mapping, type(None)), description, remedy)
    chunks: list[ByteArray] = []
    names: list[str] = []
    selected: list[bool] = []
    known: list[tuple[str, str, str, float]] = []  # name, both alleles and frequency of what the reference has
    for block in blocks:
        absent = block.copies == ABSENT
        if missing == "raise" and absent.any():
            k, j = (int(i) for i in np.argwhere(absent)[0])
            person = str(k) if people is None else people[k]
            raise DomainError(
                f"path must be a file without missing genotypes; got {str(file)!r}, which lacks that of person "
                f"{person!r} at {block.names[j]!r} ({int(absent.sum())} of {absent.size} in these attributes). "
                "Choose missing='drop_attributes' or 'as_zero'."
            )
        if coding == "binary":
            bits = block.copies == 1
        else:
            bits = block.copies > 0 if coding == "carrier" else block.homozygous & ~absent
        chunks.append(np.packbits(bits, axis=1, bitorder="little"))
        names += block.names
        selected += (~absent.any(axis=0) | (missing != "drop_attributes")).tolist()
        if reference is not None:
            rows = zip(block.names, block.alleles, block.others, block.frequency.tolist(), strict=True)
            known += [row for row in rows if row[0] in reference and row[3] == row[3]]
    if reference is not None:
        _check_reference(file, reference, known)
    if not any(selected):
        raise DomainError(
            f"path must be a file with at least one attribute that is kept; got {str(file)!r} without any. Check the "
            "policies for missing genotypes and for sites of many alleles."
        )
    packed = np.concatenate(chunks, axis=1)
    packed.setflags(write=False)
    panel = Panel.from_packed(packed, len(names), people=people, attributes=names)
    return panel if all(selected) else panel.select(attributes=np.flatnonzero(selected))


def _check_reference(
    file: Path, reference: Mapping[str, tuple[str, float]], known: list[tuple[str, str, str, float]]
) -> None:
    """Raise if alleles were swapped against a reference, or nothing could be compared."""
    if not known:
        raise DomainError(
            f"reference must know SNPs of the file; got none of those in {str(file)!r}. Compare the names."
        )
    swapped: list[tuple[str, str, float, float]] = []
    for name, counted, other, count_frequency in known:
        try:
            allele, frequency = reference[name]
            valid = isinstance(allele, str) and 0.0 <= float(frequency) <= 1.0
        except (TypeError, ValueError):
            valid = False
        if not valid:
            raise DomainError(
                f"reference must hold an allele and its frequency between 0 and 1; got "
                f"{validate.shown(reference[name])} at {name!r}. Write {{'rs1': ('A', 0.25)}}."
            )
        if allele not in (counted, other):
            raise DomainError(
                f"reference must name an allele of each SNP of the file; got {allele!r} at {name!r}, which has "
                f"{counted!r} and {other!r} in {str(file)!r}. Its alleles come from another file, or from the other "
                "strand."
            )
        result = count_frequency if allele == counted else 1 - count_frequency
        distance = abs(result - float(frequency))
        if distance > _FLIPPED_DISTANCE and abs(1 - result - float(frequency)) < distance / 2:
            swapped.append((name, allele, result, float(frequency)))
    if swapped:
        name, allele, result, frequency = swapped[0]
        raise DomainError(
            f"path must be a file whose alleles are those of the reference; got {str(file)!r}, in which "
            f"{allele!r} at {name!r} has frequency {result:.4g} instead of {frequency:.4g} ({len(swapped)} of "
            f"{len(known)} SNPs fit with their alleles swapped). Check that the .bim, or the alleles, belong to "
            "these genotypes."
        )
