"""Sums of blocks, merged by one fixed binary tree, whoever computed them.

Node (k, i) holds the sums of the blocks from 2^k i to 2^k (i + 1) - 1. It is the merger of nodes (k - 1, 2 i) and
(k - 1, 2 i + 1), so that the sums of all blocks have the same bits, however the blocks were cut into shards; a shard of
n blocks is sent as 2 log2(n) nodes at most. The last blocks, which fill no node, are merged from left to right.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import reduce
from typing import Any, NamedTuple

__all__ = ["BlockTree", "Node"]


class Node(NamedTuple):
    """The merged sums of ``2**level`` blocks."""

    level: int
    number: int  # of its first block, over 2**level
    sums: tuple[Any, ...]


class BlockTree:
    """The nodes of consecutive blocks, as few as there can be."""

    def __init__(self, merge: Callable[[Any, Any], tuple[Any, ...]], nodes: Iterable[Node] = ()) -> None:
        self.merge = merge
        self.nodes: list[Node] = []
        for node in nodes:
            self.add(node)

    def add(self, node: Node) -> None:
        """Add the node right of all others."""
        nodes = self.nodes
        while node.number % 2 and nodes and nodes[-1][:2] == (node.level, node.number - 1):
            node = Node(node.level + 1, node.number // 2, self.merge(nodes.pop().sums, node.sums))
        nodes.append(node)

    def total(self) -> tuple[Any, ...]:
        """The merged sums of all blocks; empty where there are none."""
        sums = [node.sums for node in self.nodes]
        return reduce(self.merge, sums) if sums else ()
