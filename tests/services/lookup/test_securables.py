# SPDX-License-Identifier: Apache-2.0
"""Resolution of full names to securable objects: names that contain dots, ambiguous names, and backquotes."""

from __future__ import annotations

import pytest

from limnos.model.errors import BadRequest, NotFound
from limnos.model.kinds import Kind
from limnos.names.errors import InvalidName
from limnos.services.lookup.securables import SecurableTarget, parse_kind, scope_for, target_find
from limnos.services.request.name_codecs import codec_of
from tests.inprocess import LAKE
from tests.services.conftest import ServiceDesk


def find(desk: ServiceDesk, kind: Kind, full_name: str) -> SecurableTarget:
    """Find an object as the admin."""
    return desk.run(
        desk.ctx().read(
            scope_for(LAKE, kind, full_name),
            lambda request_view: target_find(request_view, kind, full_name, codec_of(request_view)),
        )
    )


def named(target: SecurableTarget) -> tuple[str, str | None]:
    """Return the target's name and its parent's."""
    assert target.node is not None
    return target.node.name, target.parent.name if target.parent else None


def test_full_name_with_dots_resolves_to_only_existing_reading(desk: ServiceDesk) -> None:
    """A full name with dots resolves to the only reading that exists."""
    desk.namespace("a.b")
    desk.table("a.b", "c.d")

    assert named(find(desk, Kind.TABLE, "main.a.b.c.d")) == ("c.d", "a.b")
    assert named(find(desk, Kind.NAMESPACE, "main.a.b")) == ("a.b", "main")


def test_full_name_with_two_existing_readings_is_refused(desk: ServiceDesk) -> None:
    """If two readings of a full name exist, the name is refused, and the message has an unambiguous spelling of
    each.
    """
    desk.namespace("a")
    desk.namespace("a.b")
    desk.table("a", "b.c")
    desk.table("a.b", "c")

    with pytest.raises(InvalidName, match="fits 2 objects") as refused:
        find(desk, Kind.TABLE, "main.a.b.c")

    assert "main.a.`b.c`" in str(refused.value)
    assert "main.`a.b`.c" in str(refused.value)
    assert named(find(desk, Kind.TABLE, "main.a.`b.c`")) == ("b.c", "a")
    assert named(find(desk, Kind.TABLE, "main.`a.b`.c")) == ("c", "a.b")


def test_drop_ends_the_ambiguity(desk: ServiceDesk) -> None:
    """After one of two objects with the same full name is dropped, the name resolves to the other one at the next
    request.
    """
    from limnos.services.catalog.tables import table_drop
    from tests.inprocess import MAIN

    desk.namespace("a")
    desk.namespace("a.b")
    desk.table("a", "b.c")
    desk.table("a.b", "c")
    desk.run(table_drop(desk.ctx(), MAIN, namespace=("a",), name="b.c", purge=False))

    assert named(find(desk, Kind.TABLE, "main.a.b.c")) == ("c", "a.b")


def test_nested_namespaces_are_joined_by_the_separator(desk: ServiceDesk) -> None:
    """The full name of a nested namespace joins its levels with the separator."""
    desk.namespace("a", "b", "c")
    desk.table("a", "b", "c", "t")

    assert named(find(desk, Kind.NAMESPACE, "main.a:b:c")) == ("c", "b")
    assert named(find(desk, Kind.TABLE, "main.a:b:c.t")) == ("t", "c")


@pytest.mark.parametrize(
    "kind,name,error",
    [
        (Kind.NAMESPACE, "main.nothing", NotFound),
        (Kind.TABLE, "main.a.nothing", NotFound),
        (Kind.CATALOG, "nothing", NotFound),
        (Kind.METALAKE, "nothing", NotFound),
        (Kind.ROLE, "nothing", NotFound),
        (Kind.TABLE, "main.t", InvalidName),
        (Kind.TABLE, "main.`a.t", InvalidName),
        (Kind.CATALOG, "main.a", InvalidName),
        (Kind.TAG, "x", NotFound),
        (Kind.POLICY, "x", NotFound),
        (Kind.JOB, "x", BadRequest),
    ],
)
def test_missing_object_is_not_found_and_bad_name_is_bad_request(
    desk: ServiceDesk, kind: Kind, name: str, error: type[Exception]
) -> None:
    """A missing object is NotFound, and a malformed full name is BadRequest."""
    desk.namespace("a")

    with pytest.raises(error):
        find(desk, kind, name)


def test_kinds_are_case_insensitive() -> None:
    """Kinds are case-insensitive, and `schema` means namespace. The refusal of an unknown kind lists the valid
    kinds.
    """
    assert parse_kind("SCHEMA") is Kind.NAMESPACE
    assert parse_kind("Table") is Kind.TABLE
    with pytest.raises(BadRequest, match="catalog"):
        parse_kind("gadget")
