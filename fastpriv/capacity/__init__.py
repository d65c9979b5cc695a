"""Channel capacities."""
