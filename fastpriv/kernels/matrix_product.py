"""Products of matrices whose bits depend neither on threads nor on the machine."""

from ._matrix_product import matrix_vector, product

__all__ = ["matrix_vector", "product"]
