"""A sequence that grows at its end, is never changed, and shares what it already holds.

A tuple would copy every entry for each one added, so that a run of n rounds would cost n².
A trail keeps full blocks and a short tail: adding copies the tail, and now and then the list
of blocks, which stays cheap for any history that a window can hold.
"""

from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Generic, TypeVar

T = TypeVar("T")

BLOCK = 64
"""Entries of a block. At 10,000 entries the list of blocks has 156 and is copied once in 64."""


class Trail(Generic[T]):
    """Equal to another trail with equal entries."""

    __slots__ = ("blocks", "tail")

    def __init__(self, blocks: tuple[tuple[T, ...], ...] = (), tail: tuple[T, ...] = ()) -> None:
        self.blocks = blocks
        self.tail = tail

    @classmethod
    def of(cls, entries: Iterable[T]) -> "Trail[T]":
        every = tuple(entries)
        full = len(every) - len(every) % BLOCK
        blocks = tuple(every[start : start + BLOCK] for start in range(0, full, BLOCK))
        return cls(blocks, every[full:])

    def adding(self, *entries: T) -> "Trail[T]":
        blocks, tail = self.blocks, (*self.tail, *entries)
        while len(tail) >= BLOCK:
            blocks, tail = (*blocks, tail[:BLOCK]), tail[BLOCK:]
        return Trail(blocks, tail)

    def __len__(self) -> int:
        return len(self.blocks) * BLOCK + len(self.tail)

    def __iter__(self) -> Iterator[T]:
        return chain(chain.from_iterable(self.blocks), self.tail)

    def __getitem__(self, index: int) -> T:
        place = index + len(self) if index < 0 else index
        if not 0 <= place < len(self):
            raise IndexError(f"no entry {index} in a trail of {len(self)}")
        block, place = divmod(place, BLOCK)
        return self.tail[place] if block == len(self.blocks) else self.blocks[block][place]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Trail):
            return NotImplemented
        return self.blocks == other.blocks and self.tail == other.tail

    def __hash__(self) -> int:
        return hash((self.blocks, self.tail))

    def __repr__(self) -> str:
        return f"Trail.of({list(self)!r})"
