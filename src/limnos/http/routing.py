"""A trie over raw path segments: how many routes there are does not matter to the time a match takes.

May import `access`, for names of actions, and the standard library. A route's path is `/a/{b}/c`; a literal wins over a parameter at the same place.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Generic, Literal, NamedTuple, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterable

    from limnos.access.actions import Action

H = TypeVar("H")
SHORT_BODY_BYTES: Final = 1 << 16
"""Bodies up to here are read before it is decided who may send them: reading one costs less than a millisecond."""
LONG_BODY_BYTES: Final = 1 << 20
ANY_BODY_BYTES: Final = 1 << 40
"""For routes that only the server's limit bounds."""
RouteBodyKind = Literal["json", "form", "any"]
"""What a route's body may be."""


class Route(NamedTuple, Generic[H]):
    """What a path and method lead to; `operation` is its name in metrics and logs.

    `query` names the query parameters that it reads, `query_ignored` those that clients send to it and that change nothing here, and
    `query_repeatable` those of `query` that may come several times: `http.parameters` refuses others. A read passes over names that it
    does not know, but for those of `query_refused`.
    `deadline_s` is the route's own, in place of the server's. `takes` is the kind of body: one of another kind, by its
    Content-Type, is refused. `asks` are the actions that it leads to: a body over 64 KiB is read only from somebody who
    could do one of them, and up to `body_bytes_max`; a route that does not say what it leads to takes no such body.
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

    @property
    def body_limit(self) -> int:
        """How long a body of this route may be, whatever the server's limit is."""
        return self.body_bytes_max if self.asks else SHORT_BODY_BYTES


class TrieNode(Generic[H]):
    """One place of the trie."""

    __slots__ = ("any", "children", "routes")

    def __init__(self) -> None:
        self.children: dict[bytes, TrieNode[H]] = {}
        self.any: TrieNode[H] | None = None
        self.routes: dict[str, Route[H]] = {}


class Router(Generic[H]):
    """Routes of one protocol below one root. `refusing` ones only say what to do instead: the contract does not list them."""

    def __init__(self, root: str, routes: Iterable[Route[H]], refusing: Iterable[Route[H]] = ()) -> None:
        self.root = root
        self.routes = tuple(routes)
        self.tree: TrieNode[H] = TrieNode()
        for route in (*self.routes, *refusing):
            self._add(route)

    def _add(self, route: Route[H]) -> None:
        node = self.tree
        for segment in (self.root + route.path).strip("/").split("/"):
            if segment.startswith("{"):
                node.any = node = node.any or TrieNode()
            else:
                node = node.children.setdefault(segment.encode(), TrieNode())
        if route.method in node.routes:
            raise ValueError(f"Two routes for {route.method} {route.path}")
        node.routes[route.method] = route

    def find(self, segments: list[bytes]) -> tuple[dict[str, Route[H]], tuple[bytes, ...]] | None:
        """Return the routes at a path, by method, and its parameters; None when nothing is there."""
        node = self.tree
        params: list[bytes] = []
        for position, segment in enumerate(segments):
            following = node.children.get(segment)
            if following is None or (node.any is not None and not self._leads(following, segments[position + 1 :])):
                following = node.any
                params.append(segment)
            if following is None:
                return None
            node = following
        return (node.routes, tuple(params)) if node.routes else None

    def reach(self, segments: list[bytes]) -> int:
        """Return how many leading segments lead somewhere: who reaches furthest answers for an unknown path."""
        node = self.tree
        for count, segment in enumerate(segments):
            following = node.children.get(segment, node.any)
            if following is None:
                return count
            node = following
        return len(segments)

    def _leads(self, node: TrieNode[H], rest: list[bytes]) -> bool:
        """Say whether a literal step can be followed to a route; else the parameter beside it is meant."""
        if not rest:
            return bool(node.routes)
        literal = node.children.get(rest[0])
        return (literal is not None and self._leads(literal, rest[1:])) or (
            node.any is not None and self._leads(node.any, rest[1:])
        )
