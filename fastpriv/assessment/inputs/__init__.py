"""What an assessment reads: columns of numbers or categories, grids, and the law of the secret that they make."""
