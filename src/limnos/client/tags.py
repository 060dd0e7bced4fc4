"""Calls on tags: making them, and what they are on (Gravitino REST).

May import this room.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from limnos.client.flow import Flow, Resource, S, decode, request, verb
from limnos.client.metalakes import DropAnswer
from limnos.client.objects import object_name
from limnos.client.paths import TYPES, metalake_url
from limnos.client.values import MetadataObject, Tag


class NamesAnswer(msgspec.Struct):
    """Names of what is on an object."""

    names: tuple[str, ...]


class _TagAnswer(msgspec.Struct):
    tag: Tag


class _TagsAnswer(msgspec.Struct):
    tags: tuple[Tag, ...]


class ObjectsAnswer(msgspec.Struct, rename="camel"):
    """What something is on."""

    metadata_objects: tuple[MetadataObject, ...]


class Tags(Resource[S]):
    """The tags of the client's metalake. What lies below an object inherits its tags."""

    __slots__ = ()

    @verb
    def list(self) -> Flow[tuple[Tag, ...]]:
        """List the tags the caller may load."""
        reply = yield request("GET", metalake_url(self.scope.metalake, "tags") + "?details=true")
        return decode(reply, _TagsAnswer).tags

    @verb
    def get(self, name: str) -> Flow[Tag]:
        """Load a tag."""
        reply = yield request("GET", metalake_url(self.scope.metalake, "tags", name))
        return decode(reply, _TagAnswer).tag

    @verb
    def create(
        self, name: str, *, comment: str | None = None, properties: Mapping[str, str] | None = None,
        allowed_values: Sequence[str] | None = None,
    ) -> Flow[Tag]:  # fmt: skip
        """Make a tag, which the caller then owns. It has any values where it is attached, or those allowed; none when that list is empty."""
        allowed = None if allowed_values is None else [*allowed_values]
        body = {"name": name, "comment": comment, "properties": dict(properties or {}), "allowedValues": allowed}
        reply = yield request("POST", metalake_url(self.scope.metalake, "tags"), body=body)
        return decode(reply, _TagAnswer).tag

    @verb
    def delete(self, name: str) -> Flow[bool]:
        """Delete a tag and tell whether it was there."""
        reply = yield request("DELETE", metalake_url(self.scope.metalake, "tags", name))
        return decode(reply, DropAnswer).dropped

    @verb
    def objects(self, name: str, *, value: str | None = None) -> Flow[tuple[MetadataObject, ...]]:
        """List what a tag is on, or where it has a value, of what the caller may know of."""
        url = metalake_url(self.scope.metalake, "tags", name, "objects")
        reply = yield request("GET", url, query={"value": value})
        return decode(reply, ObjectsAnswer).metadata_objects

    @verb
    def on(self, path: str | Sequence[str], *, kind: str) -> Flow[tuple[Tag, ...]]:
        """List the tags of an object, those that it inherits among them; `kind` as in `Roles.allow`."""
        name = yield from object_name(self.scope, path, kind=kind)
        url = metalake_url(self.scope.metalake, "objects", TYPES[kind], name, "tags")
        reply = yield request("GET", f"{url}?details=true")
        return decode(reply, _TagsAnswer).tags

    @verb
    def change(
        self, path: str | Sequence[str], *, kind: str, adds: Iterable[str] = (), removes: Iterable[str] = ()
    ) -> Flow[tuple[str, ...]]:
        """Attach tags to an object and detach others; returns the names of those that are on it then."""
        name = yield from object_name(self.scope, path, kind=kind)
        url = metalake_url(self.scope.metalake, "objects", TYPES[kind], name, "tags")
        reply = yield request("POST", url, body={"tagsToAdd": [*adds], "tagsToRemove": [*removes]})
        return decode(reply, NamesAnswer).names

    @verb
    def change_values(
        self, path: str | Sequence[str], *, kind: str, adds: Iterable[tuple[str, str]] = (), removes: Iterable[tuple[str, str]] = (),
    ) -> Flow[tuple[str, ...]]:  # fmt: skip
        """Add values of tags to an object and take others off, as pairs of a tag and a value; a tag whose last value goes is detached."""
        name = yield from object_name(self.scope, path, kind=kind)
        url = metalake_url(self.scope.metalake, "objects", TYPES[kind], name, "tags")
        body = {"tagsToAdd": _items(adds), "tagsToRemove": _items(removes)}
        return decode((yield request("POST", url, body=body)), NamesAnswer).names


def _items(pairs: Iterable[tuple[str, str]]) -> list[dict[str, str]]:
    return [{"name": name, "value": value} for name, value in pairs]
