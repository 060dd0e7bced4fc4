# SPDX-License-Identifier: Apache-2.0
"""Calls on requests for access: a user asks for a preset on an object, and who may grant it there answers (own API)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import msgspec

from limnos.client.flow import Flow, Resource, S, call, verb
from limnos.client.paths import parts_of
from limnos.client.values import Parts
from limnos.model.presets import PresetName


class AccessRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A request of `user` for a preset on the object of `kind` and `path`, which begins with the catalog.

    `id` names it in lists; it is the same for the same user and object. `refusal` says why the caller cannot grant it.
    Requests of others are open; one's own have the answer, too.
    """

    id: str
    user: str
    preset: PresetName
    kind: str
    path: Parts
    requested_at: str
    reason: str = ""
    refusal: str = ""
    state: Literal["open", "granted", "declined"] = "open"
    answered_by: str = ""
    answered_at: str | None = None
    note: str = ""


class AccessRequestAnswer(msgspec.Struct, frozen=True):
    """The result of an answer: whether the request existed, and the role that got the preset's privileges."""

    existed: bool
    role: str | None = None


class _RequestsPage(msgspec.Struct):
    requests: tuple[AccessRequest, ...]
    after: str | None = None


class AccessRequests(Resource[S]):
    """Calls that ask for access and withdraw such requests, and that list and answer the requests of others."""

    @verb
    def list(self, *, limit: int = 100_000) -> Flow[tuple[AccessRequest, ...]]:
        """List the open requests that the caller may answer, the newest first, at most `limit`."""
        result: tuple[AccessRequest, ...] = ()
        after: str | None = None
        while len(result) < limit:
            query = {"after": after, "limit": str(min(100, limit - len(result)))}
            page = yield from call("GET", self.own_url("access", "requests"), answer=_RequestsPage, query=query)
            result += page.requests
            after = page.after
            if after is None:
                break
        return result

    @verb
    def own(self) -> Flow[tuple[AccessRequest, ...]]:
        """List the caller's own requests: the open ones, then those answered in the last 30 days, the newest first."""
        url = self.own_url("access", "requests")
        return (yield from call("GET", url, answer=_RequestsPage, query={"own": "true"})).requests

    @verb
    def create(
        self, path: str | Sequence[str], *, kind: str, preset: PresetName = "reader", reason: str = ""
    ) -> Flow[None]:
        """Ask for a preset on an object. It need not be one that the caller may see, and replaces an earlier request of
        the caller for the object. `reason` is for those who answer, of at most 500 characters.
        """
        body = {"kind": kind, "path": parts_of(path), "preset": preset, **({"reason": reason} if reason else {})}
        yield from call("POST", self.own_url("access", "requests"), answer=bool, field="requested", body=body)

    @verb
    def withdraw(self, request: AccessRequest) -> Flow[None]:
        """Withdraw an open request of the caller. Raises NotFoundError if it was answered meanwhile."""
        body = {"kind": request.kind, "path": request.path}
        url = self.own_url("access", "requests", "withdraw")
        yield from call("POST", url, answer=bool, field="withdrawn", body=body)

    @verb
    def grant(self, request: AccessRequest) -> Flow[AccessRequestAnswer]:
        """Grant a request. Raises NotFoundError if it was answered or replaced meanwhile."""
        return (yield from self._answer(request, "grant"))

    @verb
    def decline(self, request: AccessRequest, *, note: str = "") -> Flow[AccessRequestAnswer]:
        """Decline a request, with a note for the user of at most 500 characters. The answer says whether it still
        existed.
        """
        return (yield from self._answer(request, "decline", note=note))

    def _answer(
        self, request: AccessRequest, answer: Literal["grant", "decline"], *, note: str = ""
    ) -> Flow[AccessRequestAnswer]:
        body = {
            "answer": answer,
            "user": request.user,
            "kind": request.kind,
            "path": request.path,
            "preset": request.preset,
            **({"note": note} if note else {}),
        }
        url = self.own_url("access", "requests", "answer")
        return (yield from call("POST", url, answer=AccessRequestAnswer, body=body))
