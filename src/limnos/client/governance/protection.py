# SPDX-License-Identifier: Apache-2.0
"""Calls on the protection of objects against drops (own API)."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from limnos.client.catalog.objects import object_name
from limnos.client.flow import Flow, Resource, S, call, request, verb
from limnos.client.paths import TYPES
from limnos.client.values import ObjectName, Protector


class _ProtectionResponse(msgspec.Struct, kw_only=True):
    protected: bool
    by: ObjectName | None = None
    below: bool = False
    set_by: str | None = None
    set_at: str | None = None


class Protection(Resource[S]):
    """Calls that protect objects against drops."""

    @verb
    def get(self, path: str | Sequence[str], *, kind: str) -> Flow[Protector | None]:
        """Return the object that protects a catalog, namespace, table or view: the object itself or an ancestor; None
        if it is unprotected.
        """
        response = yield from call("GET", (yield from self._url(path, kind)), answer=_ProtectionResponse)
        return (
            None
            if response.by is None
            else Protector(response.by, response.below, response.set_by or "", response.set_at or "")
        )

    @verb
    def set(self, path: str | Sequence[str], *, kind: str, below: bool = False) -> Flow[None]:
        """Protect a catalog, namespace, table or view; with `below` also all objects below it."""
        yield request("PUT", (yield from self._url(path, kind)), body={"below": below})

    @verb
    def clear(self, path: str | Sequence[str], *, kind: str) -> Flow[bool]:
        """Remove an object's own protection. Returns whether the object was protected itself."""
        return (yield from call("DELETE", (yield from self._url(path, kind)), answer=bool, field="removed"))

    def _url(self, path: str | Sequence[str], kind: str) -> Flow[str]:
        name = yield from object_name(self.scope, path, kind=kind)
        return self.own_url("objects", TYPES[kind], name, "protection")
