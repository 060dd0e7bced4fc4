# SPDX-License-Identifier: Apache-2.0
"""A trie over raw path segments: the time of a match does not depend on the number of routes.

Must not know protocols. A route's path is `/a/{b}/c`; a literal takes precedence over a parameter at the same position.
`{b...}` at the end of a path stands for one or more segments.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final, Generic, Literal, NamedTuple, TypeVar

from limnos.access.actions import Action
from limnos.services.request.request_scope import RequestScope

H = TypeVar("H")
SHORT_BODY_BYTES: Final = 1 << 16
"""The size in bytes up to which a body is read before access is decided: reading takes less than a millisecond."""
LONG_BODY_BYTES: Final = 1 << 20
ANY_BODY_BYTES: Final = 1 << 40
"""The body limit of routes that have only the server's limit."""
RouteBodyKind = Literal["json", "form", "any"]
"""The kinds of bodies that a route may accept."""


class Route(NamedTuple, Generic[H]):
    """A route: method, path and handler. `operation` is its name in metrics and logs.

    - `query`: the parameters that it reads; `query_repeatable`: those that may be repeated; `query_ignored`: those that
      clients send without effect. `http.parameters` refuses others; a read ignores unknown ones except `query_refused`.
    - `deadline_s`: the route's own deadline, instead of the server's.
    - `takes`: the kind of body; a body with another Content-Type is refused.
    - `asks`: the actions that it may need. A body over 64 KiB, up to `body_bytes_max`, is read only if the caller may
      take one of them; a route without actions accepts no such body.
    - `scope`: returns the scope of a request and its context, for a path that does not name the metalake.
    """

    method: str
    path: str
    handler: H
    operation: str
    deadline_s: float | None = None
    body_bytes_max: int = LONG_BODY_BYTES
    takes: RouteBodyKind = "json"
    asks: tuple[Action, ...] = ()
    query: tuple[str, ...] = ()
    query_ignored: tuple[str, ...] = ()
    query_repeatable: tuple[str, ...] = ()
    query_refused: tuple[str, ...] = ()
    scope: Callable[[Any, Any], RequestScope] | None = None

    @property
    def body_limit(self) -> int:
        """The maximum length of a body on this route, in bytes, if it is below the server's limit."""
        return self.body_bytes_max if self.asks else SHORT_BODY_BYTES


class TrieNode(Generic[H]):
    """One path segment in the tree of routes: its children, and the routes that end there by method."""

    __slots__ = ("any", "children", "rest", "routes")

    def __init__(self) -> None:
        self.rest: dict[str, Route[H]] = {}
        """Routes whose last parameter begins here and matches all remaining segments."""
        self.children: dict[bytes, TrieNode[H]] = {}
        self.any: TrieNode[H] | None = None
        self.routes: dict[str, Route[H]] = {}


class Router(Generic[H]):
    """The routes of one protocol below one root.

    `refusing` are routes that only return advice; they are not in the OpenAPI document.
    """

    def __init__(self, root: str, routes: Iterable[Route[H]], refusing: Iterable[Route[H]] = ()) -> None:
        self.root = root
        self.routes = tuple(routes)
        self.tree: TrieNode[H] = TrieNode()
        for route in (*self.routes, *refusing):
            self._add(route)

    def _add(self, route: Route[H]) -> None:
        node = self.tree
        routes = None
        for segment in (self.root + route.path).strip("/").split("/"):
            if segment.endswith("...}"):
                routes = node.rest
            elif segment.startswith("{"):
                node.any = node = node.any or TrieNode()
            else:
                node = node.children.setdefault(segment.encode(), TrieNode())
        routes = node.routes if routes is None else routes
        if route.method in routes:
            raise ValueError(f"Two routes for {route.method} {route.path}")
        routes[route.method] = route

    def find(self, segments: list[bytes]) -> tuple[dict[str, Route[H]], tuple[bytes, ...]] | None:
        """Return the routes at a path, by method, and its parameters; None if there are none."""
        node = self.tree
        params: list[bytes] = []
        for position, segment in enumerate(segments):
            if node.rest:
                return node.rest, (*params, *segments[position:])
            following = node.children.get(segment)
            if following is None or (node.any is not None and not self._has_match(following, segments[position + 1 :])):
                following = node.any
                params.append(segment)
            if following is None:
                return None
            node = following
        return (node.routes, tuple(params)) if node.routes else None

    def reach(self, segments: list[bytes]) -> int:
        """Return the number of leading segments of a path that match. The protocol with the longest match answers for
        an unknown path.
        """
        node = self.tree
        for count, segment in enumerate(segments):
            if node.rest:
                return len(segments)
            following = node.children.get(segment, node.any)
            if following is None:
                return count
            node = following
        return len(segments)

    def _has_match(self, node: TrieNode[H], rest: list[bytes]) -> bool:
        """Return whether a route matches `rest` below this node. If not, `find` tries the parameter at its position."""
        if not rest:
            return bool(node.routes)
        literal = node.children.get(rest[0])
        return (literal is not None and self._has_match(literal, rest[1:])) or (
            node.any is not None and self._has_match(node.any, rest[1:])
        )
