"""Mixtures in d dimensions whose quantities are those of one-dimensional mixtures, with proved bounds."""
