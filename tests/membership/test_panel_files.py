"""Panels in files: the allele that is counted, against files made byte by byte and the readers; damaged files."""

import gzip
import os
import subprocess
import sys
import textwrap

import numpy as np
import pytest

from fastpriv import DomainError
from fastpriv.errors import BackendMissingError
from fastpriv.studies.membership import Panel, read_panel, write_panel

LETTERS = {0: "00", 1: "10", 2: "11", -1: "01"}  # copies of A2 as the two bits of a genotype, high bit first


def write_bed(path, copies_a2, alleles=None, ids=None, people=None):
    """PLINK's format from its definition: 00 is two copies of A1, 11 of A2, 10 one of each, 01 missing."""
    n, m = copies_a2.shape
    data = bytearray(b"\x6c\x1b\x01")
    for j in range(m):
        for start in range(0, n, 4):
            pairs = [LETTERS[int(c)] for c in copies_a2[start : start + 4, j]]
            data.append(int("".join(reversed(pairs)), 2))
    path.write_bytes(data)
    alleles = alleles or [("A", "G")] * m
    ids = ids or [f"rs{j}" for j in range(m)]
    people = people or [f"p{k}" for k in range(n)]
    path.with_suffix(".bim").write_text(
        "".join(
            f"1\t{name}\t0\t{100 + j}\t{a}\t{b}\n" for j, (name, (a, b)) in enumerate(zip(ids, alleles, strict=True))
        )
    )
    path.with_suffix(".fam").write_text("".join(f"f\t{name}\t0\t0\t0\t-9\n" for name in people))
    return path


HEAD = """\
##fileformat=VCFv4.2
##contig=<ID=1>
##FORMAT=<ID=GT,Number=1,Type=String,Description="Genotype">
#CHROM\tPOS\tID\tREF\tALT\tQUAL\tFILTER\tINFO\tFORMAT"""


def vcf_text(people, sites):
    lines = ["\t".join([HEAD, *people])]
    for number, (name, ref, alt, genotypes) in enumerate(sites):
        lines.append("\t".join(["1", str(100 + number), name, ref, alt, ".", ".", ".", "GT", *genotypes]))
    return "\n".join(lines) + "\n"


@pytest.fixture
def genotypes():
    return np.random.default_rng(5).choice([0, 1, 2], size=(13, 2051), p=[0.5, 0.3, 0.2])


@pytest.fixture
def bed(tmp_path, genotypes):
    return write_bed(tmp_path / "a.bed", genotypes)


@pytest.mark.parametrize(("coding", "least"), [("carrier", 1), ("homozygous", 2)])
def test_a_bed_counts_the_allele_that_is_named(bed, genotypes, coding, least):
    second = read_panel(bed, counted_allele="A2", coding=coding)
    first = read_panel(bed, counted_allele="A1", coding=coding)
    np.testing.assert_array_equal(second.to_array(), genotypes >= least)
    np.testing.assert_array_equal(first.to_array(), 2 - genotypes >= least)
    assert second.people.tolist() == [f"p{k}" for k in range(13)]
    assert second.attributes[[0, 2050]].tolist() == ["rs0", "rs2050"]


def test_a_bed_agrees_with_the_reader_itself(bed):
    from bed_reader import open_bed

    for name, count_a1 in (("A1", True), ("A2", False)):
        with open_bed(bed, count_A1=count_a1) as reader:
            copies = reader.read(dtype="int8")
        np.testing.assert_array_equal(read_panel(bed, counted_allele=name, coding="carrier").to_array(), copies > 0)


@pytest.mark.slow
def test_a_bed_written_by_the_reader_comes_back(tmp_path, genotypes):
    from bed_reader import to_bed

    to_bed(tmp_path / "b.bed", genotypes.astype(np.int8), count_A1=True,
           properties={"allele_1": ["C"] * 2051, "allele_2": ["T"] * 2051})
    for counted in ("A1", ["C"] * 2051):
        panel = read_panel(tmp_path / "b.bed", counted_allele=counted, coding="homozygous")
        np.testing.assert_array_equal(panel.to_array(), genotypes == 2)


def test_the_minor_allele_is_the_rarer_one_and_a1_at_one_half(tmp_path):
    copies = np.array([[2, 0, 0, 2], [2, 0, 2, -1], [1, 1, 1, 0]])  # A2 has 5/6, 1/6, 1/2 and 1/2 of the known
    path = write_bed(tmp_path / "a.bed", copies)
    found = read_panel(path, counted_allele="minor", coding="carrier", missing="as_zero").to_array()
    np.testing.assert_array_equal(found[:, :3], np.array([[0, 0, 1], [0, 0, 0], [1, 1, 1]], dtype=bool))
    np.testing.assert_array_equal(found[:, 3], [False, False, True])


def test_alleles_named_for_each_snp(tmp_path, genotypes):
    few = genotypes[:, :3]
    path = write_bed(tmp_path / "a.bed", few, [("A", "G"), ("C", "T"), ("G", "A")])
    expected = np.stack([few[:, 0] > 0, few[:, 1] < 2, few[:, 2] > 0], axis=1)
    for counted in (["G", "C", "A"], {"rs0": "G", "rs1": "C", "rs2": "A", "other": "T"}):
        found = read_panel(path, counted_allele=counted, coding="carrier")
        np.testing.assert_array_equal(found.to_array(), expected)
    with pytest.raises(DomainError, match=r"counted_allele must be an allele of its SNP; got 'T' at 'rs0', which has"):
        read_panel(path, counted_allele=["T", "C", "A"], coding="carrier")
    with pytest.raises(DomainError, match="counted_allele must name the allele of every SNP; got none for 'rs2' of"):
        read_panel(path, counted_allele={"rs0": "G", "rs1": "C"}, coding="carrier")
    with pytest.raises(DomainError, match="counted_allele must name the allele of every SNP; got 2 for more in"):
        read_panel(path, counted_allele=["G", "C"], coding="carrier")
    with pytest.raises(DomainError, match="counted_allele must be one of A1, A2, minor; got 'a3'"):
        read_panel(path, counted_allele="a3", coding="carrier")


def test_the_allele_and_the_coding_are_never_inferred(bed, tmp_path):
    with pytest.raises(DomainError, match=r"counted_allele must be given for a file of alleles; got None for .*'A1', "):
        read_panel(bed, coding="carrier")
    with pytest.raises(DomainError, match="coding must be carrier or homozygous for a file of genotypes; got None"):
        read_panel(bed, counted_allele="A1")
    np.save(tmp_path / "a.npy", np.eye(3))
    with pytest.raises(DomainError, match="counted_allele must be left out for a file that names no alleles; got"):
        read_panel(tmp_path / "a.npy", counted_allele="A1")
    with pytest.raises(DomainError, match="reference must be left out for a file that names no alleles; got"):
        read_panel(tmp_path / "a.npy", reference={})
    with pytest.raises(DomainError, match="coding must be one of binary, carrier, homozygous; got 'x'"):
        read_panel(tmp_path / "a.npy", coding="x")


@pytest.mark.parametrize("size", [1, 3, 4, 5, 8])
def test_missing_genotypes(tmp_path, size):
    copies = np.random.default_rng(size).choice([0, 1, 2, -1], size=(size, 40), p=[0.4, 0.3, 0.2, 0.1])
    copies[0, 17] = -1
    path = write_bed(tmp_path / "a.bed", copies)
    words = {"counted_allele": "A2", "coding": "homozygous"}
    whole = ~(copies == -1).any(axis=0)
    dropped = read_panel(path, **words, missing="drop_attributes")
    np.testing.assert_array_equal(dropped.to_array(), (copies == 2)[:, whole])
    assert dropped.attributes.tolist() == [f"rs{j}" for j in np.flatnonzero(whole)]
    np.testing.assert_array_equal(read_panel(path, **words, missing="as_zero").to_array(), copies == 2)
    carriers = read_panel(path, counted_allele="A1", coding="carrier", missing="as_zero").to_array()
    np.testing.assert_array_equal(carriers, (copies == 0) | (copies == 1))
    with pytest.raises(DomainError, match="path must be a file without missing genotypes; got .* person 'p0' at 'rs"):
        read_panel(path, **words)
    with pytest.raises(DomainError, match="missing must be one of raise, drop_attributes, as_zero; got 'zero'"):
        read_panel(path, **words, missing="zero")


def test_nothing_left_is_an_error(tmp_path):
    path = write_bed(tmp_path / "a.bed", np.array([[-1]]))
    with pytest.raises(DomainError, match="path must be a file with at least one attribute that is kept; got"):
        read_panel(path, counted_allele="A1", coding="carrier", missing="drop_attributes")


def test_damaged_beds(bed, tmp_path):
    words = {"counted_allele": "A1", "coding": "carrier"}
    data = bed.read_bytes()
    bed.write_bytes(data[:-1])
    with pytest.raises(DomainError, match="path must be a .bed that agrees with its .bim and .fam; got .*8206 bytes w"):
        read_panel(bed, **words)
    bed.write_bytes(data[:-4])
    with pytest.raises(DomainError, match="2050 SNPs where the .bim has 2051. It was cut, or the .bim or .fam is that"):
        read_panel(bed, **words)
    bed.write_bytes(b"\x6c\x1b\x00" + data[3:])
    with pytest.raises(DomainError, match="path must be a .bed with SNPs in order; got .* which has people in order"):
        read_panel(bed, **words)
    bed.write_bytes(b"PK\x03" + data[3:])
    with pytest.raises(DomainError, match="path must be a PLINK .bed file, which begins with bytes 6c 1b 01; got 50 4"):
        read_panel(bed, **words)
    bed.write_bytes(b"")
    with pytest.raises(DomainError, match="path must be a PLINK .bed file"):
        read_panel(bed, **words)
    bed.write_bytes(data)
    bed.with_suffix(".fam").unlink()
    with pytest.raises(FileNotFoundError, match=r"path must have its \.fam beside it; got .*a\.bed"):
        read_panel(bed, **words)


def test_a_bim_of_another_file_is_an_error(bed, tmp_path):
    bim = bed.with_suffix(".bim")
    bim.write_text("".join(bim.read_text().splitlines(keepends=True)[:-1]))
    with pytest.raises(DomainError, match="2051 SNPs where the .bim has 2050"):
        read_panel(bed, counted_allele="A1", coding="carrier")


def test_a_bim_with_swapped_alleles_is_found_by_a_reference(tmp_path):
    rng = np.random.default_rng(1)
    frequency = rng.uniform(0.05, 0.3, 30)
    copies = rng.binomial(2, frequency, size=(200, 30))
    path = write_bed(tmp_path / "a.bed", copies)
    words = {"counted_allele": "A1", "coding": "carrier"}
    reference = {f"rs{j}": ("G", float(f)) for j, f in enumerate(frequency)} | {"elsewhere": ("A", 0.5)}
    panel = read_panel(path, **words, reference=reference)
    bim = path.with_suffix(".bim")
    lines = bim.read_text()
    one = lines.splitlines(keepends=True)
    one[7] = one[7].replace("A\tG", "G\tA")
    bim.write_text("".join(one))
    said = r"path must be a file whose alleles are those of the reference; got .* at 'rs7' has .*\(1 of 30 SNPs fit"
    with pytest.raises(DomainError, match=said):
        read_panel(path, **words, reference=reference)
    bim.write_text(lines.replace("A\tG", "G\tA"))
    with pytest.raises(DomainError, match=r"\(\d+ of 30 SNPs fit with their alleles swapped\)"):
        read_panel(path, **words, reference=reference)
    assert panel != read_panel(path, counted_allele=["A"] * 30, coding="carrier"), "silent without a reference"
    bim.write_text(lines.replace("A\tG", "C\tT"))
    with pytest.raises(DomainError, match="reference must name an allele of each SNP of the file; got 'G' at 'rs0', w"):
        read_panel(path, **words, reference=reference)
    bim.write_text(lines)
    with pytest.raises(DomainError, match="reference must know SNPs of the file; got none of those in"):
        read_panel(path, **words, reference={"rs99": ("A", 0.5)})
    with pytest.raises(DomainError, match="reference must hold an allele and its frequency between 0 and 1; got"):
        read_panel(path, **words, reference={"rs1": ("A", 1.5)})
    with pytest.raises(DomainError, match="reference must be a mapping from names to alleles and frequencies; got"):
        read_panel(path, **words, reference=[0.5])


def test_people_of_several_families_and_snps_without_names(tmp_path):
    path = write_bed(tmp_path / "a.bed", np.array([[0, 1], [1, 2]]), ids=[".", "rs1"], people=["a", "a"])
    path.with_suffix(".fam").write_text("f a 0 0 0 -9\ng a 0 0 0 -9\n")
    panel = read_panel(path, counted_allele="A2", coding="carrier")
    assert panel.people.tolist() == ["f:a", "g:a"]
    assert panel.attributes.tolist() == ["1:100", "rs1"]


SITES = [
    ("rs1", "A", "G", ["0/1", "1|1", "0/0", "0|0"]),
    (".", "C", "T", ["1/1", "1/0", "1", "1/1"]),
    ("rs3", "C", ".", ["0/0", "0/0", "0/0", "0/0"]),
]
PEOPLE = ["a", "b", "c", "d"]


def test_vcf_counts_the_allele_that_is_named(tmp_path):
    path = tmp_path / "a.vcf"
    path.write_text(vcf_text(PEOPLE, SITES))
    bits = {
        ("alt", "carrier"): [[1, 1, 0], [1, 1, 0], [0, 1, 0], [0, 1, 0]],
        ("alt", "homozygous"): [[0, 1, 0], [1, 0, 0], [0, 1, 0], [0, 1, 0]],
        ("ref", "carrier"): [[1, 0, 1], [0, 1, 1], [1, 0, 1], [1, 0, 1]],
        ("ref", "homozygous"): [[0, 0, 1], [0, 0, 1], [1, 0, 1], [1, 0, 1]],
        ("minor", "carrier"): [[1, 0, 0], [1, 1, 0], [0, 0, 0], [0, 0, 0]],
    }
    for (counted, coding), expected in bits.items():
        panel = read_panel(path, counted_allele=counted, coding=coding)
        np.testing.assert_array_equal(panel.to_array(), np.array(expected, dtype=bool), err_msg=f"{counted} {coding}")
    assert panel.people.tolist() == PEOPLE
    assert panel.attributes.tolist() == ["rs1", "1:101", "rs3"]


@pytest.mark.slow
def test_vcf_agrees_with_the_reader_itself(tmp_path):
    from cyvcf2 import VCF

    rng = np.random.default_rng(3)
    words = np.array(["0/0", "0|1", "1/0", "1|1"])
    people = [f"p{k}" for k in range(30)]
    sites = [(f"rs{j}", "A", "G", words[rng.integers(0, 4, 30)].tolist()) for j in range(1100)]
    path = tmp_path / "a.vcf.gz"
    path.write_bytes(gzip.compress(vcf_text(people, sites).encode()))
    copies = np.stack([site.gt_types.copy() for site in VCF(str(path), gts012=True)], axis=1)  # 0, 1, 2 of alt
    for counted, expected in (("alt", copies), ("ref", 2 - copies)):
        found = read_panel(path, counted_allele=counted, coding="carrier")
        np.testing.assert_array_equal(found.to_array(), expected > 0)


def test_sites_of_many_alleles(tmp_path):
    path = tmp_path / "a.vcf"
    path.write_text(vcf_text(PEOPLE, [*SITES, ("rs4", "A", "C,G", ["0/2", "1/2", "0/0", "2/2"])]))
    words = {"counted_allele": "alt", "coding": "homozygous"}
    with pytest.raises(DomainError, match="path must be a VCF of sites with two alleles; got .* A and C, G at 'rs4'"):
        read_panel(path, **words)
    assert read_panel(path, **words, multiallelic="drop").n_attributes == 3
    found = read_panel(path, **words, multiallelic="any_alt")
    assert found.to_array()[:, 3].tolist() == [False, True, False, True]
    with pytest.raises(DomainError, match="multiallelic must be one of raise, drop, any_alt; got 'split'"):
        read_panel(path, **words, multiallelic="split")


def test_missing_calls_of_a_vcf(tmp_path):
    path = tmp_path / "a.vcf"
    path.write_text(vcf_text(PEOPLE, [*SITES, ("rs4", "A", "C", ["./.", "./1", "1/1", "."])]))
    words = {"counted_allele": "alt", "coding": "carrier"}
    with pytest.raises(DomainError, match="lacks that of person 'a' at 'rs4'"):
        read_panel(path, **words)
    assert read_panel(path, **words, missing="drop_attributes").n_attributes == 3
    assert read_panel(path, **words, missing="as_zero").to_array()[:, 3].tolist() == [False, False, True, False]


def test_vcf_without_people_or_genotypes(tmp_path):
    path = tmp_path / "a.vcf"
    path.write_text(HEAD.rpartition("\t")[0] + "\n1\t5\trs\tA\tG\t.\t.\t.\n")
    with pytest.raises(DomainError, match="path must be a VCF with genotypes of people; got .* without any"):
        read_panel(path, counted_allele="alt", coding="carrier")
    text = vcf_text(PEOPLE, [("rs1", "A", "G", ["5"] * 4)]).replace("\tGT\t", "\tDP\t")
    path.write_text(text.replace("##contig", '##FORMAT=<ID=DP,Number=1,Type=Integer,Description="x">\n##contig'))
    with pytest.raises(DomainError, match="path must be a VCF with genotypes, GT; got .* without them at site 0"):
        read_panel(path, counted_allele="alt", coding="carrier")


@pytest.mark.parametrize("ending", [".vcf", ".vcf.gz"])
def test_vcf_that_was_cut(tmp_path, ending):
    path = tmp_path / f"a{ending}"
    data = vcf_text(PEOPLE, SITES).encode()
    data = gzip.compress(data) if ending == ".vcf.gz" else data
    path.write_bytes(data[:-3])
    with pytest.raises(DomainError, match="path must be a whole file; got .*, which was cut before its end. Copy it"):
        read_panel(path, counted_allele="alt", coding="carrier")


def test_vcf_in_blocks_that_was_cut(tmp_path):
    import struct
    import zlib

    def blocked(data):
        packer = zlib.compressobj(9, zlib.DEFLATED, -15)
        packed = packer.compress(data) + packer.flush()
        head = struct.pack("<4BI2BH2BHH", 31, 139, 8, 4, 0, 0, 255, 6, 66, 67, 2, len(packed) + 25)
        return head + packed + struct.pack("<II", zlib.crc32(data), len(data))

    path, data = tmp_path / "a.vcf.gz", vcf_text(PEOPLE, SITES).encode()
    path.write_bytes(blocked(data) + blocked(b""))
    assert read_panel(path, counted_allele="alt", coding="carrier").n_attributes == 3
    path.write_bytes(blocked(data))
    with pytest.raises(DomainError, match="which was cut before its end"):
        read_panel(path, counted_allele="alt", coding="carrier")


def test_vcf_that_is_none(tmp_path):
    path = tmp_path / "a.vcf"
    path.write_text("hello\n")
    with pytest.raises(DomainError, match="path must be a whole file; got .*a.vcf.*in which .*not valid bcf or vcf"):
        read_panel(path, counted_allele="alt", coding="carrier")


LAST = "1\t400\trs9\tA\tG\t.\t.\t.\tGT\t0/0\t0/1\t1/1\t0/0"


@pytest.mark.parametrize("contig", [True, False])
@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("\t0/0\t0/1\t1/1\t0/0", "\t0/0", "line 8 must be a record of 13 columns, as many as the header; got 10"),
        (LAST, "02\t.\tA\tG", "line 8 must be a record of 13 columns, as many as the header; got 4"),
        (LAST, "", "line 8 must be a record of 13 columns, as many as the header; got 1"),
        ("1\t400", "\t400", "line 8 must be a record with an entry in each column; got none in column 1"),
        ("1\t400", "a b\t400", "line 8 must be a record that begins with a chromosome; got 'a b'"),
        ("400", "4e2", "line 8 must be a record with a position in its second column; got '4e2'"),
        ("400", "99999999999", "line 8 must be a record with a position in its second column; got '99999999999'"),
        ("GT", ":GT", "line 8 must be a record with names between colons as its FORMAT; got ':GT'"),
        ("rs9", "r\0", "line 8 must be text; got a byte 0"),
        ("rs9", "\xe9", "line 8 must be in UTF-8; got .*invalid continuation byte"),
        ("0/1", "/1", "site 3 must be readable; got"),
        ("0/1", "0/x", "site 3 must be readable; got"),
        ("0/1", "0/7", "site 3 must have genotypes of its 2 alleles; got allele 7"),
    ],
)
def test_a_record_of_a_vcf_that_is_damaged(tmp_path, old, new, said, contig):
    path = tmp_path / "a.vcf"
    text = vcf_text(PEOPLE, SITES) + LAST.replace(old, new) + "\n"
    path.write_bytes((text if contig else text.replace("##contig=<ID=1>", "##other=1")).encode("latin-1"))
    with pytest.raises(DomainError, match=f"path must be a whole file; got .*a.vcf.*in which {said}.*Write it anew"):
        read_panel(path, counted_allele="alt", coding="carrier")


@pytest.mark.parametrize("ending", [".fam", ".bim"])
def test_lines_beside_a_bed_that_are_damaged(bed, ending):
    table = bed.with_suffix(ending)
    lines = table.read_bytes().splitlines(keepends=True)
    for line, said in (
        (b"f p1\n", "line 2 must have 6 entries; got 2"), (b"\n", "line 2 must have 6 entries; got 0"),
        (lines[1].replace(b"1", b"\xe9"), "line 2 must be in UTF-8; got"),
    ):
        table.write_bytes(b"".join([lines[0], line, *lines[2:]]))
        with pytest.raises(
            DomainError, match=rf"path must be a whole file; got .*a\{ending}.*in which {said}.*Write it"
        ):
            read_panel(bed, counted_allele="A1", coding="carrier")
    table.write_bytes(b"")
    with pytest.raises(DomainError, match=rf"path must have a \{ending} with at least one line; got .* without any"):
        read_panel(bed, counted_allele="A1", coding="carrier")


def test_names_beside_a_bed_are_not_comments(tmp_path):
    path = write_bed(tmp_path / "a.bed", np.array([[0, 1], [1, 2]]), ids=["rs#1", "rs2"], people=["a#1", "b"])
    panel = read_panel(path, counted_allele="A2", coding="carrier")
    assert (panel.people.tolist(), panel.attributes.tolist()) == (["a#1", "b"], ["rs#1", "rs2"])


def test_a_bcf_without_check_sums(tmp_path):
    path = tmp_path / "a.bcf"
    path.write_bytes(b"BCF\x02\x02")
    with pytest.raises(DomainError, match="path must be a .bcf in compressed blocks, which have check sums; got"):
        read_panel(path, counted_allele="alt", coding="carrier")


READ = """
import sys, warnings
from fastpriv import DomainError
from fastpriv.studies.membership import read_panel
warnings.simplefilter("error")
for path in sys.argv[1:]:
    print(path, flush=True)
    alleles = {"counted_allele": "A1" if path.endswith("bed") else "alt", "coding": "carrier"}
    try:
        read_panel(path, missing="as_zero", **({} if ".csv" in path else alleles))
    except DomainError as error:
        assert any(part in str(error) for part in (" must be ", " must have ", " must name ")), error
"""


@pytest.mark.slow
@pytest.mark.parametrize("kind", [".vcf", ".vcf.gz", ".csv.gz", ".bed", ".bim", ".fam"])
def test_files_damaged_at_random_end_in_a_sentence(tmp_path, kind):
    rng = np.random.default_rng(list(kind.encode()))
    text = vcf_text(PEOPLE, SITES).replace("##contig=<ID=1>\n", "").encode()
    csv = b"person,rs1,rs2\na,0,1\nb,1,0\n"
    paths = []
    for number in range(300):
        path = tmp_path / f"{number}{kind}"
        if kind in (".bed", ".bim", ".fam"):
            write_bed(path.with_suffix(".bed"), np.array([[0, 1, 2], [1, 2, 0], [0, 0, 1]]))
            data = bytearray(path.read_bytes())
        else:
            data = bytearray(csv if kind == ".csv.gz" else text)
            data = bytearray(gzip.compress(data)) if kind.endswith(".gz") else data
        for _ in range(rng.integers(1, 4)):
            at = int(rng.integers(len(data)))
            change = rng.integers(4)
            if change == 0:
                data[at] = int(rng.integers(256))
            elif change == 1:
                del data[at : at + int(rng.choice([1, 3, 20]))]
            else:
                data[at:at] = [b"\t", b"\n", b"\0", b"/", b":", b"9" * 20, b"\xe9"][rng.integers(7)]
            data = data or bytearray(b"\n")
        path.write_bytes(data if kind != ".vcf" or data.endswith(b"\n") else data + b"\n")
        paths.append(str(path.with_suffix(".bed") if kind in (".bim", ".fam") else path))
    done = subprocess.run([sys.executable, "-c", READ, *paths], capture_output=True, text=True, check=False)
    assert done.returncode == 0, (done.returncode, done.stdout.splitlines()[-1:], done.stderr[-1000:])


def test_numpy_files(tmp_path, genotypes):
    np.save(tmp_path / "a.npy", genotypes)
    np.testing.assert_array_equal(read_panel(tmp_path / "a.npy", coding="carrier").to_array(), genotypes > 0)
    np.testing.assert_array_equal(read_panel(tmp_path / "a.npy", coding="homozygous").to_array(), genotypes == 2)
    with pytest.raises(DomainError, match=r"values must be binary, 0 or 1; got 2 for person \d+ at attribute \d+"):
        read_panel(tmp_path / "a.npy")
    np.save(tmp_path / "b.npy", genotypes == 1)
    np.testing.assert_array_equal(read_panel(tmp_path / "b.npy").to_array(), genotypes == 1)
    (tmp_path / "b.npy").write_bytes((tmp_path / "b.npy").read_bytes()[:-1])
    with pytest.raises(DomainError, match="path must be a whole file; got .*b.npy.* must hold all entries that its he"):
        read_panel(tmp_path / "b.npy")
    np.save(tmp_path / "c.npy", np.array([["0"]]))
    with pytest.raises(DomainError, match="path must hold numbers; got <U1 in"):
        read_panel(tmp_path / "c.npy")
    np.save(tmp_path / "d.npy", np.zeros(3))
    with pytest.raises(DomainError, match=r"path must hold a matrix; got shape \(3,\) in"):
        read_panel(tmp_path / "d.npy")
    np.save(tmp_path / "e.npy", np.array([[0.0, np.nan], [1.0, 1.0]]))
    assert read_panel(tmp_path / "e.npy", missing="drop_attributes").to_array().tolist() == [[False], [True]]
    np.save(tmp_path / "f.npy", np.array([[0.0, 0.5]]))
    with pytest.raises(DomainError, match="path must be a file of 0 and 1; got 0.5 for person '0' at attribute '1' of"):
        read_panel(tmp_path / "f.npy")
    with pytest.raises(DomainError, match="path must be a file of 0, 1 and 2; got 0.5 for person '0' at attribute '1'"):
        read_panel(tmp_path / "f.npy", coding="carrier")


def test_packed_archives(tmp_path):
    values = np.random.default_rng(2).random((5, 19)) < 0.5
    panel = Panel(values, people=list("abcde"), attributes=[f"s{j}" for j in range(19)])
    write_panel(tmp_path / "a.npz", panel)
    assert read_panel(tmp_path / "a.npz") == panel
    np.savez(tmp_path / "b.npz", packed=np.packbits(values, axis=1), shape=values.shape)
    with pytest.raises(DomainError, match="bitorder must be given for a file that does not say it; got None for"):
        read_panel(tmp_path / "b.npz")
    np.testing.assert_array_equal(read_panel(tmp_path / "b.npz", bitorder="big").to_array(), values)
    np.savez(tmp_path / "c.npz", values=values, people=np.array(list("abcde")))
    assert read_panel(tmp_path / "c.npz") == Panel(values, people=list("abcde"))
    np.savez(tmp_path / "d.npz", matrix=values)
    with pytest.raises(DomainError, match="path must be an archive with values, or with packed and n_attributes or sh"):
        read_panel(tmp_path / "d.npz")
    (tmp_path / "a.npz").write_bytes((tmp_path / "a.npz").read_bytes()[:-40])
    with pytest.raises(DomainError, match="path must be a whole file; got .*a.npz"):
        read_panel(tmp_path / "a.npz")
    with pytest.raises(DomainError, match=r"path must end in \.npz for a panel; got .*a\.csv"):
        write_panel(tmp_path / "a.csv", panel)


def test_tables(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("person,rs1,rs2\na,0,1\nb,1,0\n")
    assert read_panel(path) == Panel([[0, 1], [1, 0]], people=["a", "b"], attributes=["rs1", "rs2"])
    (tmp_path / "b.csv.gz").write_bytes(gzip.compress(b"rs1,rs2\n0,2\n1,0\n"))
    found = read_panel(tmp_path / "b.csv.gz", coding="homozygous")
    assert found == Panel([[0, 1], [0, 0]], attributes=["rs1", "rs2"])
    path.write_text("0,1\n1,1\n")
    assert read_panel(path).to_array().tolist() == [[False, True], [True, True]]
    path.write_text("NA,1\n1,1\n")
    assert read_panel(path, missing="as_zero").to_array().tolist() == [[False, True], [True, True]]
    path.write_text("rs1,rs2\n0,NA\n1,1\n")
    assert read_panel(path, missing="as_zero").to_array().tolist() == [[False, False], [True, True]]
    with pytest.raises(DomainError, match="lacks that of person '0' at 'rs2'"):
        read_panel(path)
    path.write_text("rs1,rs2\n0,x\n")
    with pytest.raises(DomainError, match="path must be a table of numbers; got 'x' in line 2 of .* at attribute 'rs2"):
        read_panel(path)
    path.write_text("rs1,rs2\n0\n")
    with pytest.raises(DomainError, match="line 2 must"):
        read_panel(path)
    path.write_text("rs1,rs2\n")
    with pytest.raises(DomainError, match="path must be a table with people and attributes; got .* without any"):
        read_panel(path)
    path.write_bytes(b"rs1\n\xff\xfe\n")
    with pytest.raises(DomainError, match="file must be text in UTF-8; got"):
        read_panel(path)
    (tmp_path / "b.csv.gz").write_bytes(gzip.compress(b"rs1,rs2\n0,2\n1,0\n")[:-9])
    with pytest.raises(DomainError, match="file must be packed without damage; got .*b.csv.gz"):
        read_panel(tmp_path / "b.csv.gz", coding="carrier")


def test_other_paths(tmp_path):
    with pytest.raises(DomainError, match=r"path must end in one of \.npy, .*; got .*a\.txt"):
        read_panel(tmp_path / "a.txt")
    with pytest.raises(FileNotFoundError, match="path must be an existing file; got"):
        read_panel(tmp_path / "a.npy")
    (tmp_path / "d.bed").mkdir()
    with pytest.raises(IsADirectoryError, match="path must be an existing file; got"):
        read_panel(tmp_path / "d.bed", counted_allele="A1", coding="carrier")


def test_readers_that_are_not_installed(bed, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "bed_reader", None)
    monkeypatch.setitem(sys.modules, "cyvcf2", None)
    with pytest.raises(BackendMissingError, match=r"read_panel needs bed-reader for .*pip install 'fastpriv\[genotype"):
        read_panel(bed, counted_allele="A1", coding="carrier")
    (tmp_path / "a.vcf").write_text(vcf_text(PEOPLE, SITES))
    with pytest.raises(BackendMissingError, match=r"read_panel needs cyvcf2 for .*pip install 'fastpriv\[genotypes"):
        read_panel(tmp_path / "a.vcf", counted_allele="alt", coding="carrier")


@pytest.mark.slow
@pytest.mark.skipif(not os.path.exists("/proc/self/status"), reason="memory is read from /proc")
def test_a_million_snps_of_many_people_fit_in_a_gigabyte(tmp_path):
    program = textwrap.dedent(f"""
        import re
        import numpy as np
        from fastpriv.studies.membership import read_panel
        n, m = 2500, 1_000_000
        path = {str(tmp_path)!r} + "/a"
        block = np.random.default_rng(1).integers(0, 256, n // 4 * 1000, dtype=np.uint8)
        block[np.isin(block & 3, 1)] = 0
        for shift in (2, 4, 6):
            block[(block >> shift & 3) == 1] = 0
        with open(path + ".bed", "wb") as stream:
            stream.write(b"\\x6c\\x1b\\x01")
            for _ in range(m // 1000):
                stream.write(block.tobytes())
        with open(path + ".bim", "w") as stream:
            stream.writelines(f"1\\trs{{j}}\\t0\\t{{j}}\\tA\\tG\\n" for j in range(m))
        with open(path + ".fam", "w") as stream:
            stream.writelines(f"f\\tp{{k}}\\t0\\t0\\t0\\t-9\\n" for k in range(n))
        panel = read_panel(path + ".bed", counted_allele="A1", coding="carrier")
        assert panel.packed.shape == (n, m // 8)
        np.testing.assert_array_equal(panel.packed[:, :125], panel.packed[:, -125:])
        # getrusage would count the process that started this one, too
        print(int(re.search(r"VmHWM:\\s*(\\d+)", open("/proc/self/status").read())[1]) / 1024)
    """)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    assert float(done.stdout) < 1000, f"{done.stdout} MiB"
