# SPDX-License-Identifier: Apache-2.0
"""What the items of bulk jobs have in common: how they name their object, and which of them may run at the same time.

An item is one JSON object with the fields of its single request. Paths are lists of names, the catalog first.
"""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Literal

from limnos.http.admin.bodies import AdminRequestBody
from limnos.model.errors import AlreadyExists, BadRequest
from limnos.model.kinds import Kind, KindGroup
from limnos.names.fullname import FullName, render_quoted
from limnos.names.parts import check_some_levels
from limnos.names.path import Levels
from limnos.services.lookup.securables import AttachmentTarget, parse_kind
from limnos.services.request.context import Context
from limnos.services.request.name_codecs import codec_for
from limnos.services.request.request_scope import RequestScope
from limnos.services.transactions.operations import TransactionOperation

Exists = Literal["refuse", "skip"]
"""What an item does if its object exists: it is refused, or has nothing to do."""


class ItemBody(AdminRequestBody, frozen=True, tag_field="do"):
    """The base class of items. The JSON field `do` selects the type."""

    @property
    def wave_key(self) -> str:
        """Items of the same type run at the same time."""
        return str(self.__struct_config__.tag)

    @property
    def touches(self) -> tuple[str, ...]:
        """The object that the item changes."""
        return ("\0".join(self._object),)

    @property
    def _object(self) -> Levels:
        return ()

    @property
    def registered_file(self) -> tuple[str, Levels, str] | None:
        """Nothing: the item does not register a table."""
        return None

    @property
    def catalog(self) -> str:
        """The name of the catalog of an item that can be an operation of a transaction."""
        return self._object[0]

    def to_operation(self) -> TransactionOperation:
        """Convert the item to an operation of a transaction. Raises BadRequest if there is none."""
        raise BadRequest(f"Item {self.wave_key} cannot be part of an all-or-nothing job: send it without atomic")


class PathItem(ItemBody, frozen=True):
    """An item about an object below a catalog."""

    path: list[str]

    @property
    def _object(self) -> Levels:
        return tuple(self.path)

    def scope(self, metalake: str) -> RequestScope:
        """Return the scope of the object's catalog. Raises BadRequest for a path without one."""
        if len(self.path) < 2:
            raise BadRequest('Field path must begin with the catalog, as ["main", "raw", "late"]')
        return RequestScope(metalake, self.path[0])

    @property
    def levels(self) -> Levels:
        """The names below the catalog."""
        return check_some_levels(self.path[1:])


class TargetItem(ItemBody, frozen=True):
    """An item about an object of any kind: `kind`, and `on`, its path, or its name outside of catalogs."""

    kind: str
    on: list[str]

    @property
    def _object(self) -> Levels:
        return (self.kind, *self.on)

    def full_name(self, ctx: Context) -> tuple[Kind, str]:
        """Return the kind, and the object's full name as Gravitino spells it. Raises BadRequest."""
        kind = parse_kind(self.kind)
        if not self.on:
            raise BadRequest('Field on names no object: give its path, as ["main", "raw", "late"]')
        if len(self.on) == 1:
            return kind, self.on[0]
        is_leaf = kind is not Kind.NAMESPACE and kind.form is KindGroup.LEAF
        name = FullName(self.on[0], tuple(self.on[1:-1] if is_leaf else self.on[1:]), self.on[-1] if is_leaf else None)
        return kind, render_quoted(name, codec=codec_for(ctx.services.defaults))

    def attachment_target(self, ctx: Context, metalake: str) -> AttachmentTarget:
        """Return the object as the target of a tag or policy."""
        return AttachmentTarget(metalake, *self.full_name(ctx))


async def unless_exists(work: Awaitable[object], exists: str) -> bool:
    """Await a create. Returns False if the object exists and that is no error."""
    try:
        await work
    except AlreadyExists:
        if exists == "skip":
            return False
        raise
    return True
