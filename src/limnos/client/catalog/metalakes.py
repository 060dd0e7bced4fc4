# SPDX-License-Identifier: Apache-2.0
"""Calls on metalakes (Gravitino REST)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from limnos.client.flow import API, Flow, Resource, S, call, request, verb
from limnos.client.paths import metalake_url
from limnos.client.values import Json, Metalake


def update_body(
    *,
    name: str | None = None,
    comment: str | None = None,
    updates: Mapping[str, str] | None = None,
    removals: Iterable[str] = (),
) -> Json:
    """Encode changes of a metalake or catalog as Gravitino's list of updates."""
    changes: list[Json] = []
    if name is not None:
        changes.append({"@type": "rename", "newName": name})
    if comment is not None:
        changes.append({"@type": "updateComment", "newComment": comment})
    changes += [{"@type": "setProperty", "property": key, "value": value} for key, value in (updates or {}).items()]
    changes += [{"@type": "removeProperty", "property": key} for key in removals]
    return {"updates": changes}


class Metalakes(Resource[S]):
    """Calls on the metalakes of the server, over Gravitino REST."""

    @verb
    def list(self) -> Flow[tuple[Metalake, ...]]:
        """List the metalakes of which the caller is a member."""
        return call("GET", f"{API}/metalakes", answer=tuple[Metalake, ...], field="metalakes")

    @verb
    def get(self, name: str) -> Flow[Metalake]:
        """Load a metalake with its properties."""
        return call("GET", metalake_url(name), answer=Metalake, field="metalake")

    @verb
    def create(
        self, name: str, *, comment: str | None = None, properties: Mapping[str, str] | None = None
    ) -> Flow[Metalake]:
        """Create a metalake. Only service admins may do this."""
        body = {"name": name, "comment": comment, "properties": dict(properties or {})}
        return call("POST", f"{API}/metalakes", answer=Metalake, field="metalake", body=body)

    @verb
    def alter(
        self,
        metalake: str,
        *,
        name: str | None = None,
        comment: str | None = None,
        updates: Mapping[str, str] | None = None,
        removals: Iterable[str] = (),
    ) -> Flow[Metalake]:
        """Rename a metalake, or change its comment or properties, in one request."""
        body = update_body(name=name, comment=comment, updates=updates, removals=removals)
        return call("PUT", metalake_url(metalake), answer=Metalake, field="metalake", body=body)

    @verb
    def enable(self, name: str) -> Flow[None]:
        """Mark a metalake as in use, so that requests for its objects are answered again."""
        yield request("PATCH", metalake_url(name), body={"inUse": True})

    @verb
    def disable(self, name: str) -> Flow[None]:
        """Disable a metalake: requests for its objects are refused, and it can be dropped."""
        yield request("PATCH", metalake_url(name), body={"inUse": False})

    @verb
    def drop(self, name: str, *, force: bool = False) -> Flow[bool]:
        """Drop a metalake. Returns whether it existed. `force` also drops an enabled metalake, or a metalake with
        catalogs.
        """
        query = {"force": "true" if force else None}
        return call("DELETE", metalake_url(name), answer=bool, field="dropped", query=query)
