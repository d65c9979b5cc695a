from typing import Any

from . import matrix_product as matrix_product

def __getattr__(name: str) -> Any: ...
