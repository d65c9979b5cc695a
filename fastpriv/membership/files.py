"""Panels in files: .npy, .npz, CSV, PLINK .bed (through bed-reader) and VCF (through cyvcf2).

Genotypes of two copies of each chromosome are numbers of copies of an allele, 0, 1 or 2. An attribute of a panel is one
bit, so the caller says which allele counts and how copies become a bit. Files of genotypes are read in blocks of
attributes, which are packed at once.
"""

from __future__ import annotations

import csv
import gzip
import io
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .. import _validate
from .._files import atomic_write, read_npy_header, read_npz
from ..errors import BackendMissingError, DomainError
from ..numerics import FloatArray
from .panels import ByteArray, Panel

__all__ = ["read_panel", "write_panel"]

_ENDINGS = (".npy", ".npz", ".csv", ".csv.gz", ".bed", ".vcf", ".vcf.gz", ".bcf")  # of the files that are read
_CODINGS = ("binary", "carrier", "homozygous")  # how numbers of copies become a bit
_MISSING = ("raise", "drop_attributes", "as_zero")  # what becomes of missing genotypes
_MULTIALLELIC = ("raise", "drop", "any_alt")  # what becomes of sites with more than two alleles
_BLOCK_ATTRIBUTES = 1024  # read and packed together, a multiple of 8
_ABSENT = -1  # stands for a missing genotype in a block
_MISSING_CELLS = {"", "na", "nan", ".", "-9"}  # of a CSV, in lower case
_BED_MAGIC = b"\x6c\x1b\x01"  # the first bytes of a .bed with one block of bytes a SNP (PLINK 1.9, file formats)
_BED_PEOPLE = b"\x6c\x1b\x00"  # with one block of bytes a person, which PLINK wrote long ago
# The last bytes of a complete file in BGZF blocks: an empty block (SAM specification, section 4.1.2).
_BGZF_END = bytes.fromhex("1f8b08040000000000ff0600424302001b0003000000000000000000")
# An allele whose frequency is this far from that of the reference, and less than half as far with the other allele
# counted, was swapped: populations rarely differ so much, and an allele of frequency 1/2 tells nothing.
_FLIPPED_DISTANCE = 0.25
# Remedy where a reader is missing.
_EXTRA = "Install it with: pip install 'fastpriv[genotypes]'"


class _GenotypeBlock(NamedTuple):
    """Some attributes of all people."""

    copies: NDArray[np.int8]  # (K, width) copies of the counted allele, ``_ABSENT`` where they are missing
    homozygous: NDArray[np.bool_]  # (K, width) whether all copies are of the counted allele
    names: list[str]
    alleles: list[str]  # the counted ones, "" where the file names none
    others: list[str]  # the ones that are not counted
    frequency: FloatArray  # of the counted alleles among those known, NaN where none is


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
    file = _validate.path("path", path)
    ending = next((one for one in sorted(_ENDINGS, key=len, reverse=True) if file.name.lower().endswith(one)), None)
    if ending is None:
        raise DomainError(f"path must end in one of {', '.join(_ENDINGS)}; got {str(file)!r}. Convert the file.")
    if not file.is_file():
        fault = IsADirectoryError if file.is_dir() else FileNotFoundError
        raise fault(f"path must be an existing file; got {str(file)!r}. Check the path.")
    _validate.choice("missing", missing, _MISSING)
    _validate.choice("multiallelic", multiallelic, _MULTIALLELIC)
    with_alleles = ending in (".bed", ".vcf", ".vcf.gz", ".bcf")
    _check_allele_arguments(file, with_alleles, counted_allele, coding, reference)
    if ending == ".bed":
        people, blocks = _bed_blocks(file, counted_allele)
    elif with_alleles:
        people, blocks = _vcf_blocks(file, counted_allele, multiallelic)
    else:
        read = {".npy": _read_npy, ".npz": _read_npz}.get(ending, _read_csv)
        found = read(file, bitorder) if ending == ".npz" else read(file)  # type: ignore[operator]
        if isinstance(found, Panel):
            return found
        values, people, names = found
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
    file = _validate.path("path", path)
    _validate.instance("panel", panel, Panel)
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
            _validate.choice("coding", coding, _CODINGS)
        return
    if counted_allele is None:
        own = "'A1', 'A2'" if file.name.lower().endswith(".bed") else "'ref', 'alt'"
        raise DomainError(
            f"counted_allele must be given for a file of alleles; got None for {str(file)!r}. Choose {own}, 'minor', "
            "or name the allele of each SNP."
        )
    if coding not in _CODINGS[1:]:
        raise DomainError(
            f"coding must be carrier or homozygous for a file of genotypes; got {_validate.shown(coding)}. Carriers "
            "have at least one copy of the counted allele."
        )


def _packed(
    file: Path, people: list[str] | None, blocks: Iterator[_GenotypeBlock], coding: str, missing: str,
    reference: Mapping[str, tuple[str, float]] | None,
) -> Panel:  # fmt: skip
    """The panel of the attributes of all blocks; whole bytes are packed as soon as there are some."""
    chunks: list[ByteArray] = []
    rest: NDArray[np.bool_] | None = None  # columns that do not fill a byte yet
    names: list[str] = []
    compared = _ReferenceComparison(file, reference)
    for block in blocks:
        absent = block.copies == _ABSENT
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


class _ReferenceComparison:
    """Frequencies of counted alleles beside those of a reference, to find alleles that were swapped."""

    def __init__(self, file: Path, reference: Mapping[str, tuple[str, float]] | None) -> None:
        self.file, self.reference = file, reference
        self.compared = 0
        self.swapped: list[tuple[str, str, float, float]] = []
        if reference is not None and not isinstance(reference, Mapping):
            raise DomainError(
                f"reference must be a mapping from names to alleles and frequencies; got {_validate.shown(reference)}. "
                "Write {'rs1': ('A', 0.25)}."
            )

    def add(self, block: _GenotypeBlock) -> None:
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
            f"{_validate.shown(self.reference[name])} at {name!r}. Write {{'rs1': ('A', 0.25)}}."
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


def _read_npy(file: Path) -> tuple[NDArray[Any], None, None]:
    try:
        with open(file, "rb") as stream:
            header = read_npy_header(stream, file.stat().st_size)
            _validate.memory("path", header.entries * header.dtype.itemsize, "Pack the bits in blocks.")
            return header.array(bytearray(stream.read(header.entries * header.dtype.itemsize))), None, None
    except DomainError as fault:
        raise _damaged(file, fault) from None


def _read_npz(file: Path, bitorder: str | None) -> Any:
    def check_keys(keys: list[str]) -> None:
        if not ({"values"} <= set(keys) or ({"packed"} <= set(keys) and {"shape", "n_attributes"} & set(keys))):
            raise DomainError(
                f"path must be an archive with values, or with packed and n_attributes or shape; got {str(file)!r} "
                f"with {', '.join(keys)}. Write it with fastpriv.membership.write_panel."
            )

    try:
        arrays = read_npz(file, check_keys, "Read it on a machine with more memory.")
    except DomainError as fault:
        raise fault if str(fault).startswith("path must") else _damaged(file, fault) from None
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
    if _validate.choice("bitorder", order, ("little", "big")) == "big" and packed.dtype == np.uint8:
        packed = np.packbits(np.unpackbits(packed, axis=1, count=count), axis=1, bitorder="little")
    packed.setflags(write=False)
    return Panel.from_packed(packed, count, people=people, attributes=names)


def _read_csv(file: Path) -> tuple[NDArray[Any], list[str] | None, list[str] | None]:
    """The numbers of a table, with NaN for missing ones, and the names in it."""
    people: list[str] = []
    rows: list[NDArray[np.float32]] = []
    names: list[str] | None = None
    with gzip.open(file, "rt", encoding="utf-8-sig", newline="") if file.name.lower().endswith(".gz") else open(
        file, encoding="utf-8-sig", newline=""
    ) as stream:
        try:
            reader = csv.reader(stream, strict=True)
            first = next(reader, [])
            with_people = bool(first) and first[0].strip().lower() == "person"
            if not all(_is_number(cell) for cell in first) or with_people:
                names = [cell.strip() for cell in first[with_people:]]
                lines: Iterator[list[str]] = reader
            else:
                lines = iter([first, *reader])
            for cells in lines:
                if not cells:
                    continue
                row = cells[with_people:]
                if len(row) != len(first) - with_people:
                    raise DomainError(
                        f"path must be a table with rows of one length; got {len(cells)} cells in line "
                        f"{reader.line_num} of {str(file)!r} after {len(first)} in the first. Write it anew."
                    )
                people += cells[:with_people]
                rows.append(np.array([_number(file, cell, reader.line_num, j, names) for j, cell in enumerate(row)],
                                     dtype=np.float32))  # fmt: skip
        except (csv.Error, UnicodeDecodeError, EOFError, OSError) as fault:
            raise _damaged(file, fault) from None
    if not rows or not rows[0].size:
        raise DomainError(f"path must be a table with people and attributes; got {str(file)!r} without any. Fill it.")
    return np.stack(rows), people if with_people else None, names


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return cell.strip().lower() in _MISSING_CELLS
    return True


def _number(file: Path, cell: str, line: int, column: int, names: list[str] | None) -> float:
    if cell.strip().lower() in _MISSING_CELLS:
        return float("nan")
    try:
        return float(cell)
    except ValueError:
        name = str(column) if names is None else names[column]
        raise DomainError(
            f"path must be a table of numbers; got {_validate.shown(cell)} in line {line} of {str(file)!r} at "
            f"attribute {name!r}. Replace it by 0, 1 or 2."
        ) from None


def _matrix_blocks(
    file: Path, values: NDArray[Any], people: list[str] | None, names: list[str] | None, coding: str
) -> Iterator[_GenotypeBlock]:
    """Blocks of a matrix of numbers of copies."""
    if values.ndim != 2:
        raise DomainError(f"path must hold a matrix; got shape {values.shape} in {str(file)!r}. One row a person.")
    if values.dtype.kind not in "biuf":
        raise DomainError(f"path must hold numbers; got {values.dtype} in {str(file)!r}. Convert them.")
    most = 1 if coding == "binary" else 2
    labels_of_all = [str(j) for j in range(values.shape[1])] if names is None else names
    for start in range(0, values.shape[1], _BLOCK_ATTRIBUTES):
        part = values[:, start : start + _BLOCK_ATTRIBUTES]
        labels = labels_of_all[start : start + part.shape[1]]
        absent = np.isnan(part) if part.dtype.kind == "f" else np.zeros(part.shape, dtype=np.bool_)
        with np.errstate(invalid="ignore"):
            copies = np.where(absent, _ABSENT, part).astype(np.int8)
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
        yield _GenotypeBlock(copies, copies == 2, labels, none, none, np.full(part.shape[1], np.nan))


def _damaged(file: Path, fault: Exception) -> DomainError:
    reason = " ".join(str(fault).split()).rstrip(".") or type(fault).__name__
    return DomainError(f"path must be a whole file; got {str(file)!r}, in which {reason}. Write it anew.")


def _allele_choice(
    file: Path, counted: Any, words: tuple[str, str], first: Sequence[str], second: Sequence[str],
    names: Sequence[str], start: int, frequency: FloatArray,
) -> NDArray[np.bool_]:  # fmt: skip
    """Whether the second of two alleles is counted, for each attribute; ``frequency`` is that of the first."""
    if isinstance(counted, str):
        _validate.choice("counted_allele", counted, (*words, "minor"))
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
        given = _validate.sequence("counted_allele", counted, "alleles, one for each SNP")
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


def _counted(
    file: Path, copies: NDArray[np.int8], ploidy: Any, counted: Any, words: tuple[str, str], first: list[str],
    second: list[str], names: list[str], start: int,
) -> _GenotypeBlock:  # fmt: skip
    """A block of the alleles that are counted, from the copies of the first of the two, of ``ploidy`` in all."""
    known = copies != _ABSENT
    total = np.where(known, ploidy, 0).sum(axis=0)
    with np.errstate(invalid="ignore"):
        frequency = np.where(known, copies, 0).sum(axis=0) / total
    swap = _allele_choice(file, counted, words, first, second, names, start, frequency)
    copies = np.where(known & swap, ploidy - copies, copies).astype(np.int8)
    alleles = [two if other else one for one, two, other in zip(first, second, swap.tolist(), strict=True)]
    others = [one if other else two for one, two, other in zip(first, second, swap.tolist(), strict=True)]
    homozygous = known & (copies == ploidy) & (copies > 0)
    return _GenotypeBlock(copies, homozygous, names, alleles, others, np.where(swap, 1 - frequency, frequency))


def _bed_blocks(file: Path, counted: Any) -> tuple[list[str], Iterator[_GenotypeBlock]]:
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

    def blocks() -> Iterator[_GenotypeBlock]:
        with bed:
            for start in range(0, n_snps, _BLOCK_ATTRIBUTES):
                part = slice(start, min(start + _BLOCK_ATTRIBUTES, n_snps))
                copies = bed.read(np.s_[:, part], dtype="int8", order="C")
                copies[copies < 0] = _ABSENT
                names = [
                    name if name not in (".", "0", "") else f"{where}:{at}"
                    for name, where, at in zip(ids[part].tolist(), chromosome[part].tolist(), position[part].tolist(),
                                               strict=True)
                ]  # fmt: skip
                yield _counted(file, copies, np.int8(2), counted, ("A1", "A2"), first[part].tolist(),
                               second[part].tolist(), names, start)  # fmt: skip

    return people, blocks()


def _lines(file: Path) -> int:
    """Number of lines that are not empty at the end."""
    count, last = 0, b"\n"
    with open(file, "rb") as stream:
        while part := stream.read(2**20):
            count, last = count + part.count(b"\n"), part[-1:]
    return count + (last != b"\n")


def _vcf_blocks(file: Path, counted: Any, multiallelic: str) -> tuple[list[str], Iterator[_GenotypeBlock]]:
    """People and blocks of variant calls, which cyvcf2 reads one site at a time."""
    try:
        from cyvcf2 import VCF
    except ImportError:
        raise BackendMissingError(f"read_panel needs cyvcf2 for {str(file)!r}. {_EXTRA}") from None
    _check_end(file)
    try:
        calls = VCF(str(file))
    except Exception as fault:  # cyvcf2 raises plain exceptions
        raise _damaged(file, fault) from None
    people = list(calls.samples)
    if not people:
        raise DomainError(f"path must be a VCF with genotypes of people; got {str(file)!r} without any. Check it.")

    def blocks() -> Iterator[_GenotypeBlock]:
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
            if len(sites) == _BLOCK_ATTRIBUTES:
                yield block(sites, start)
                start, sites = start + len(sites), []
        if sites:
            yield block(sites, start)

    def block(sites: list[Any], start: int) -> _GenotypeBlock:
        copies, ploidy, names, ref, alt = zip(*sites, strict=True)
        return _counted(file, np.stack(copies, axis=1), np.stack(ploidy, axis=1), counted, ("alt", "ref"), list(alt),
                        list(ref), list(names), start)  # fmt: skip

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
            raise _damaged(file, DomainError(f"site {number} must be readable; got: {fault}")) from None
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
    return np.where(absent, _ABSENT, (alleles > 0).sum(axis=1)).astype(np.int8), ploidy.astype(np.int8)


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
