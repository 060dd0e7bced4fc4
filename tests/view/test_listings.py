# SPDX-License-Identifier: Apache-2.0
"""Listings in blocks: blocks are updated like a sorted list, and ranges without a block are known as missing."""

from __future__ import annotations

import random

import msgspec
import pytest

from limnos.model.entities import ChangeRow, Listing
from limnos.model.kinds import Kind
from limnos.store.changes import UNKNOWN
from limnos.view import listings
from limnos.view.facts import size_of
from limnos.view.keys import ABSENT, block_key
from limnos.view.listings import BlockIndex, names_touched, patch_block, touches_block
from limnos.view.view import StoreView
from tests.view.test_view import CHAIN, LAKE, MAIN, ROOT, moved, put, step

SPACE = (40, "table", Kind.TABLE)


def block(*names: str) -> Listing:
    """Return a block of names, whose ids are their positions in the alphabet."""
    return Listing(
        names, tuple(ord(name[0]) for name in names), (None,) * len(names), tuple(map(msgspec.json.encode, names))
    )


def change(
    operation: str,
    *,
    old: str | None = None,
    new: str | None = None,
    revision: int = 2,
    parents: tuple[int, int] = (40, 40),
) -> ChangeRow:
    """Return a change of a table."""
    name = old or new or ""
    return ChangeRow(
        zone=MAIN,
        revision=revision,
        ordinal=0,
        operation=operation,
        kind=Kind.TABLE,
        node_id=ord(name[0]),
        name_space="table",
        old_parent=parents[0] if old else None,
        old_name=old,
        new_parent=parents[1] if new else None,
        new_name=new,
        owner_id=7,
    )


@pytest.fixture
def view() -> StoreView:
    """A view with three blocks of one listing, and a gap between the second and the third block."""
    view = StoreView()
    view.advance(moved((ROOT, 1), (LAKE, 1), (MAIN, 1)), tuple((zone, UNKNOWN) for zone in CHAIN))
    put(view, block_key(SPACE, "", "c"), block("b", "c"))
    put(view, block_key(SPACE, "c", "f"), block("d", "f"))
    put(view, block_key(SPACE, "m", ""), block("x"))
    return view


def list_cached_names(view: StoreView) -> list[tuple[str, ...]]:
    """Return the names of each cached block, in order."""
    blocks = [view.items().get(key, ABSENT) for key in view.block_index.keys(SPACE)]
    assert ABSENT not in blocks
    return [each.names for each in blocks if isinstance(each, Listing)]


def test_name_is_looked_up_in_the_block_of_its_range() -> None:
    """A name is looked up in the cached block whose range contains it. A range excludes its first name and includes its
    last, and the last range has no end. Gaps between blocks are reported as ranges.
    """
    index = BlockIndex()
    for ends in (("m", ""), ("", "c"), ("c", "f")):
        assert index.add(block_key(SPACE, *ends)) == []

    assert [index.find_block(SPACE, name) for name in ("a", "c", "cc", "g", "m", "n")] == [
        block_key(SPACE, *ends) if ends else None for ends in [("", "c"), ("", "c"), ("c", "f"), None, None, ("m", "")]
    ]
    assert [index.following(SPACE, name) for name in ("", "c", "f", "m")] == [
        block_key(SPACE, *ends) if ends else None for ends in [("", "c"), ("c", "f"), None, ("m", "")]
    ]
    assert [index.gap(SPACE, name) for name in ("", "d", "f", "g", "m", "z")] == [("f", "m")] * 3 + [
        ("g", "m"),
        None,
        None,
    ]
    assert index.gap((41, "table", Kind.TABLE), "q") == ("q", "")


def test_new_block_replaces_overlapping_ones() -> None:
    """A block that is read again replaces the blocks that it overlaps, and no others."""
    index = BlockIndex()
    for ends in (("", "c"), ("c", "f"), ("f", "k"), ("k", "")):
        index.add(block_key(SPACE, *ends))

    assert index.add(block_key(SPACE, "d", "g")) == [block_key(SPACE, "c", "f"), block_key(SPACE, "f", "k")]
    assert index.add(block_key(SPACE, "d", "g")) == []


def test_create_and_drop_touch_one_block(view: StoreView) -> None:
    """An added or removed name changes only its block; the others are the identical values."""
    before = [view.get(key) for key in view.block_index.keys(SPACE)]

    step(view, MAIN, 2, change("create", new="cc"))
    step(view, MAIN, 3, change("drop", old="d", revision=3))
    step(view, MAIN, 4, change("create", new="g", revision=4))

    assert list_cached_names(view) == [("b", "c"), ("cc", "f"), ("x",)]
    assert view.get(block_key(SPACE, "", "c")) is before[0]
    assert view.get(block_key(SPACE, "m", "")) is before[2]


def test_two_changes_in_one_revision_drop_the_affected_blocks(view: StoreView) -> None:
    """Two changes of a listing in one revision drop the affected blocks."""
    step(view, MAIN, 2, change("drop", old="d"), msgspec.structs.replace(change("create", new="cc"), ordinal=1))

    assert list_cached_names(view) == [("b", "c"), ("x",)]


def test_rename_drops_both_affected_blocks(view: StoreView) -> None:
    """A rename drops both affected blocks, because the change does not contain the owner."""
    step(view, MAIN, 2, change("move", old="b", new="y"))

    assert list_cached_names(view) == [("d", "f")]


def test_owner_change_updates_the_block_of_the_name(view: StoreView) -> None:
    """A new owner changes the block of the name. A change of owner without the name drops the whole listing."""
    owner_change = msgspec.structs.replace(change("own", old="d"), old_name=None, new_name="d")
    step(view, MAIN, 2, owner_change)
    listing = view.get(block_key(SPACE, "c", "f"))
    assert isinstance(listing, Listing)
    assert listing.owners == (7, None)

    step(view, MAIN, 3, msgspec.structs.replace(owner_change, new_name=None, revision=3))
    assert len(list_cached_names(view)) <= 1


def test_block_of_doubled_size_is_dropped(view: StoreView, monkeypatch: pytest.MonkeyPatch) -> None:
    """A block that has doubled in size is dropped."""
    monkeypatch.setattr(listings, "BLOCK", 1)

    step(view, MAIN, 2, change("create", new="e"))

    assert list_cached_names(view) == [("b", "c"), ("x",)]


def test_late_block_is_merged_unless_its_range_was_touched(view: StoreView) -> None:
    """A block that is loaded late is merged only if no change since its read is in its range."""
    step(view, MAIN, 2, change("create", new="h"))
    step(view, MAIN, 3, msgspec.structs.replace(change("create", new="h", revision=3), new_parent=41))

    assert not put(view, block_key(SPACE, "f", "i"), block("g"), at=1)
    assert put(view, block_key(SPACE, "i", "m"), block("k"), at=1)
    assert put(view, block_key(SPACE, "f", "i"), block("g", "h"), at=2)
    assert list_cached_names(view) == [("b", "c"), ("d", "f"), ("g", "h"), ("k",), ("x",)]


def test_unrelated_changes_do_not_drop_blocks(view: StoreView) -> None:
    """Changes elsewhere in the catalog do not drop blocks."""
    before = list_cached_names(view)

    step(view, MAIN, 2, msgspec.structs.replace(change("create", new="b"), new_parent=41))
    step(view, MAIN, 3, msgspec.structs.replace(change("drop", old="b", revision=3), name_space="namespace"))

    assert list_cached_names(view) == before


def test_evicted_blocks_are_not_counted_as_cached() -> None:
    """Blocks evicted by the budget no longer count as cached."""
    view = StoreView(bytes_max=4 * size_of(block_key(SPACE, "a", "b"), block("b")))
    view.advance(moved((ROOT, 1), (LAKE, 1), (MAIN, 1)), tuple((zone, UNKNOWN) for zone in CHAIN))

    for number in range(97, 117):
        put(view, block_key(SPACE, chr(number), chr(number + 1)), block(chr(number + 1)))

    assert 0 < len(list_cached_names(view)) < 10
    assert len(view) == len(list_cached_names(view))


def test_blocks_equal_sorted_names_after_random_changes() -> None:
    """After random changes each block equals the sorted names in its range, or is dropped."""
    dice = random.Random(5)
    for _ in range(200):
        names = sorted(dice.sample("abcdefghijklmnop", dice.randint(0, 8)))
        listing: Listing | None = block(*names)
        truth: dict[str, int | None] = dict.fromkeys(names)
        for _ in range(12):
            name = dice.choice("abcdefghijklmnop")
            event = change("drop", old=name) if name in truth else change("create", new=name)
            truth = {**truth, name: 7} if name not in truth else {k: v for k, v in truth.items() if k != name}
            listing = patch_block(listing, event, 40) if listing is not None else None
        assert listing is not None
        assert listing.names == tuple(sorted(truth))
        assert listing.owners == tuple(truth[name] for name in sorted(truth))
        assert listing.encoded == tuple(map(msgspec.json.encode, listing.names))


def test_only_changes_of_the_listing_affect_it() -> None:
    """Only changes with the listing's parent, name space and kind affect it."""
    assert names_touched(change("move", old="a", new="b", parents=(40, 41)), SPACE) == ["a"]
    assert names_touched(change("move", old="a", new="b", parents=(41, 40)), SPACE) == ["b"]
    assert names_touched(change("create", new="b"), (40, "table", Kind.VIEW)) == []
    assert touches_block(change("move", old="a", new="f"), block_key(SPACE, "c", "f"))
    assert not touches_block(change("move", old="a", new="g"), block_key(SPACE, "c", "f"))
