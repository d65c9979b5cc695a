"""Names of any script and any character in pictures and tables: readable, and without a warning of anybody."""

import logging
import os
import subprocess
import sys
import warnings
from pathlib import Path

import pytest

import fastpriv
from fastpriv.base import escaping
from fastpriv.cli import main
from fastpriv.report import style

matplotlib = pytest.importorskip("matplotlib")

NAMES = [
    "北京市", "上海", "\N{GRINNING FACE} smile", "$a$", "cost $\\frac{", "\x07bell", "tab\tnew\nline", "_under",
    "x" * 300, "مرحبا", "שלום", "a\u200db", "\u202eevil", "日本語の長い長い長い長い名前", "é", "\ud800", "{}%&#^~",
    "a\\$b", "$",
]
WORDS = {"level": [0.5, 2.0], "epsilon": [0.1, 1.0, 2.0]}


@pytest.fixture
def silent(caplog):
    """Not a word of warning, by whatever way."""
    with warnings.catch_warnings(), caplog.at_level(logging.WARNING):
        warnings.simplefilter("error")
        yield
    assert not caplog.records


@pytest.fixture(scope="module")
def reports():
    return [
        fastpriv.assess(NAMES * 2, mechanism="rr", name="城市 $x^2$ \n\x1b[2J", source="файл $50 名.csv", **WORDS),
        fastpriv.assess([1.0, 2, 2, 5], sigma=[1, 10], epsilon=[0.1, 1.0], name="年龄 $a$ " * 30, source="数$" * 90),
        fastpriv.assess({"城市 $": NAMES, "_" * 90: ["a", "b"]}, mechanism=["rr", "exponential"], source="$", **WORDS),
        fastpriv.assess(NAMES[:4], mechanism=fastpriv.RandomizedResponse(4, 1.0), name="$通道$", epsilon=[0.1, 1.0]),
    ]


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["png", "svg", "pdf"])
@pytest.mark.parametrize("which", range(4))
def test_pictures_are_drawn_without_a_warning(reports, which, kind, tmp_path, silent):
    reports[which].to_figure(tmp_path / f"a.{kind}", dpi=40)
    assert (tmp_path / f"a.{kind}").stat().st_size > 1000


@pytest.mark.slow
@pytest.mark.parametrize("which", range(4))
def test_texts_stay_on_the_page(reports, which):
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    figure = reports[which].plot()
    FigureCanvasAgg(figure).draw()
    for text in [*figure.texts, *(text for ax in figure.axes for text in (*ax.texts, ax.xaxis.label))]:
        box = text.get_window_extent()
        assert figure.bbox.x0 <= box.x0 <= box.x1 <= figure.bbox.x1, text.get_text()


def drawn_text(text, *words):
    return style.label(text, None, *words)[0]


@pytest.mark.slow
def test_a_picture_shows_what_no_font_has(reports):
    ax = fastpriv.report.categories(reports[0])
    drawn = [text.get_text() for text in ax.texts]
    assert "$a$" in drawn
    assert r"\x07bell" in drawn
    assert r"tab\tnew\nline" in drawn
    assert "xxxxxxxxxxxxxxxx…xxxxxxx" in drawn
    assert "é" in [drawn_text("é"), *drawn]
    assert drawn_text("北京") == r"\u5317\u4eac"
    assert drawn_text("\ud800") == r"\ud800"
    assert drawn_text("\U000f0000", "bold") == r"\U000f0000"
    assert fastpriv.report.column(reports[1]).get_xlabel().startswith(r"\u5e74\u9f84 $a$ ")


def test_the_fonts_of_the_user_count():
    lacking = next(chr(c) for c in range(0x1D400, 0x1D800) if drawn_text(chr(c)).startswith("\\U"))
    with matplotlib.rc_context({"font.family": ["DejaVu Sans", "STIXGeneral", "No Such Font"]}):
        assert drawn_text(lacking) == lacking
    with matplotlib.rc_context({"font.family": ["No Such Font"]}):
        assert drawn_text("a北") == r"a\u5317"


def test_tables_show_no_control_characters(reports):
    text = reports[0].summary()
    assert r"What does one release of '城市 $x^2$ \n\x1b[2J' leak?" in text
    assert "\x1b" not in text
    assert max(map(len, reports[1].summary().splitlines())) <= 160
    assert "\x1b" not in reports[2].summary()
    assert escaping.printable("a\u00a0b\u3000c") == "a\u00a0b\u3000c"
    assert escaping.printable("\u202eevil\x00") == r"\u202eevil\x00"
    assert escaping.printable("北京市上海市", 8) == "北京…市"
    assert escaping.printable("abcdefgh", 8) == "abcdefgh"
    assert escaping.printable("abcdefghi", 8) == "abcde…hi"


@pytest.mark.slow
def test_the_command_prints_to_any_terminal(tmp_path):
    (tmp_path / "p.csv").write_text("城市\n北京\n上海\n", encoding="utf-8")
    home = str(Path(fastpriv.__file__).parents[1])
    words = ("--column", "城市", "--mechanism", "rr", "--epsilon", "1", "--curve", "1", "--figure-format", "none",
             "--format", "csv")
    done = subprocess.run(
        [sys.executable, "-m", "fastpriv", "assess", "p.csv", *words], cwd=tmp_path, capture_output=True, check=False,
        env=os.environ | {"PYTHONPATH": home, "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "1"},
    )
    assert done.returncode == 0
    assert rb"\u57ce\u5e02" in done.stdout


def test_matplotlib_is_quiet_in_the_command_alone(monkeypatch):
    logger = logging.getLogger("matplotlib")
    before = logger.level
    monkeypatch.setattr(sys, "argv", ["fastpriv", "info", "--json"])
    try:
        assert main(["info", "--json"]) == 0
        assert logger.level == before
        assert main() == 0
        assert logger.level == logging.ERROR
    finally:
        logger.setLevel(before)


def test_main_leaves_the_output_of_a_program_alone(capsys):
    before = sys.stdout.errors
    assert main(["info"]) == 0
    assert sys.stdout.errors == before
    assert "fastpriv" in capsys.readouterr().out
