# SPDX-License-Identifier: Apache-2.0
"""The console as a protocol: its routes below `/console`, and the page for errors outside a handler.

Apart from the forms of the sign-in, its routes accept no credential but the session's cookie. No other protocol reads
that cookie.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from typing import Final, cast

import msgspec

from limnos.http.error_statuses import status_of
from limnos.http.refusals import hidden_metalake, unescape_percent
from limnos.http.request import Request
from limnos.http.response import NO_STORE, Response
from limnos.http.route_targets import ROOM_OFF, Handler
from limnos.http.routing import Route, Router
from limnos.manifests.installed import installed_rooms
from limnos.manifests.manifest import Manifest, load
from limnos.manifests.switches import RoomOff, RoomSet, room_set
from limnos.model.errors import AuthenticationFailed, LimnosError, NotFound
from limnos.model.kinds import Kind
from limnos.names.path import Levels
from limnos.rooms.console.http import audit, home, issuer_sign_in, objects, sessions, static_files
from limnos.rooms.console.http.access import (
    changes,
    members,
    people,
    person_changes,
    person_drops,
    requests,
    restrictions,
)
from limnos.rooms.console.http.access import objects as access_objects
from limnos.rooms.console.http.credentials import secrets, tokens
from limnos.rooms.console.http.errors import error_page
from limnos.rooms.console.http.governance import attachments
from limnos.rooms.console.http.operation import accounts, server_state, storage, tasks
from limnos.rooms.console.http.page_requests import ConsoleRoute, PageHandler, PageRequest, serve
from limnos.rooms.console.http.rendering import render, static_version
from limnos.rooms.console.http.responses import HSTS, SAFE
from limnos.rooms.console.http.site import ROOT, ConsoleSite
from limnos.rooms.console.http.table_parts import seen_as
from limnos.rooms.console.http.trash import drops, trash
from limnos.rooms.console.http.tree_changes import creations, edits, renames
from limnos.services.request.context import Context
from limnos.services.request.request_scope import RequestScope

_MODULES = (
    home,
    objects,
    drops,
    renames,
    creations,
    edits,
    access_objects,
    changes,
    people,
    members,
    person_changes,
    person_drops,
    requests,
    restrictions,
    seen_as,
    attachments,
    tasks,
    server_state,
    storage,
    accounts,
    tokens,
    secrets,
    audit,
    trash,
    sessions,
    issuer_sign_in,
    static_files,
)


def _routes_of(rooms: Iterable[Manifest]) -> tuple[ConsoleRoute, ...]:
    """Return the routes of the console's own pages, and of the pages of other rooms."""
    own_routes = [route for module in _MODULES for route in module.ROUTES]
    room_routes = [
        route for room in rooms for entry in room.pages for route in cast("Sequence[ConsoleRoute]", load(entry.routes))
    ]
    return (*own_routes, *room_routes)


CONSOLE_ROUTES: Final = _routes_of(installed_rooms().manifests)
"""The routes of all pages, of installed rooms as well."""


class PlainErrorPage(msgspec.Struct, frozen=True):
    """The data of a page that has only the message of an error."""

    base: str
    version: str
    message: str
    request_id: str


class ConsoleRouter(Router[Handler]):
    """The routes of the console, one more for all other addresses below its root, and those of pages of rooms that are
    off, which are refused.
    """

    def __init__(
        self, routes: Iterable[Route[Handler]], *, unknown: Route[Handler], refused: Iterable[Route[Handler]] = ()
    ) -> None:
        super().__init__("", routes, refused)
        self.unknown = unknown

    def find(self, segments: list[bytes]) -> tuple[dict[str, Route[Handler]], tuple[bytes, ...]] | None:
        """Return the routes at a path; for an unknown path below the console's root the page that says so."""
        match = super().find(segments)
        if match is None and segments[:1] == [ROOT.strip("/").encode()]:
            return {"GET": self.unknown}, ()
        return match


async def unknown_page(page_request: PageRequest) -> Response:
    """Refuse an address without a page; for a signed-in user with the navigation."""
    with suppress(AuthenticationFailed):
        await page_request.identify()
    raise NotFound("The console has no page at this address", kind="route")


def _refusal(off: RoomOff) -> PageHandler:
    """Return the handler for the pages of a room that is off. A signed-in user sees the navigation."""

    async def refused_page(page_request: PageRequest) -> Response:
        with suppress(AuthenticationFailed):
            await page_request.identify()
        raise NotFound(off.reason, kind="route")

    return refused_page


def _refused_routes(rooms: RoomSet) -> Iterator[ConsoleRoute]:
    for off in rooms.off:
        handler = _refusal(off)
        for path in dict.fromkeys(path for entry in off.manifest.pages for path in entry.paths):
            for method in ("GET", "POST"):
                for pattern in (path, f"{path}/{{path...}}"):
                    yield ConsoleRoute(method=method, path=pattern, handler=handler, operation=ROOM_OFF, is_public=True)


UNKNOWN: Final = ConsoleRoute(
    method="GET", path="/{path...}", handler=unknown_page, operation="unknown-console-page", is_public=True
)


class ConsoleProtocol:
    """The console's routes, as a protocol of the HTTP application."""

    name = "console"

    def __init__(self, site: ConsoleSite, rooms: RoomSet | None = None) -> None:
        """Build the console with the pages of the rooms that are on; by default of those that the site does not
        exclude.
        """
        room_parts = room_set(site.rooms_off) if rooms is None else rooms
        self.site = site
        own_routes = _routes_of(room_parts.on)
        self.router: Router[Handler] = ConsoleRouter(
            [self._route(route) for route in own_routes],
            unknown=self._route(UNKNOWN),
            refused=[self._route(route) for route in _refused_routes(room_parts)],
        )
        self.anonymous = frozenset({ROOM_OFF, *(route.operation for route in (*own_routes, UNKNOWN))})
        """All operations are anonymous for the application, which reads no Authorization header for them; the pages
        read the cookie.
        """

    def _route(self, route: ConsoleRoute) -> Route[Handler]:
        async def handler(request: Request, ctx: Context) -> Response:
            error = partial(error_page, is_page=self._has_page, ask=changes.access_ask)
            response = await serve(request, ctx, route=route, site=self.site, error_page=error)
            if self.site.is_tls:
                response.headers = (*response.headers, HSTS)
            return response

        return Route(
            method=route.method,
            path=ROOT + route.path,
            handler=handler,
            operation=route.operation,
            takes="form",
            query=route.query,
        )

    def _has_page(self, path: str) -> bool:
        """Return whether the path of a URL has a page."""
        match = self.router.find(path.strip("/").encode().split(b"/"))
        return (
            match is not None and "GET" in match[0] and match[0]["GET"].operation not in (UNKNOWN.operation, ROOM_OFF)
        )

    def place_of(self, path: str, request: Request, *, ctx: Context) -> tuple[RequestScope, Kind | None, Levels]:
        """Return the server as the scope of every path."""
        return RequestScope(), None, ()

    def error(self, error: LimnosError, *, request_id: str, operation: str) -> Response:
        """Return a page for an error outside a handler, without data of the caller."""
        visible_error = hidden_metalake(error)
        view = PlainErrorPage(self.site.base, static_version(), unescape_percent(str(visible_error)), request_id)
        headers = ((b"content-type", b"text/html; charset=utf-8"), NO_STORE, *SAFE)
        return Response(status_of(visible_error), render("plain_error.html", view).encode(), headers)
