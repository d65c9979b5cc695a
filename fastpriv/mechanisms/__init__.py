"""Privacy mechanisms."""
