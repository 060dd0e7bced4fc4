"""Calls on tags: making them, and what they are on (Gravitino REST).

May import this room.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from limnos.client.flow import Flow, Resource, S, call, verb
from limnos.client.objects import object_name
from limnos.client.paths import TYPES
from limnos.client.values import MetadataObject, Tag


class Tags(Resource[S]):
    """The tags of the client's metalake. What lies below an object inherits its tags."""

    __slots__ = ()

    @verb
    def list(self) -> Flow[tuple[Tag, ...]]:
        """List the tags the caller may load."""
        return call("GET", self.gravitino_url("tags") + "?details=true", answer=tuple[Tag, ...], field="tags")

    @verb
    def get(self, name: str) -> Flow[Tag]:
        """Load a tag."""
        return call("GET", self.gravitino_url("tags", name), answer=Tag, field="tag")

    @verb
    def create(
        self, name: str, *, comment: str | None = None, properties: Mapping[str, str] | None = None,
        allowed_values: Sequence[str] | None = None,
    ) -> Flow[Tag]:  # fmt: skip
        """Make a tag, which the caller then owns. It has any values where it is attached, or those allowed; none when that list is empty."""
        allowed = None if allowed_values is None else [*allowed_values]
        body = {"name": name, "comment": comment, "properties": dict(properties or {}), "allowedValues": allowed}
        return call("POST", self.gravitino_url("tags"), answer=Tag, field="tag", body=body)

    @verb
    def delete(self, name: str) -> Flow[bool]:
        """Delete a tag and tell whether it was there."""
        return call("DELETE", self.gravitino_url("tags", name), answer=bool, field="dropped")

    @verb
    def objects(self, name: str, *, value: str | None = None) -> Flow[tuple[MetadataObject, ...]]:
        """List what a tag is on, or where it has a value, of what the caller may know of."""
        url = self.gravitino_url("tags", name, "objects")
        return call("GET", url, answer=tuple[MetadataObject, ...], field="metadataObjects", query={"value": value})

    @verb
    def on(self, path: str | Sequence[str], *, kind: str) -> Flow[tuple[Tag, ...]]:
        """List the tags of an object, those that it inherits among them; `kind` as in `Roles.allow`."""
        name = yield from object_name(self.scope, path, kind=kind)
        url = self.gravitino_url("objects", TYPES[kind], name, "tags")
        return (yield from call("GET", f"{url}?details=true", answer=tuple[Tag, ...], field="tags"))

    @verb
    def change(
        self, path: str | Sequence[str], *, kind: str, adds: Iterable[str] = (), removes: Iterable[str] = ()
    ) -> Flow[tuple[str, ...]]:
        """Attach tags to an object and detach others; returns the names of those that are on it then."""
        name = yield from object_name(self.scope, path, kind=kind)
        url = self.gravitino_url("objects", TYPES[kind], name, "tags")
        body = {"tagsToAdd": [*adds], "tagsToRemove": [*removes]}
        return (yield from call("POST", url, answer=tuple[str, ...], field="names", body=body))

    @verb
    def change_values(
        self, path: str | Sequence[str], *, kind: str, adds: Iterable[tuple[str, str]] = (), removes: Iterable[tuple[str, str]] = (),
    ) -> Flow[tuple[str, ...]]:  # fmt: skip
        """Add values of tags to an object and take others off, as pairs of a tag and a value; a tag whose last value goes is detached."""
        name = yield from object_name(self.scope, path, kind=kind)
        url = self.gravitino_url("objects", TYPES[kind], name, "tags")
        body = {"tagsToAdd": _items(adds), "tagsToRemove": _items(removes)}
        return (yield from call("POST", url, answer=tuple[str, ...], field="names", body=body))


def _items(pairs: Iterable[tuple[str, str]]) -> list[dict[str, str]]:
    return [{"name": name, "value": value} for name, value in pairs]
