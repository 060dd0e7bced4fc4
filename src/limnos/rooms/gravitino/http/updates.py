# SPDX-License-Identifier: Apache-2.0
"""Update requests: lists of changes with an `@type`, parsed into `PropertyEdits` (Gravitino's *UpdateRequest classes).

Must not know resources. Changes apply in order; a later change of the same field replaces an earlier one.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from limnos.model.errors import BadRequest
from limnos.rooms.gravitino.http.handler_wrappers import GravitinoRequestBody
from limnos.services.request.property_edits import PropertyEdits

IN_USE = "in-use"
"""The property that only enabling and disabling may write."""


class VariedUpdate(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel", tag_field="@type"):
    """One element of `updates` in a body; `@type` selects the type of change."""


class RenameUpdate(VariedUpdate, frozen=True, tag="rename"):
    """The change `rename`: renames the object."""

    new_name: str


class UpdateComment(VariedUpdate, frozen=True, tag="updateComment"):
    """The change `updateComment`: sets the comment, or removes it if null."""

    new_comment: str | None = None


class SetProperty(VariedUpdate, frozen=True, tag="setProperty"):
    """The change `setProperty`: sets a property to a new value."""

    property: str
    value: str


class RemoveProperty(VariedUpdate, frozen=True, tag="removeProperty"):
    """The change `removeProperty`: removes a property; a missing one is not an error."""

    property: str


PropertyUpdate = SetProperty | RemoveProperty
EntityUpdate = RenameUpdate | UpdateComment | SetProperty | RemoveProperty


class EntityUpdates(GravitinoRequestBody, frozen=True):
    """The body of an update of a metalake, catalog, tag or model: its changes, in order."""

    updates: list[EntityUpdate]


class PropertyUpdates(GravitinoRequestBody, frozen=True):
    """The body of an update of a schema: changes of properties only, as in Gravitino."""

    updates: list[PropertyUpdate]


class InUseRequest(GravitinoRequestBody, frozen=True):
    """The body of a request to enable or disable a metalake or catalog."""

    in_use: bool


def edits_of(updates: Sequence[EntityUpdate]) -> PropertyEdits:
    """Combine the changes in order. Raises BadRequest for a property that callers may not set."""
    name: str | None = None
    comment: str | None = None
    clears = False
    sets: dict[str, str] = {}
    removes: dict[str, None] = {}
    for update in updates:
        match update:
            case RenameUpdate(new_name):
                name = new_name
            case UpdateComment(new_comment):
                comment, clears = new_comment, new_comment is None
            case SetProperty(key, value):
                sets[check_key(key)] = value
            case RemoveProperty(key):
                sets.pop(check_key(key), None)
                removes[key] = None
    return PropertyEdits(name=name, comment=comment, clears_comment=clears, sets=sets, removes=tuple(removes))


def check_key(key: str) -> str:
    """Return a property's name. Raises BadRequest if it is empty or reserved (`in-use`)."""
    if not key:
        raise BadRequest("A property needs a name: it is empty")
    if key == IN_USE:
        raise BadRequest(f"Property {IN_USE} is reserved: enable or disable instead, by PATCH with inUse")
    return key


def check_properties(properties: dict[str, str] | None) -> dict[str, str]:
    """Check the properties of a new object, and return them; {} for None. Raises BadRequest for an empty or reserved
    name.
    """
    return {check_key(key): value for key, value in (properties or {}).items()}
