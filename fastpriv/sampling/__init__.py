"""Estimation by sampling: points, proposals, the engine, intervals."""
