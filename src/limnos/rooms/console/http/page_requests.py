# SPDX-License-Identifier: Apache-2.0
"""Requests for pages: the caller, the session, and the fields of a form; errors become pages.

Must not know resources. Every route of the console passes through `serve`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final, NamedTuple

import msgspec

from limnos.access.authentication import cookie_credential
from limnos.http.request import Request
from limnos.http.response import Response
from limnos.model.errors import AuthenticationFailed, BadRequest, LimnosError
from limnos.names.path import Levels
from limnos.names.percent import quote, unquote_form
from limnos.rooms.console.http.notices import PARAMETER, signed_location, verified_notice
from limnos.rooms.console.http.responses import redirect
from limnos.rooms.console.http.site import ConsoleSite
from limnos.services.catalog.children import ChildrenPage, ChildrenRequest, children_list
from limnos.services.identity.console_sessions import session_extend
from limnos.services.request.context import Context
from limnos.services.request.request_scope import RequestScope

PageHandler = Callable[["PageRequest"], Awaitable[Response]]
ErrorPage = Callable[["PageRequest", LimnosError], Awaitable[Response]]

PART: Final = b"x-limnos-part"
FIELDS_MAX: Final = 1_000


class ConsoleRoute(NamedTuple):
    """A route of the console: method, path below the console's root, handler, name, and the query parameters it reads.

    `is_public`: the route needs no session. `is_form`: its page is requested by GET by the form of another page.
    """

    method: str
    path: str
    handler: PageHandler
    operation: str
    query: tuple[str, ...] = ()
    is_public: bool = False
    is_form: bool = False

    @property
    def has_form(self) -> bool:
        """Whether requests of this route have the fields of a form."""
        return self.is_form or self.method != "GET"


class PageRequest:
    """A request for a page of the console. `user` is empty without a session.

    - `retry`: the form with the values that were sent; the error page shows it again.
    - `needs`: the values of `ConsolePage.needs` that the caller has the right for, as read by `frame_of`.
    """

    __slots__ = ("_children", "ctx", "needs", "request", "retry", "route", "site", "user")

    def __init__(self, request: Request, ctx: Context, *, route: ConsoleRoute, site: ConsoleSite) -> None:
        self.request = request
        self.ctx = ctx
        self.route = route
        self.site = site
        self.user = ""
        self.retry: msgspec.Struct | None = None
        self.needs: frozenset[str] = frozenset()
        self._children: dict[tuple[RequestScope, Levels, ChildrenRequest], ChildrenPage] = {}

    async def children(self, scope: RequestScope, parent: Levels, *, request: ChildrenRequest) -> ChildrenPage:
        """Return a page of children, cached for this request, so that the tree and the list of the page share one read.
        Raises as `children_list`.
        """
        key = (scope, parent, request)
        page = self._children.get(key)
        if page is None:
            page = self._children[key] = await children_list(self.ctx, scope, parent=parent, request=request)
        return page

    @property
    def base(self) -> str:
        """The path of the console's root as browsers request it, with a proxy's prefix."""
        return self.site.base

    @property
    def is_part(self) -> bool:
        """Whether the page's script requests only an HTML fragment of the page."""
        return self.request.headers.get(PART) == b"1"

    @property
    def now_ms(self) -> int:
        """The store's time in milliseconds since 1970."""
        return self.ctx.services.store.time.now_ms()

    @property
    def own_path(self) -> str:
        """The path and query of this request as the browser sent them, with a proxy's prefix."""
        query = self.request.query_string.decode("latin-1")
        path = self.site.prefix + self.request.path.decode("latin-1")
        return f"{path}?{query}" if query else path

    @property
    def notice(self) -> str:
        """The notice of the form that led to this page; empty if it is old or this session did not sign it."""
        secret = self.site.cookie_of(self.request.headers)
        return verified_notice(self.request.query(PARAMETER), secret, now_ms=self.now_ms)

    async def identify(self) -> None:
        """Authenticate by the session's cookie, and extend the session.

        Raises AuthenticationFailed if there is no valid session.
        """
        text = self.site.cookie_of(self.request.headers)
        if text is None:
            raise AuthenticationFailed("Sign in first")
        credential = cookie_credential(text)
        self.request.credential = self.ctx.credential = credential
        self.user = await session_extend(self.ctx)
        if self.request.loop_use is not None:
            await self.request.loop_use.begin()

    async def form(self) -> dict[str, str]:
        """Return the fields of a form. Raises BadRequest for a repeated field or too many fields, InvalidName for a
        malformed encoding.
        """
        fields: dict[str, str] = {}
        pairs = [pair for pair in (await self.request.body()).split(b"&") if pair]
        if len(pairs) > FIELDS_MAX:
            raise BadRequest(f"The form has more than {FIELDS_MAX} fields")
        for pair in pairs:
            name, _, value = pair.partition(b"=")
            key = unquote_form(name)
            if key in fields:
                raise BadRequest(f"The form has the field {key[:50]} more than once")
            fields[key] = unquote_form(value)
        return fields


async def serve(
    request: Request, ctx: Context, *, route: ConsoleRoute, site: ConsoleSite, error_page: ErrorPage
) -> Response:
    """Serve a page: check the origin of POST requests, authenticate the caller, call the handler, and turn errors into
    pages.
    """
    page_request = PageRequest(request, ctx, route=route, site=site)
    try:
        if route.method != "GET":
            site.require_own_page(request.headers)
        if not route.is_public:
            await page_request.identify()
        response = await route.handler(page_request)
        if route.method != "GET" and not route.is_public:
            _sign_notice(page_request, response)
    except LimnosError as error:
        request.failure = error
        if isinstance(error, AuthenticationFailed) and not route.is_public:
            return _to_sign_in(page_request)
        response = await error_page(page_request, error)
        response.reason = str(error)
    return response


def _sign_notice(page_request: PageRequest, response: Response) -> None:
    """Sign the notice in a form's redirect. Not for public routes, which redirect to targets from their requests."""
    secret = page_request.site.cookie_of(page_request.request.headers)
    if secret is not None:
        now_ms = page_request.now_ms
        response.headers = tuple(
            (name, signed_location(value, secret, now_ms=now_ms) if name == b"location" else value)
            for name, value in response.headers
        )


def _to_sign_in(page_request: PageRequest) -> Response:
    """Return the redirect to the sign-in page, which later opens a page requested by GET. It deletes the cookie."""
    target = f"{page_request.base}/sign-in"
    if (
        page_request.request.method in ("GET", "HEAD")
        and not page_request.is_part
        and page_request.own_path != f"{page_request.base}/"
    ):
        target += f"?next={quote(page_request.own_path)}"
    headers = page_request.request.headers
    ended_cookie = (
        () if page_request.site.cookie_of(headers) is None else (page_request.site.cookie_header(headers, None),)
    )
    return redirect(target, headers=ended_cookie)
