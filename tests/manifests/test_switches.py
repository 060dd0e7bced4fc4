# SPDX-License-Identifier: Apache-2.0
"""Which rooms are on, and the reasons of the others."""

from __future__ import annotations

import pytest

from limnos.manifests.manifest import Manifest, load
from limnos.manifests.switches import room_set

ROOMS = (
    Manifest(name="a", about="the first part"),
    Manifest(name="b", about="the second part", needs=("a",)),
    Manifest(name="c", about="the third part", needs=("b",)),
    Manifest(name="d", about="the fourth part", needs=("elsewhere",)),
)


def test_all_rooms_are_on_without_a_setting() -> None:
    """Every room is on unless it needs one that is not installed."""
    rooms = room_set(manifests=ROOMS)

    assert [each.name for each in rooms.on] == ["a", "b", "c"]
    assert [each.reason for each in rooms.off] == [
        "This server does not serve the fourth part: d needs elsewhere, which is not installed"
    ]


@pytest.mark.parametrize("off", [("a",), ("a", "typo")])
def test_a_room_is_off_with_all_that_need_it(off: tuple[str, ...]) -> None:
    """The reason names the setting, through any number of rooms. Unknown names have no effect here."""
    rooms = room_set(off, manifests=ROOMS[:3])

    assert rooms.on == ()
    assert [each.why for each in rooms.off] == [
        "the setting rooms.off contains a",
        "b needs a, and the setting rooms.off contains a",
        "c needs b, and b needs a, and the setting rooms.off contains a",
    ]


def test_another_setting_closes_a_room() -> None:
    """The reason of an older setting counts, and precedes that of `rooms.off`."""
    rooms = room_set(("b",), {"b": "the setting b.enabled is false"}, manifests=ROOMS[:3])

    assert rooms.is_on("a")
    assert not rooms.is_on("b")
    assert rooms.off[0].why == "the setting b.enabled is false"


@pytest.mark.parametrize("reference", ["limnos.manifests.manifest:Nothing", "limnos.no_such:x", "limnos"])
def test_unknown_references_are_errors(reference: str) -> None:
    """A reference to nothing is an error, and no silent absence."""
    with pytest.raises((AttributeError, ImportError)):
        load(reference)
