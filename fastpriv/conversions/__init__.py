"""Rules that convert one privacy notion into another."""
