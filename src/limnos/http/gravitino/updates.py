"""Update requests: lists of changes with an `@type`, read into the services' `Edits` (Gravitino's *UpdateRequest classes).

May import `model`, `services.request.properties` and this package. The changes apply in their order; of two on one thing the
later stands.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from limnos.http.gravitino.told import Body
from limnos.model.errors import BadRequest
from limnos.services.request.properties import Edits

IN_USE = "in-use"
"""A property that only enabling and disabling writes."""


class VariedUpdate(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel", tag_field="@type"):
    """One change."""


class Rename(VariedUpdate, frozen=True, tag="rename"):
    """Another name."""

    new_name: str


class UpdateComment(VariedUpdate, frozen=True, tag="updateComment"):
    """Another comment, or none."""

    new_comment: str | None = None


class SetProperty(VariedUpdate, frozen=True, tag="setProperty"):
    """A property's new value."""

    property: str
    value: str


class RemoveProperty(VariedUpdate, frozen=True, tag="removeProperty"):
    """A property less; that it is not there is fine."""

    property: str


PropertyUpdate = SetProperty | RemoveProperty
Update = Rename | UpdateComment | SetProperty | RemoveProperty


class Updates(Body, frozen=True):
    """Changes of a metalake or catalog."""

    updates: list[Update]


class PropertyUpdates(Body, frozen=True):
    """Changes of a schema: Gravitino knows no other ones."""

    updates: list[PropertyUpdate]


class InUse(Body, frozen=True):
    """Whether something is to be in use."""

    in_use: bool


def edits_of(updates: Sequence[Update]) -> Edits:
    """Put changes together, one after the other. Raises BadRequest for a property that is not the caller's to set."""
    name: str | None = None
    comment: str | None = None
    clears = False
    sets: dict[str, str] = {}
    removes: dict[str, None] = {}
    for update in updates:
        match update:
            case Rename(new_name):
                name = new_name
            case UpdateComment(new_comment):
                comment, clears = new_comment, new_comment is None
            case SetProperty(key, value):
                sets[check_key(key)] = value
            case RemoveProperty(key):
                sets.pop(check_key(key), None)
                removes[key] = None
    return Edits(name=name, comment=comment, clears_comment=clears, sets=sets, removes=tuple(removes))


def check_key(key: str) -> str:
    """Check a property's name."""
    if not key:
        raise BadRequest("A property needs a name: it is empty")
    if key == IN_USE:
        raise BadRequest(f"Property {IN_USE} is reserved: enable or disable instead, by PATCH with inUse")
    return key


def checked(properties: dict[str, str] | None) -> dict[str, str]:
    """Check the properties of something new."""
    return {check_key(key): value for key, value in (properties or {}).items()}
