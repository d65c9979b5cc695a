"""Real data that ships with the package."""
