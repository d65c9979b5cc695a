"""Mixtures in d dimensions whose quantities are those of one-dimensional ones, found and computed with proved bounds."""
