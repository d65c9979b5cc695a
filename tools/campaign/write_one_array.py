"""Two threads write the same array by a kernel: a race that ThreadSanitizer must see, or its silence says nothing."""

import threading

import numpy as np

from fastpriv.kernels import _channel_blocks

ROWS, COLUMNS = 16, 1000
cells, posterior = np.full((ROWS, COLUMNS), 1.0 / COLUMNS), np.empty((ROWS, COLUMNS))
prior, release = np.full(ROWS, 1.0 / ROWS), cells[0].copy()


def write():
    """Write all posteriors, five times."""
    inverse, no_change = 1.0 / release, np.zeros(COLUMNS)
    for _ in range(5):
        _channel_blocks.row_statistics(cells, prior, release, no_change, inverse, release, None, posterior)


threads = [threading.Thread(target=write) for _ in range(2)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
