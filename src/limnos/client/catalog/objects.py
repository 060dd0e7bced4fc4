# SPDX-License-Identifier: Apache-2.0
"""Names of objects as one string, and the kind of object that a path names.

A namespace and a table or view may have the same path.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Literal

import msgspec

from limnos.client.catalog.children import PrincipalInfo
from limnos.client.catalog.lance import lance_request
from limnos.client.catalog.schemas import find_schema_content
from limnos.client.errors import ArgumentError, ClientError, DeniedError, NotFoundError, RefusedError
from limnos.client.flow import OWN, ClientScope, Flow, Resource, S, call, request, segments, verb
from limnos.client.paths import (
    APART_WORDS,
    LEAVES,
    TYPES,
    catalog_name,
    declared_url,
    full_name,
    metalake_url,
    namespace_url,
    parts_of,
    parts_of_full_name,
    table_parts,
    table_url,
    view_url,
)
from limnos.client.server import DEFAULT_SEPARATOR, separator
from limnos.client.values import Json, Parts
from limnos.model.declared_kinds import DECLARED
from limnos.names import display
from limnos.names.logical import LogicalCodec

_UNTYPED: Final = frozenset({"function", "datatype", "synonym", "external_dataset"})
"""Kinds without commands of their own: another object of the same path is meant."""


class KnownObject(msgspec.Struct, frozen=True):
    """An object of which the caller may know: its kind, and its owner if it has one."""

    kind: str
    owner: PrincipalInfo | None = None


class KnownObjects(msgspec.Struct, frozen=True):
    """The objects at a path of which the caller may know; not `complete` in a catalog of an external system."""

    objects: tuple[KnownObject, ...] = ()
    complete: bool = True


def known_objects(scope: ClientScope, path: Parts) -> Flow[KnownObjects]:
    """Return the objects at a path of which the caller may know. Raises DeniedError for a caller who is not a user of
    the metalake, and NotFoundError for a missing metalake or a server of an earlier release.
    """
    url = f"{OWN}/metalakes{segments(scope.metalake, 'access', 'objects')}"
    return (yield from call("GET", url, answer=KnownObjects, query={"path": display.render(path)}))


def object_name(scope: ClientScope, path: str | Sequence[str], *, kind: str, column: str | None = None) -> Flow[str]:
    """Return Gravitino's `fullName` of an object, or of a column of it. The separator is requested only if it is
    needed. Raises ArgumentError for a column of anything but a table.
    """
    if column is not None and kind != "table":
        raise ArgumentError(f"a {kind} has no columns with tags and policies: give the path of a table")
    if kind == "metalake" or kind in APART_WORDS:
        return path if isinstance(path, str) else path[-1]
    if kind == "catalog":
        return catalog_name(path)
    parts = table_parts(path) if kind == "table" else parts_of(path, least=2 if kind == "namespace" else 3)
    levels = len(parts) - (2 if kind in LEAVES else 1)
    level_separator = (yield from separator(scope)) if levels > 1 else DEFAULT_SEPARATOR
    return full_name(parts, kind, separator=level_separator, column=column)


def attachments_url(
    resource: Resource[S],
    path: str | Sequence[str],
    *,
    kind: str,
    column: str | None,
    what: Literal["tags", "policies"],
) -> Flow[str]:
    """Return the path of the tags or policies of an object, or of a column of it. Raises as `object_name`."""
    name = yield from object_name(resource.scope, path, kind=kind, column=column)
    return resource.gravitino_url("objects", TYPES[kind] if column is None else "column", name, what)


class Objects(Resource[S]):
    """Calls that determine the kind of an object."""

    @verb
    def kind(self, path: str | Sequence[str]) -> Flow[str]:
        """Return the kind of the object with a path: `catalog`, `namespace`, `table`, `view`, `topic`, `fileset`,
        `model`, or a declared kind.

        Raises NotFoundError, DeniedError, or ArgumentError if objects of two kinds have the path.
        """
        parts = parts_of(path)
        if len(parts) == 1:
            return "catalog"
        usual, url = self._candidates(parts)[-1]
        try:
            known = yield from known_objects(self.scope, parts)
        except NotFoundError:
            return (yield from self._kind_by_requests(parts))
        words = [each.kind for each in known.objects]
        words = [word for word in words if word not in _UNTYPED] or words
        if len(words) > 1:
            raise _ambiguous(parts, words)
        if words:
            return words[0]
        if not known.complete:
            # First, because requests for objects of each kind would be failed reads in the audit.
            if content := (yield from find_schema_content(self.scope, parts[0])):
                return "namespace" if len(parts) == 2 else content
            return (yield from self._kind_by_requests(parts))
        try:
            yield request("GET", url)
        except NotFoundError as error:
            raise _most_specific(parts, [error, error]) from error
        return usual

    def _kind_by_requests(self, parts: Parts) -> Flow[str]:
        """Return the kind of an object by asking for an object of each kind, as in a catalog of an external system."""
        names: list[str] = []
        problems: list[ClientError] = []
        for kind, url in self._candidates(parts):
            try:
                yield request("GET", url)
                names.append(kind)
            except (NotFoundError, DeniedError) as error:
                problems.append(error)
            except RefusedError as error:
                if error.code != "unsupported":
                    raise
                problems.append(error)
        if len(names) > 1:
            raise _ambiguous(parts, names)
        if not names and (yield from self._is_lance(parts)):
            return "table"
        if not names and (current := (yield from find_schema_content(self.scope, parts[0]))):
            return "namespace" if len(parts) == 2 else current
        if not names:
            raise _most_specific(parts, problems)
        return names[0]

    @verb
    def path(self, name: str, *, kind: str) -> Flow[str]:
        """Return the path of an object in display form, `main.raw.nyc.late`, for Gravitino's `fullName` of it,
        `main.raw:nyc.late`. A name with several readings is returned unchanged, as that of a role or tag is.
        """
        is_plain = name.replace(".", "").replace("_", "").isalnum()
        level_separator = DEFAULT_SEPARATOR if is_plain else (yield from separator(self.scope))
        parts = parts_of_full_name(name, kind, separator=level_separator)
        return name if parts is None else display.render(parts)

    @verb
    def alter(self, path: str | Sequence[str], *, kind: str, updates: Sequence[Json]) -> Flow[None]:
        """Send Gravitino's updates of an object, such as `{"@type": "updateComment", "newComment": "…"}`.

        Objects of declared kinds, which Gravitino does not have, are changed over the own API. They have one more
        update: `{"@type": "setField", "field": "url", "value": "…"}`.
        """
        yield from self._alter(path, kind=kind, updates=updates)

    def _alter(self, path: str | Sequence[str], *, kind: str, updates: Sequence[Json]) -> Flow[None]:
        if (url := self._declared_object(path, kind)) is not None:
            yield request("PUT", url, body=_declared_changes(updates))
            return
        url = yield from self._gravitino_object(path, kind)
        yield request("PUT", url, body={"updates": [*updates]})

    @verb
    def rename(self, path: str | Sequence[str], target: str, *, kind: str) -> Flow[Parts]:
        """Rename a metalake, catalog, tag, fileset or model where it is. Returns its new path.

        Raises ArgumentError if `target` has another parent.
        """
        source = (path,) if kind in {"metalake", *APART_WORDS} and isinstance(path, str) else parts_of(path)
        new = (target,) if len(source) == 1 else parts_of(target)
        if new[:-1] != source[:-1]:
            raise ArgumentError(f"a {kind} stays in its namespace: give another name in {display.render(source[:-1])}")
        yield from self._alter(path, kind=kind, updates=[{"@type": "rename", "newName": new[-1]}])
        return new

    def _declared_object(self, path: str | Sequence[str], kind: str) -> str | None:
        """Return the URL of an object of a declared kind; None for other kinds."""
        plural = next((each.plural for each in DECLARED if each.kind.word == kind), None)
        if plural is None:
            return None
        *namespace, name = parts_of(path, least=3)
        return declared_url(self.scope.metalake, plural, namespace=namespace, name=name)

    def _gravitino_object(self, path: str | Sequence[str], kind: str) -> Flow[str]:
        """Return the Gravitino URL of an object."""
        if kind == "metalake" or kind in APART_WORDS:
            name = path if isinstance(path, str) else path[-1]
            return metalake_url(name) if kind == "metalake" else self.gravitino_url(f"{kind}s", name)
        if kind == "catalog":
            return self.gravitino_url("catalogs", catalog_name(path))
        parts = parts_of(path)
        levels = parts[1:] if kind == "namespace" else parts[1:-1]
        level_separator = (yield from separator(self.scope)) if len(levels) > 1 else DEFAULT_SEPARATOR
        schema = LogicalCodec(level_separator, policy="unrestricted").join(levels)
        below = () if kind == "namespace" else (f"{kind}s", parts[-1])
        return self.gravitino_url("catalogs", parts[0], "schemas", schema, *below)

    def _is_lance(self, parts: Parts) -> Flow[bool]:
        """Return whether the path names a Lance table that is visible to the caller."""
        try:
            yield lance_request(self.scope.metalake, parts, action="exists")
        except (NotFoundError, DeniedError):
            return False
        return True

    def _candidates(self, parts: Parts) -> tuple[tuple[str, str], ...]:
        namespace = ("namespace", namespace_url(self.scope.metalake, parts))
        if len(parts) == 2:
            return (namespace,)
        declared = tuple(
            (each.kind.word, declared_url(self.scope.metalake, each.plural, namespace=parts[:-1], name=parts[-1]))
            for each in DECLARED
        )
        table = ("table", f"{table_url(self.scope.metalake, parts)}?snapshots=refs")
        return (namespace, *declared, ("view", view_url(self.scope.metalake, parts)), table)


def _declared_changes(updates: Sequence[Json]) -> Json:
    """Return Gravitino's updates as the body of a change of an object of a declared kind."""
    sets: dict[str, object] = {}
    removes: list[object] = []
    body: Json = {}
    for each in updates:
        match each["@type"]:
            case "rename":
                body["name"] = each["newName"]
            case "updateComment":
                body |= {"comment": each["newComment"]} if each["newComment"] else {"clears_comment": True}
            case "setProperty":
                sets[str(each["property"])] = each["value"]
            case "removeProperty":
                removes.append(each["property"])
            case "setField":
                body[str(each["field"])] = each["value"]
            case other:
                raise ArgumentError(f"objects of this kind have no update {other}")
    return {**body, **({"sets": sets} if sets else {}), **({"removes": removes} if removes else {})}


def _ambiguous(parts: Parts, words: Sequence[str]) -> ArgumentError:
    first, last = sorted((words[0], words[-1]), key=lambda word: word != "namespace")
    return ArgumentError(f"'{display.render(parts)}' is both a {first} and a {last}; name its kind")


def _most_specific(parts: Parts, problems: list[ClientError]) -> ClientError:
    """Choose the error to raise: a DeniedError, which has a reason, takes precedence over NotFoundErrors.

    If all are DeniedErrors, the last error (of the table) is used: most paths with three or more parts name a table.
    """
    for problem in reversed(problems):
        if isinstance(problem, DeniedError):
            return problem
    first = problems[0]
    if len(problems) == 1:
        return first
    message = f"there is no namespace, table or view '{display.render(parts)}', or you may not know of it"
    return NotFoundError(message, status=first.status, code="not-found", request_id=first.request_id)
