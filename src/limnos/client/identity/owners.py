# SPDX-License-Identifier: Apache-2.0
"""Calls on owners (Gravitino REST)."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from limnos.client.catalog.objects import object_name
from limnos.client.flow import Flow, Resource, S, decode, request, verb
from limnos.client.paths import TYPES
from limnos.client.values import Owner


class _OwnerResponse(msgspec.Struct):
    owner: Owner | None = None


class Owners(Resource[S]):
    """Calls on the owners of objects. Each object has one owner, a user or a group."""

    @verb
    def get(self, path: str | Sequence[str], *, kind: str) -> Flow[Owner | None]:
        """Return an object's owner; None if it has none. `kind` is its kind, such as `catalog`, `view` or `role`."""
        name = yield from object_name(self.scope, path, kind=kind)
        reply = yield request("GET", self.gravitino_url("owners", TYPES[kind], name))
        return decode(reply, _OwnerResponse).owner

    @verb
    def set(self, path: str | Sequence[str], owner: str, *, kind: str, group: bool = False) -> Flow[None]:
        """Transfer an object to another user, or with `group` to a group."""
        name = yield from object_name(self.scope, path, kind=kind)
        body = {"name": owner, "type": "GROUP" if group else "USER"}
        yield request("PUT", self.gravitino_url("owners", TYPES[kind], name), body=body)
