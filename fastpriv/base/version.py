"""The version of the package, which files that it writes say too."""

__all__ = ["VERSION"]

VERSION = "1.0.0"  # as in pyproject.toml, CITATION.cff and CHANGELOG.md
