# SPDX-License-Identifier: Apache-2.0
"""Requirements of a commit: preconditions on the table's current state.

Must not know updates, files or stores. Source: Iceberg REST specification, schema TableRequirement. Messages begin like
those of the reference implementation, because clients and its compatibility kit search for them.
"""

from __future__ import annotations

from collections.abc import Callable

from limnos.formats.iceberg.json_types import (
    INT_MAX,
    Json,
    as_objects,
    integer_at,
    optional_integer_at,
    preview_value,
    string_at,
    text_at,
)
from limnos.formats.iceberg.metadata import with_current_shape
from limnos.model.errors import BadRequest, CommitConflict

_CREATE = "assert-create"
REQUIREMENTS_MAX = 10_000
"""The maximum number of requirements: one per branch or tag, and a few more."""


def is_create(requirements: list[object]) -> bool:
    """Return whether the commit creates its table. Raises BadRequest if `assert-create` is not the only requirement."""
    return _is_create(as_objects(requirements, "Field 'requirements'"))


def _is_create(requested: list[Json]) -> bool:
    if not requested or _CREATE not in [one.get("type") for one in requested]:
        return False
    if len(requested) > 1:
        raise BadRequest(f"Invalid create requirements: {_CREATE} must be the only one; remove the others")
    return True


def check(base: Json | None, requirements: list[object]) -> None:
    """Check all requirements against the table's metadata; `base` None means that there is no table.

    Raises CommitConflict for the first requirement that is not met, with its type in the context; BadRequest for an
    unknown or malformed requirement, or too many.
    """
    requested = as_objects(requirements, "Field 'requirements'")
    if len(requested) > REQUIREMENTS_MAX:
        raise BadRequest(f"A commit has at most {REQUIREMENTS_MAX} requirements, not {len(requested)}: leave some out")
    if not requested:
        return
    checks = [(_check_of(one), one) for one in requested]
    if _is_create(requested):
        if base is not None:
            raise CommitConflict("Requirement failed: table already exists", requirement=_CREATE)
        return
    if base is None:
        raise _requirement_failed("table does not exist")
    shaped = with_current_shape(base)
    for check_one, one in checks:
        try:
            check_one(shaped, one)
        except CommitConflict as error:
            error.context["requirement"] = one["type"]
            raise


def _requirement_failed(what: str) -> CommitConflict:
    return CommitConflict(f"Requirement failed: {what}")


def _check_of(requirement: Json) -> Callable[[Json, Json], None]:
    name = string_at(requirement, "type", where="Requirement")
    if name == _CREATE:
        return lambda _base, _requirement: None
    result = CHECKS.get(name)
    if result is None:
        requirement_types = ", ".join((_CREATE, *CHECKS))
        raise BadRequest(f"Unknown requirement type '{preview_value(name)}' for a table; known are {requirement_types}")
    return result


def _uuid(base: Json, requirement: Json) -> None:
    text, has = text_at(requirement, "uuid", where="assert-table-uuid"), base.get("table-uuid")
    if not isinstance(has, str) or has.lower() != text.lower():
        raise _requirement_failed(f"UUID does not match: expected {has} != {text}")


def _ref(base: Json, requirement: Json) -> None:
    where = "assert-ref-snapshot-id"
    name = text_at(requirement, "ref", where=where)
    optional_integer = optional_integer_at(requirement, "snapshot-id", where=where)
    refs = base.get("refs")  # present if there is a current snapshot: `with_current_shape` adds it
    ref = refs.get(name) if isinstance(refs, dict) else None
    if not isinstance(ref, dict):
        if optional_integer is not None:
            raise _requirement_failed(f"branch or tag {name} is missing, expected {optional_integer}")
        return
    kind, has = ref.get("type", "branch"), ref.get("snapshot-id")
    if optional_integer is None:
        raise _requirement_failed(f"{kind} {name} was created concurrently")
    if optional_integer != has:
        raise _requirement_failed(f"{kind} {name} has changed: expected id {optional_integer} != {has}")


def _same_id(field: str, stored: str, what: str) -> Callable[[Json, Json], None]:
    """Return a function that checks whether the table's id in `stored` equals the requirement's id in `field`."""

    def check_id(base: Json, requirement: Json) -> None:
        integer = integer_at(requirement, field, where=f"assert-{field}", low=-1, high=INT_MAX)
        has = base.get(stored)
        if integer != has:
            raise _requirement_failed(f"{what} changed: expected id {integer} != {has}")

    return check_id


CHECKS: dict[str, Callable[[Json, Json], None]] = {
    "assert-table-uuid": _uuid,
    "assert-ref-snapshot-id": _ref,
    "assert-last-assigned-field-id": _same_id("last-assigned-field-id", "last-column-id", "last assigned field id"),
    "assert-current-schema-id": _same_id("current-schema-id", "current-schema-id", "current schema"),
    "assert-last-assigned-partition-id": _same_id(
        "last-assigned-partition-id", "last-partition-id", "last assigned partition id"
    ),
    "assert-default-spec-id": _same_id("default-spec-id", "default-spec-id", "default partition spec"),
    "assert-default-sort-order-id": _same_id("default-sort-order-id", "default-sort-order-id", "default sort order"),
}
