"""``fastpriv convert`` end to end, the generated page, and the map of conversions."""

import json
from pathlib import Path

import pytest

from fastpriv import conversions
from fastpriv.cli import main

ROOT = Path(__file__).parents[2]


def said(capsys, *words):
    assert main(["convert", *words]) == 0
    return capsys.readouterr().out


def test_one_conversion(capsys):
    text = said(capsys, "mbp", "--from", "ldp", "--epsilon", "1", "--pi-min", "0.01")
    assert text.startswith("LDP -> MBP: mbp_from_ldp(epsilon=1, pi_min=0.01)\n    xi <= 0.99365")
    assert "tight; proved" in text
    text = said(capsys, "mbp", "--from", "ldp", "--epsilon", "1", "--form", "as_published")
    assert 'mbp_from_ldp(epsilon=1, form="as_published")' in text
    assert "assumes: prior uniform" in text


def test_information_is_in_nats_unless_asked(capsys):
    words = ("dp", "--from", "ci_lmip", "--epsilon", "1")
    nats = said(capsys, *words, "--mu", "0.1")
    assert f"delta <= {conversions.dp_delta_from_ci_lmip(0.1, 1.0).upper!r}" in nats
    bits = said(capsys, *words, "--mu", "0.1", "--unit", "bits")
    assert f"delta <= {conversions.dp_delta_from_ci_lmip(0.1, 1.0, unit='bits').upper!r}" in bits
    assert said(capsys, "ci_lmip", "--from", "ldp", "--epsilon", "1").splitlines()[1].endswith(" nats")


def test_a_chain_says_each_step(capsys):
    text = said(capsys, "membership_advantage", "--from", "zcdp", "--rho", "0.1")
    assert [line for line in text.splitlines() if "->" in line] == [
        "zCDP -> KL: kl_from_zcdp(rho=0.1)",
        "KL -> total variation: total_variation_from_kl(kl=0.1)",
        next(line for line in text.splitlines() if line.startswith("total variation -> membership advantage")),
    ]


def test_json_has_every_number(capsys):
    words = ("ci_lmip", "--from", "ldp", "--epsilon", "0.5,1,inf", "--unit", "nats", "--json")
    document = json.loads(said(capsys, *words))
    exact = conversions.ci_lmip_from_ldp([0.5, 1.0, float("inf")], unit="nats")
    assert document["guarantee"] == exact.upper.tolist()
    assert document["steps"][0]["estimate"]["unit"] == "nats"
    assert document["holds"] is True


def test_lists(capsys):
    lines = said(capsys, "--list").splitlines()
    assert len(lines) == len(conversions.CONVERSIONS)
    assert any(line.split() == ["mbp", "->", "robustness", "robustness_from_mbp", "as_published,", "FALSE"]
               for line in lines)
    assert len(said(capsys, "gdp", "--from", "ldp", "--list").splitlines()) == 1
    rows = json.loads(said(capsys, "--list", "--json", "--from", "mbp"))
    assert {row["source"] for row in rows} == {"mbp"}


def test_the_page_is_current(capsys):
    text = said(capsys, "--list", "--markdown")
    assert (ROOT / "CONVERSIONS.md").read_text() == text, "run: fastpriv convert --list --markdown > CONVERSIONS.md"
    for arrow in conversions.CONVERSIONS:
        assert f"`{arrow.function}`" in text


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (("mbp", "--from", "ldp", "--epsilon", "one"), "--epsilon must be numbers separated by commas; got 'one'"),
        (("mbp", "--from", "ldp", "--epsilon", "-1"), "epsilon must be at least 0; got -1.0"),
        (("mbp", "--from", "ldp", "--epsilon", "nan"), "epsilon must be at least 0; got nan"),
        (("mbp", "--from", "ldp", "--rho", "1"), "values must be what a conversion from ldp to mbp takes; got rho"),
        (("mbp", "--from", "ldp"), "values must be given by name; got none"),
        (("mbp", "--from", "lpd", "--epsilon", "1"), "source must be one of ldp, dp"),
        (("mbp",), "TARGET and --from must be given"),
        (("--list", "--from", "lpd"), "source must be one of ldp, dp"),
        (("mbp", "--from", "ldp", "--epsilon", "1,2", "--pi-min", "0.1,0.2,0.3"), "pi_min must be of a shape that"),
    ],
)
def test_bad_input_is_one_line_and_code_2(capsys, words, text):
    assert main(["convert", *words]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.count("\n") == 1
    assert text in said.err


def test_unknown_options_are_code_2(capsys):
    with pytest.raises(SystemExit) as done:
        main(["convert", "mbp", "--from", "ldp", "--colour", "1"])
    assert done.value.code == 2
