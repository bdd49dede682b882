"""A trail is a tuple to whoever reads it, and shares what it holds with the one it grew from."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.core.trail import BLOCK, Trail

ADDITIONS = st.lists(st.lists(st.integers(), max_size=3 * BLOCK).map(tuple), max_size=8)


def grown(additions: list[tuple[int, ...]]) -> Trail[int]:
    trail: Trail[int] = Trail()
    for entries in additions:
        trail = trail.adding(*entries)
    return trail


@given(ADDITIONS)
def test_a_trail_reads_like_the_tuple_of_all_that_was_added(
    additions: list[tuple[int, ...]],
) -> None:
    model = sum(additions, ())
    trail = grown(additions)

    assert (tuple(trail), len(trail)) == (model, len(model))
    assert tuple(trail[place] for place in range(len(trail))) == model


@given(ADDITIONS)
def test_trails_with_equal_entries_are_equal_however_they_were_made(
    additions: list[tuple[int, ...]],
) -> None:
    model = sum(additions, ())

    assert grown(additions) == Trail.of(model) == grown([(each,) for each in model])
    assert hash(grown(additions)) == hash(Trail.of(model))


@given(ADDITIONS, st.lists(st.integers(), max_size=2 * BLOCK).map(tuple))
def test_adding_changes_nothing_that_was_there_and_shares_every_full_block(
    additions: list[tuple[int, ...]], more: tuple[int, ...]
) -> None:
    before = grown(additions)
    known = tuple(before)
    after = before.adding(*more)

    assert tuple(before) == known
    assert tuple(after) == known + more
    assert all(a is b for a, b in zip(before.blocks, after.blocks, strict=False))


@given(ADDITIONS)
def test_blocks_are_full_and_the_tail_is_shorter_than_one(
    additions: list[tuple[int, ...]],
) -> None:
    trail = grown(additions)

    assert {len(block) for block in trail.blocks} <= {BLOCK}
    assert len(trail.tail) < BLOCK


@pytest.mark.parametrize("length", [0, 1, BLOCK - 1, BLOCK, BLOCK + 6, 3 * BLOCK])
def test_a_place_beyond_the_end_is_an_index_error(length: int) -> None:
    for place in (length, length + 1, length + BLOCK, length + 5 * BLOCK):
        with pytest.raises(IndexError):
            Trail.of(range(length))[place]


@pytest.mark.parametrize("length", [1, BLOCK - 1, BLOCK, BLOCK + 6, 3 * BLOCK])
def test_a_negative_place_counts_from_the_end_as_in_a_tuple(length: int) -> None:
    trail = Trail.of(range(length))

    assert (trail[-1], trail[-length]) == (length - 1, 0)


def test_an_empty_trail_can_be_made_for_entries_of_a_given_type() -> None:
    assert Trail[int]() == Trail.of(())
