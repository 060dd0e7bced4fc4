# SPDX-License-Identifier: Apache-2.0
"""Calls on tags and their objects (Gravitino REST)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from limnos.client.catalog.objects import attachments_url
from limnos.client.flow import Flow, Resource, S, call, verb
from limnos.client.values import MetadataObject, Tag


class Tags(Resource[S]):
    """Calls on the tags of the client's metalake. Objects inherit tags from their ancestors."""

    @verb
    def list(self) -> Flow[tuple[Tag, ...]]:
        """List the tags that the caller may load."""
        return call("GET", self.gravitino_url("tags") + "?details=true", answer=tuple[Tag, ...], field="tags")

    @verb
    def get(self, name: str) -> Flow[Tag]:
        """Load a tag with the values that it allows."""
        return call("GET", self.gravitino_url("tags", name), answer=Tag, field="tag")

    @verb
    def create(
        self,
        name: str,
        *,
        comment: str | None = None,
        properties: Mapping[str, str] | None = None,
        allowed_values: Sequence[str] | None = None,
    ) -> Flow[Tag]:
        """Create a tag, owned by the caller.

        If `allowed_values` is None, the tag may have any value; if it is empty, it has no values.
        """
        allowed = None if allowed_values is None else [*allowed_values]
        body = {"name": name, "comment": comment, "properties": dict(properties or {}), "allowedValues": allowed}
        return call("POST", self.gravitino_url("tags"), answer=Tag, field="tag", body=body)

    @verb
    def delete(self, name: str) -> Flow[bool]:
        """Delete a tag and detach it from all objects. Returns whether it existed."""
        return call("DELETE", self.gravitino_url("tags", name), answer=bool, field="dropped")

    @verb
    def objects(self, name: str, *, value: str | None = None) -> Flow[tuple[MetadataObject, ...]]:
        """List the objects with a tag, or with the value `value` of that tag, that are visible to the caller."""
        url = self.gravitino_url("tags", name, "objects")
        return call("GET", url, answer=tuple[MetadataObject, ...], field="metadataObjects", query={"value": value})

    @verb
    def on(self, path: str | Sequence[str], *, kind: str, column: str | None = None) -> Flow[tuple[Tag, ...]]:
        """List the tags of an object, or of a column of a table, including inherited tags; `kind` as in
        `Roles.allow`.
        """
        url = yield from attachments_url(self, path, kind=kind, column=column, what="tags")
        return (yield from call("GET", f"{url}?details=true", answer=tuple[Tag, ...], field="tags"))

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
        """Attach the tags `adds` to an object, or to a column of a table, and detach the tags `removes`. Returns the
        names of its tags afterwards.
        """
        url = yield from attachments_url(self, path, kind=kind, column=column, what="tags")
        body = {"tagsToAdd": [*adds], "tagsToRemove": [*removes]}
        return (yield from call("POST", url, answer=tuple[str, ...], field="names", body=body))

    @verb
    def change_values(
        self,
        path: str | Sequence[str],
        *,
        kind: str,
        adds: Iterable[tuple[str, str]] = (),
        removes: Iterable[tuple[str, str]] = (),
    ) -> Flow[tuple[str, ...]]:
        """Add and remove tag values of an object, given as pairs of tag and value.

        A tag whose last value is removed is detached. Returns the names of the object's tags afterwards.
        """
        url = yield from attachments_url(self, path, kind=kind, column=None, what="tags")
        body = {"tagsToAdd": _items(adds), "tagsToRemove": _items(removes)}
        return (yield from call("POST", url, answer=tuple[str, ...], field="names", body=body))


def _items(pairs: Iterable[tuple[str, str]]) -> list[dict[str, str]]:
    return [{"name": name, "value": value} for name, value in pairs]
