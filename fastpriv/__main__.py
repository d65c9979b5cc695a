"""``python -m fastpriv`` is the command ``fastpriv``."""

import sys

from .cli import main

if __name__ == "__main__":
    sys.exit(main())
