"""Calls that explain access decisions (own API).

May import `names` and this room.
"""

from __future__ import annotations

from collections.abc import Sequence

from limnos.client.errors import ArgumentError
from limnos.client.flow import Flow, Resource, S, call, verb
from limnos.client.paths import parts_of
from limnos.client.values import Explanation, Parts
from limnos.names import display


class Access(Resource[S]):
    """Explanations of access decisions."""

    __slots__ = ()

    @verb
    def explain(
        self, action: str, path: str | Sequence[str] = (), *, user: str | None = None, kind: str | None = None,
        through: Sequence[str | Sequence[str]] = (),
    ) -> Flow[Explanation]:  # fmt: skip
        """Explain a decision without acting: the caller's own, or another user's with the right to manage grants.

        An empty `path` is the metalake. `through` are the views that a table or view is read through, the outermost
        first, each as a path that may begin with the catalog.
        """
        parts = parts_of(path, least=0) if path else ()
        body: dict[str, object] = {"user": user, "action": action, "path": parts, "kind": kind}
        if through:
            body["through"] = [_below(view, parts[:1]) for view in through]
        return call("POST", self.own_url("access", "explain"), answer=Explanation, body=body)


def _below(view: str | Sequence[str], catalog: Parts) -> Parts:
    """Return a view's path below its catalog, which must be the catalog of the object. Raises ArgumentError."""
    parts = parts_of(view, least=2)
    if catalog and (parts[:1] != catalog or len(parts) < 3):
        text = display.render((*catalog, *parts))
        raise ArgumentError(
            f"'{display.render(parts)}' is no view of catalog {catalog[0]}, and views lend in their own alone: "
            f"give its whole path, as {text}"
        )
    return parts[1:]
