"""The version of the package, which files that it writes say too."""

__all__ = ["VERSION"]

VERSION = "0.4.0"  # as in pyproject.toml, CITATION.cff and CHANGELOG.md
