# SPDX-License-Identifier: Apache-2.0
"""Values of the server's responses about tags, protection and read restrictions.

Must not know HTTP.
"""

from __future__ import annotations

import msgspec

from limnos.client.values.shared import AuditInfo, Json, ObjectName


class Tag(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """A tag. `inherited` is set if the tag was requested for an object."""

    name: str
    comment: str | None = None
    properties: dict[str, str] | None = None
    inherited: bool | None = None
    allowed_values: tuple[str, ...] | None = None
    """Values that the tag may have on objects. None: any; empty: none."""
    assignment_values: tuple[str, ...] = ()
    """Values of the tag on the requested object."""
    audit: AuditInfo = AuditInfo()


class MetadataObject(msgspec.Struct, frozen=True, rename="camel"):
    """An object to which a tag or policy is attached: its Gravitino type and full name."""

    full_name: str
    type: str


class Protector(msgspec.Struct, frozen=True):
    """The object whose protection applies to the requested object: the object itself or, with `below`, an ancestor.
    `set_at` is an ISO 8601 string in UTC.
    """

    by: ObjectName
    below: bool
    set_by: str
    set_at: str


class NamedPrincipals(msgspec.Struct, frozen=True):
    """The names of users, groups and roles to which a restriction applies."""

    users: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    roles: tuple[str, ...] = ()


class ReadRestriction(msgspec.Struct, frozen=True, rename={"unless": "except"}, kw_only=True):
    """A restriction of a table or namespace: a row filter as an Iceberg REST expression, and masks by column.

    It applies to the principals in `to` (all users if that is empty), but not to the principals in `unless`.
    """

    name: str
    on: ObjectName
    masks: dict[str, str]
    to: NamedPrincipals
    unless: NamedPrincipals
    set_by: str
    set_at: str
    filter: Json | None = None
    denies: tuple[str, ...] = ()
    """Privileges that the object denies to the roles in `to`, as a former object of its path did."""
