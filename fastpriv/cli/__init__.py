"""The command line: one module a command, each with its options (``add_options``) and its run (``run``)."""

from .main import main

__all__ = ["main"]
