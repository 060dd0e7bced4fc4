# SPDX-License-Identifier: Apache-2.0
"""Calls on policies and their objects (Gravitino REST).

A policy's content is Gravitino's JSON, unchanged.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from limnos.client.catalog.objects import attachments_url
from limnos.client.flow import Flow, Resource, S, call, request, verb
from limnos.client.values import AuditInfo, Json, MetadataObject


class Policy(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """A policy. `inherited` is set if the policy was requested for an object."""

    name: str
    policy_type: str
    enabled: bool = True
    content: Json = {}
    comment: str | None = None
    inherited: bool | None = None
    audit: AuditInfo = AuditInfo()


class Policies(Resource[S]):
    """Calls on the policies of the client's metalake. Objects inherit policies from their ancestors."""

    def _url(self, *names: str) -> str:
        return self.gravitino_url("policies", *names)

    @verb
    def list(self) -> Flow[tuple[Policy, ...]]:
        """List the policies that the caller may load."""
        return call("GET", self._url() + "?details=true", answer=tuple[Policy, ...], field="policies")

    @verb
    def get(self, name: str) -> Flow[Policy]:
        """Load a policy with its content, Gravitino's JSON."""
        return call("GET", self._url(name), answer=Policy, field="policy")

    @verb
    def create(
        self, name: str, content: Json, *, policy_type: str = "custom", enabled: bool = True, comment: str | None = None
    ) -> Flow[Policy]:
        """Create a policy, owned by the caller. The content's `supportedObjectTypes` cannot be changed later."""
        body = {"name": name, "policyType": policy_type, "content": content, "enabled": enabled, "comment": comment}
        return call("POST", self._url(), answer=Policy, field="policy", body=body)

    @verb
    def enable(self, name: str, *, enabled: bool = True) -> Flow[None]:
        """Enable a policy, or disable it if `enabled` is false."""
        yield request("PATCH", self._url(name), body={"enable": enabled})

    @verb
    def delete(self, name: str) -> Flow[bool]:
        """Delete a policy and detach it from all objects. Returns whether it existed."""
        return call("DELETE", self._url(name), answer=bool, field="dropped")

    @verb
    def objects(self, name: str) -> Flow[tuple[MetadataObject, ...]]:
        """List the objects with a policy that are visible to the caller."""
        return call("GET", self._url(name, "objects"), answer=tuple[MetadataObject, ...], field="metadataObjects")

    @verb
    def on(self, path: str | Sequence[str], *, kind: str, column: str | None = None) -> Flow[tuple[Policy, ...]]:
        """List the policies of an object, or of a column of a table, including inherited policies; `kind` as in
        `Roles.allow`.
        """
        url = yield from attachments_url(self, path, kind=kind, column=column, what="policies")
        return (yield from call("GET", f"{url}?details=true", answer=tuple[Policy, ...], field="policies"))

    @verb
    def change(
        self,
        path: str | Sequence[str],
        *,
        kind: str,
        column: str | None = None,
        adds: Iterable[str] = (),
        removes: Iterable[str] = (),
    ) -> Flow[tuple[str, ...]]:
        """Attach the policies `adds` to an object, or to a column of a table, and detach the policies `removes`.
        Returns the names of its policies afterwards.
        """
        url = yield from attachments_url(self, path, kind=kind, column=column, what="policies")
        body = {"policiesToAdd": [*adds], "policiesToRemove": [*removes]}
        return (yield from call("POST", url, answer=tuple[str, ...], field="names", body=body))
