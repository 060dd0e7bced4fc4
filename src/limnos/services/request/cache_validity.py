# SPDX-License-Identifier: Apache-2.0
"""Cache validity: the facts that a cached response depends on, and the check that they are unchanged.

Must not know any wire format. A response about a table is a pure function of a few values in the view. The view
replaces values and never alters them. So a cached response is valid if, after the freshness gate of the new request,
all of these values are still the identical Python objects. A list depends on too many values to compare them: it is
valid as long as the revisions of its zones are unchanged.
"""

from __future__ import annotations

from typing import NamedTuple

from limnos.access.actions import Action
from limnos.access.authentication import Credential
from limnos.model.entities import Token
from limnos.model.kinds import Kind
from limnos.names.path import Levels
from limnos.services.request.request_view import RequestView
from limnos.view.keys import ABSENT, Key, document_key, node_key
from limnos.view.view import StoreView


class CacheDependencies(NamedTuple):
    """The dependencies of a response about one object of a catalog: keys of the view, and the values found under
    them.
    """

    zones: tuple[int, ...]
    scope: object
    settled: object
    credential: object
    token: object
    """The API token of the request; None for other credentials, whose state cannot change."""
    user_status_key: object
    user_status: object
    path_key: object
    path: object
    decision_key: object
    decision: object
    facts: tuple[tuple[Key, object], ...]

    def stands(self, view: StoreView) -> bool:
        """Return whether all dependencies are unchanged, so that the response is still valid.

        Call it after a freshness gate over `zones`, without an await in between.
        """
        zones, view_zones = self.zones, view.zones
        if view.scopes.get(self.scope) is not self.settled or not view.is_paired(zones):
            return False
        server, metalake, catalog = view_zones[zones[0]], view_zones[zones[1]], view_zones[zones[2]]
        if (
            catalog.memo.get(self.decision_key) is not self.decision
            or catalog.paths.get(self.path_key) is not self.path
            or metalake.memo.get(self.user_status_key) is not self.user_status
            or (self.token is not None and server.memo.get(self.credential) is not self.token)
        ):
            return False
        return False not in [view.get(key) is value for key, value in self.facts]


class ZoneDependencies(NamedTuple):
    """The dependencies of a response that may contain any fact of its zones: the revisions of these zones, within an
    epoch of the store.

    Each change of a fact advances the revision of the fact's zone, also if the view has dropped the fact meanwhile.
    """

    zones: tuple[int, ...]
    revisions: tuple[tuple[int, int], ...]
    epoch: int
    facts: tuple[tuple[Key, object], ...] = ()

    def stands(self, view: StoreView) -> bool:
        """Return whether nothing in the zones has changed. Call it as `CacheDependencies.stands`."""
        return (
            view.epoch == self.epoch
            and view.is_paired(self.zones)
            and view.known_revisions(self.zones) == self.revisions
        )


class CacheValidity(NamedTuple):
    """The conditions under which a cached response is valid: its `dependencies` are unchanged, the token has not
    expired, the file exists.
    """

    user: str
    expires_ms: int | None
    """The expiry of the request's token, in milliseconds since 1970 by the store's clock; None if it has none."""
    dependencies: CacheDependencies | ZoneDependencies
    file: str | None = None
    """A local file that must still exist."""


def cache_validity_of(
    request_view: RequestView,
    credential: Credential,
    *,
    about: tuple[Kind, Levels, Action] | None = None,
    document: bool = False,
) -> CacheValidity:
    """Return the conditions under which a response stays valid; call it within the reader that produced the response.

    `about` is the object of the catalog and the action that was decided on it. `document` is true if the response
    contains the object's document. The response depends on its whole zones if `about` is None, if the request names its
    active roles, or if the view does not cache a dependency.
    """
    view, zones = request_view.view, request_view.settled.zones
    token = _token(view, credential)
    expires_ms = credential.expires_ms if token is None else token.expires_at
    exact_dependencies = (
        None
        if about is None or request_view.active is not None
        else _dependencies_of(request_view, credential, token, about, document=document)
    )
    return CacheValidity(
        request_view.user,
        expires_ms,
        exact_dependencies or ZoneDependencies(zones, view.known_revisions(zones), view.epoch),
    )


def _token(view: StoreView, credential: Credential) -> Token | None:
    if credential.user is not None:
        return None
    token: Token = view.memo(0)[credential]
    return token


def _dependencies_of(
    request_view: RequestView,
    credential: Credential,
    token: Token | None,
    about: tuple[Kind, Levels, Action],
    *,
    document: bool,
) -> CacheDependencies | None:
    kind, levels, action = about
    view, settled, path_key = request_view.view, request_view.settled, (levels, kind)
    path = view.paths(request_view.zone).get(path_key)
    if path is None:
        return None
    node_id: int = path[0]
    user_status_key, decision_key = ("user-status", request_view.user), (request_view.user, action, node_id)
    user_status = view.memo(settled.zones[1]).get(user_status_key)
    decision = request_view.memo.get(decision_key)
    keys: tuple[Key, ...] = (node_key(node_id), document_key(node_id)) if document else (node_key(node_id),)
    facts = tuple([(key, view.get(key)) for key in keys])
    if user_status is None or decision is None or any(value is ABSENT for _, value in facts):
        return None
    return CacheDependencies(
        zones=settled.zones,
        scope=request_view.scope,
        settled=settled,
        credential=credential,
        token=token,
        user_status_key=user_status_key,
        user_status=user_status,
        path_key=path_key,
        path=path,
        decision_key=decision_key,
        decision=decision,
        facts=facts,
    )
