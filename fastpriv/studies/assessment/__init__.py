"""From a column of data to a table of what its noisy release leaks, with bounds."""
