"""Settings of the site that tools/site builds."""

import re
import warnings

import matplotlib
import numpy as np

import fastpriv

matplotlib.use("agg")
warnings.filterwarnings("ignore", message="FigureCanvasAgg is non-interactive")

project, author, copyright = "fastpriv", "The fastpriv developers", "2026, the fastpriv developers"
version = release = fastpriv.__version__
extensions = [
    "sphinx.ext.autodoc", "sphinx.ext.viewcode", "numpydoc", "myst_parser", "sphinx_gallery.gen_gallery",
]
exclude_patterns = ["gallery/*", "conf.py"]
source_suffix = {".rst": "restructuredtext", ".md": "markdown"}

myst_heading_anchors = 4
myst_links_external_new_tab = False
suppress_warnings = ["config.cache"]  # the functions below cannot be pickled

html_theme = "pydata_sphinx_theme"
html_title = "fastpriv"
toc_object_entries = False
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sourcelink = False
html_theme_options = {
    "navbar_align": "left", "show_toc_level": 2, "navigation_with_keys": False, "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"], "footer_end": [], "show_prev_next": False, "header_links_before_dropdown": 7,
}
html_sidebars = {"index": [], "errata": []}

autodoc_member_order = "bysource"
autodoc_typehints = "none"  # the tables of parameters have the types
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False

sphinx_gallery_conf = {
    "examples_dirs": "gallery", "gallery_dirs": "pictures", "filename_pattern": r"/plot_", "min_reported_time": 10,
    "download_all_examples": False, "show_memory": False, "show_signature": False, "abort_on_example_error": True,
    "image_scrapers": ("matplotlib",), "reset_modules": ("matplotlib",), "remove_config_comments": True,
    "within_subsection_order": "FileNameSortKey",
}

_CODE = re.compile(r"(``.+?``|`[^`]+`_*|:\w+:`[^`]+`|\*\*[^*]+\*\*)")
_MARKS = re.compile(r"\|(?=\S)|(?<=\S)\||(?<![\\*])\*(?=[^\s*])|(?<=\w)_(?![\w])")


def plain_text(app, what, name, obj, options, lines):
    """Docstrings use |x|, a*b and x_ as in mathematics: these are no marks of reStructuredText."""
    for i, line in enumerate(lines):
        if not line.lstrip().startswith((">>>", "...")):
            parts = _CODE.split(line)
            lines[i] = "".join(part if k % 2 else _MARKS.sub(r"\\\g<0>", part) for k, part in enumerate(parts))


def ufunc_signature(app, what, name, obj, options, signature, return_annotation):
    """The arguments of a ufunc by the names that its docstring gives them."""
    if isinstance(obj, np.ufunc):
        described = re.search(r"Parameters\n-+\n(.+?) :", obj.__doc__ or "")
        names = described[1].split(", ") if described else []
        if len(names) != obj.nin:
            names = [f"x{k + 1}" for k in range(obj.nin)]
        return f"({', '.join(names)}, /, out=None, where=True)", return_annotation
    return None


def setup(app):
    """Run before numpydoc, whose priority is the default one."""
    app.connect("autodoc-process-signature", ufunc_signature, priority=1)
    app.connect("autodoc-process-docstring", plain_text, priority=1)
