"""The compiled kernels land here (sources in csrc/)."""
