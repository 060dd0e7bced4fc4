# SPDX-License-Identifier: Apache-2.0
"""Values of attached tags: adding and removing pairs of tag and value, and the values that a tag allows."""

from __future__ import annotations

import asyncio

import pytest

from limnos.model.errors import AlreadyExists, BadRequest
from limnos.model.kinds import Kind
from limnos.services.governance.attachments import attachments_list
from limnos.services.governance.tag_values import VALUES_MAX, TagValuePair, apply_pairs, pairs_associate, tag_record
from limnos.services.lookup.metalake_objects import metalake_object_create
from limnos.services.lookup.securables import AttachmentTarget
from tests.inprocess import ADMIN, LAKE
from tests.services.conftest import ServiceDesk

HERE = AttachmentTarget(LAKE, Kind.CATALOG, "main")


def make(desk: ServiceDesk, name: str, allowed: tuple[str, ...] | None = None) -> None:
    """Create a tag."""
    record = tag_record(None, {}, allowed_values=allowed)
    desk.run(metalake_object_create(desk.ctx(ADMIN), metalake=LAKE, kind=Kind.TAG, name=name, record=record))


def put(
    desk: ServiceDesk, *adds: str | None, removes: tuple[str | None, ...] = (), name: str = "red"
) -> tuple[str, ...]:
    """Add values of a tag to the catalog and remove others."""
    pairs = [tuple(TagValuePair(name, value) for value in values) for values in (adds, removes)]
    return desk.run(pairs_associate(desk.ctx(), HERE, adds=pairs[0], removes=pairs[1]))


def values(desk: ServiceDesk) -> list[tuple[str, ...]]:
    """Return the values of each tag of the catalog."""
    return [each.values for each in desk.run(attachments_list(desk.ctx(), HERE, kind=Kind.TAG))]


@pytest.mark.parametrize(
    "before, adds, removes, after",
    [
        (None, ("a", "b"), (), ("a", "b")),
        (("a",), ("b", "a"), (), ("a", "b")),
        (("a", "b"), (), ("a",), ("b",)),
        (("a",), (), ("a",), None),
        (("a",), (), ("z",), ("a",)),
        (None, (), ("a",), None),
        ((), ("a",), (), ("a",)),
        ((), (), (None,), None),
        ((), (), ("a",), ()),
        (None, (None,), (), ()),
        ((), (None,), (), ()),
        (("a",), (None,), ("a",), ()),
        (("a", "b"), (None,), ("a",), None),
        (("a",), (), (None,), ("a",)),
    ],
)
def test_adding_and_removing_values_changes_only_named_ones(
    before: tuple[str, ...] | None,
    adds: tuple[str | None, ...],
    removes: tuple[str | None, ...],
    after: tuple[str, ...] | None,
) -> None:
    """Adding values keeps the earlier ones, removing values removes only the named ones, and a tag without values is
    detached.
    """
    assert apply_pairs(before, adds=adds, removes=removes) == after


def test_value_changes_are_idempotent_and_last_removal_detaches(desk: ServiceDesk) -> None:
    """Pairs are added and removed one by one, idempotently. Removing the last value detaches the tag."""
    make(desk, "red")
    steps: list[tuple[tuple[str | None, ...], tuple[str | None, ...]]] = [
        (("x", "y"), ()),
        (("z", "x"), ()),
        ((), ("y",)),
        ((), ("y",)),
        ((), ("x", "z")),
        ((None,), ()),
        (("x",), ()),
        ((None,), ("x",)),
        ((), (None,)),
    ]
    outcomes = [(put(desk, *adds, removes=removes), values(desk)) for adds, removes in steps]

    assert [tag_values for _, tag_values in outcomes] == [
        [("x", "y")],
        [("x", "y", "z")],
        [("x", "z")],
        [("x", "z")],
        [],
        [()],
        [("x",)],
        [()],
        [],
    ]
    assert [names for names, _ in outcomes] == [("red",)] * 4 + [()] + [("red",)] * 3 + [()]


def test_contradictory_or_invalid_request_changes_nothing(desk: ServiceDesk) -> None:
    """A request with contradictory, invalid or forbidden values, or that attaches a tag both with values and without,
    is refused and changes nothing.
    """
    make(desk, "red")
    make(desk, "set", ("a", "b"))
    make(desk, "bare", ())
    put(desk, "x")
    cases: list[tuple[str, tuple[str | None, ...], tuple[str | None, ...], type[Exception], str]] = [
        ("red", ("y", " "), (), BadRequest, "1 to 256 characters"),
        ("red", ("y", "v" * 257), (), BadRequest, "1 to 256 characters"),
        ("red", ("y",), ("y",), BadRequest, "both added and removed"),
        ("red", (None,), (None,), BadRequest, "both added and removed"),
        ("red", ("y", None), (), BadRequest, "with a value and without one"),
        ("red", (None,), (), AlreadyExists, "on catalog main already with values"),
        ("set", ("a", "c"), (), BadRequest, "accepts one of a, b, not c"),
        ("bare", ("a",), (), BadRequest, "accepts no value, not a"),
        ("red", (*tuple(map(str, range(999))), "y", "z"), (), BadRequest, "more than the 1000"),
    ]
    for name, adds, removes, error, match in cases:
        with pytest.raises(error, match=match):
            put(desk, *adds, removes=removes, name=name)
    put(desk, *map(str, range(VALUES_MAX - 1)))
    with pytest.raises(BadRequest, match="would have 1001 values"):
        put(desk, "one more")

    assert len(values(desk)) == 1
    assert values(desk)[0][:2] == ("x", "0")
    assert put(desk, "a", "b", name="set") == ("red", "set")
    assert put(desk, None, name="bare") == ("bare", "red", "set")


def test_allowed_values_are_unique_and_sorted() -> None:
    """The allowed values of a tag are unique and sorted. Unset means any value; an empty list means that the tag takes
    no value.
    """
    assert tag_record(None, {}, allowed_values=["b", "a", "b"]).allowed_values == ("b", "a")
    assert [tag_record(None, {}, allowed_values=allowed).valueless for allowed in (None, [], ["a"])] == [
        False,
        True,
        False,
    ]
    for wrong in ([" "], ["x" * 257], [str(each) for each in range(VALUES_MAX + 1)]):
        with pytest.raises(BadRequest):
            tag_record(None, {}, allowed_values=wrong)


def test_concurrent_value_changes_lose_no_value(desk: ServiceDesk) -> None:
    """If sixty-four concurrent callers each add one value and remove another, no value is lost or duplicated."""
    make(desk, "red")
    put(desk, *(f"old{each}" for each in range(64)))

    async def one(number: int) -> None:
        pairs = (TagValuePair("red", f"new{number}"),), (TagValuePair("red", f"old{number}"),)
        await pairs_associate(desk.ctx(), HERE, adds=pairs[0], removes=pairs[1])

    async def crowd() -> None:
        await asyncio.gather(*(one(number) for number in range(64)))

    desk.run(crowd())

    assert sorted(values(desk)[0]) == sorted(f"new{each}" for each in range(64))
