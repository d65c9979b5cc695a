from typing import Any

from . import matrix_product as matrix_product
from . import tail_products as tail_products

def __getattr__(name: str) -> Any: ...
