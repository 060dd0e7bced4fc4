# SPDX-License-Identifier: Apache-2.0
"""Refusals with AsterixDB's codes and messages, with names in display form."""

from __future__ import annotations

import pytest

from limnos.rooms.sqlpp.language import SqlppError, parse, tree
from limnos.rooms.sqlpp.language.errors import TextPosition
from limnos.rooms.sqlpp.services.requests import errors as sqlpp_errors

AT = TextPosition(3, 7)
PATH = ("sales", "e.ast", "orders")


@pytest.mark.parametrize(
    "kind, message",
    [
        ("dataset", "ASX1050: Cannot find dataset with name orders in dataverse sales.`e.ast`"),
        ("index", "ASX1083: Cannot find index with name orders in dataverse sales.`e.ast`"),
        ("type", "ASX1082: Cannot find datatype with name orders in dataverse sales.`e.ast`"),
        ("synonym", "ASX1116: Cannot find synonym with name orders in dataverse sales.`e.ast`"),
        ("view", "ASX1159: Cannot find view with name orders in dataverse sales.`e.ast`"),
        ("function", "ASX1081: Cannot find function with name orders in dataverse sales.`e.ast`"),
        ("library", "ASX1117: Cannot find library with name orders in dataverse sales.`e.ast`"),
    ],
)
def test_missing_object_error_names_object_and_dataverse(kind: str, message: str) -> None:
    """A message about a missing object names the object and its dataverse separately, not in canonical form."""
    assert str(sqlpp_errors.unknown_object(kind, PATH, at=AT)) == f"{message} (in line 3, at column 7)"


@pytest.mark.parametrize(
    "kind, message",
    [
        ("dataset", "ASX1072: A dataset with name orders already exists in dataverse sales.`e.ast`"),
        ("type", "ASX1085: A datatype with this name orders already exists"),
        ("synonym", "ASX1131: A synonym with name orders already exists in dataverse sales.`e.ast`"),
        ("view", "ASX1160: A view with name orders already exists in dataverse sales.`e.ast`"),
        ("function", "ASX1123: A function with name orders already exists in dataverse sales.`e.ast`"),
        ("index", "ASX1084: An index with this name orders already exists"),
    ],
)
def test_existing_object_error_has_no_position_if_none_is_given(kind: str, message: str) -> None:
    """The error about an existing object has no position if the statement gives none."""
    assert str(sqlpp_errors.object_exists(kind, PATH, at=None)) == message


def test_drop_refusal_names_the_dependent_object() -> None:
    """The refusal to drop an object that is in use names the object that needs it."""
    assert str(sqlpp_errors.in_use("dataset", "sales.orders", by="view v", at=None)) == (
        "ASX1148: Cannot drop dataset sales.orders being used by view v"
    )
    error = sqlpp_errors.dataverse_in_use(PATH[:2], what="type t", by="dataset d", at=None)
    assert str(error) == "ASX1147: Cannot drop dataverse: sales.`e.ast`: type t being used by dataset d"


@pytest.mark.parametrize(
    "name, message_end",
    [
        ("`a/b`.t", None),
        ("a.` b`", "' b'"),
        ("`^a`.t", "'^a'"),
        ("a.`^t`", None),
        ("``.t", "''"),
        (f"`{'x' * 252}`.t", "xxx...'"),
        (f"`{'x' * 251}`.t", None),
        ("a.b.`c\\u0000`", r"'c\x00'"),
    ],
)
def test_invalid_name_is_reported_at_its_position(name: str, message_end: str | None) -> None:
    """An invalid part of a name is reported at the position of the name."""
    (parsed,) = parse(f"DROP DATASET {name}")
    dropped = parsed.statement
    assert isinstance(dropped, tree.Drop)

    if message_end is None:
        sqlpp_errors.check_object(dropped.name)
        return
    with pytest.raises(SqlppError) as refused:
        sqlpp_errors.check_object(dropped.name)
    assert (refused.value.number, refused.value.place) == (1115, dropped.name.at)
    assert refused.value.message.endswith(message_end)
