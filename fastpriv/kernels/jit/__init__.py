"""Loops compiled around functions that the user wrote: the only place that imports numba, and only for a jitted one."""
