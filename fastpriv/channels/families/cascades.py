"""One channel behind another: Q[d, w] = sum_v A[d, v] B[v, w]."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ... import _validate
from ...errors import ShapeError
from ...kernels import _product
from ..base import AnyChannel
from ..dense import Channel

__all__ = ["cascade"]

_BLOCK = 2**20  # cells of the first channel written out at a time


def cascade(first: AnyChannel, post: Any) -> AnyChannel:
    """``first`` and then ``post``: a channel, a row-stochastic matrix or new labels."""
    if not isinstance(post, AnyChannel):
        given = _validate.array("post", post)
        if given.ndim == 1:
            return _relabelled(first, given)
        post = _validate.with_argument_name("matrix", "post", lambda: Channel(given))
    if post.inputs != first.outputs:
        raise ShapeError(
            f"post must take the {_validate.shown(first.outputs)} releases of the channel before it; got one of "
            f"{_validate.shown(post.inputs)} secrets. Pass one row a release."
        )
    closed = first._then(post)
    if closed is not None:
        return closed
    _fits(first.inputs * post.outputs + post.inputs * post.outputs)
    behind = np.ascontiguousarray(np.asarray(post.matrix(), dtype=np.float64).T)
    found = np.empty((first.inputs, post.outputs))
    step = max(1, _BLOCK // first.outputs)
    for start in range(0, first.inputs, step):
        found[start : start + step] = _product.product(first.rows(start, min(start + step, first.inputs)), behind)
    found.setflags(write=False)
    return Channel(found)


def _relabelled(first: AnyChannel, labels: NDArray[Any]) -> Channel:
    remedy = "Pass one natural number a release, or a matrix of two dimensions."
    if labels.size != first.outputs:
        raise ShapeError(
            f"post must have one label for each of the {_validate.shown(first.outputs)} releases; got {labels.size}. "
            f"{remedy}"
        )
    labels = _validate.integers("labels of post", labels, constraint="integers of at least 0", remedy=remedy)
    count = int(labels.max()) + 1
    _fits(first.inputs * count)
    order = np.argsort(labels, kind="stable")
    used, starts = np.unique(labels[order], return_index=True)
    found = np.zeros((first.inputs, count))
    step = max(1, _BLOCK // first.outputs)
    for start in range(0, first.inputs, step):
        block = first.rows(start, min(start + step, first.inputs))
        found[start : start + step, used] = np.add.reduceat(block[:, order], starts, axis=1, dtype=np.float64)
    found.setflags(write=False)
    return Channel(found)


def _fits(cells: int) -> None:
    _validate.memory("cascade", min(cells * 8, 2**1000), "Merge releases of the second step, or take fewer secrets.")
