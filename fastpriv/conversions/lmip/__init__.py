"""Local mutual-information privacy: to and from (epsilon, delta) privacy and LIP, single numbers and whole curves."""
