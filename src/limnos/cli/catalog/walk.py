# SPDX-License-Identifier: Apache-2.0
"""The objects below a catalog or namespace: read level by level, and drawn as a tree.

Reads at most a given number of objects, so that a large lake does not hold a terminal.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from limnos.client import ClientError, DeniedError, NotFoundError, UnauthenticatedError
from limnos.client.catalog.children import ChildInfo
from limnos.client.values import Catalog, Parts
from limnos.names import display

if TYPE_CHECKING:
    from limnos.client import Client

OBJECTS_MAX: Final = 10_000
"""The number of objects after which a walk ends."""


@dataclass(slots=True)
class Walk:
    """The objects below a path, parents before their children, and whether these are all."""

    objects: list[ChildInfo] = field(default_factory=list)
    is_complete: bool = True
    failures: dict[str, ClientError] = field(default_factory=dict)
    """The catalogs of which something could not be read, with the first error of each."""


def walk(
    client: Client,
    path: Sequence[str],
    *,
    depth: int | None = None,
    objects_max: int = OBJECTS_MAX,
    skips_failures: bool = False,
) -> Walk:
    """Read what is below a catalog or namespace; without a path all catalogs. `depth` limits the levels.

    With `skips_failures`, a walk over all catalogs goes on after an error that the server answered for one of them,
    such as that of a broken external system. Without it, raises that error.
    """
    done = Walk()
    if path or not skips_failures:
        _walk_into(client, tuple(path), done=done, depth=depth, objects_max=objects_max)
        return done
    below = None if depth is None else depth - 1
    for catalog in children(client, ()):
        if len(done.objects) >= objects_max:
            done.is_complete = False
            break
        done.objects.append(catalog)
        if below == 0:
            continue
        try:
            _walk_into(client, catalog.path, done=done, depth=below, objects_max=objects_max)
        except (UnauthenticatedError, DeniedError):
            raise
        except ClientError as error:
            if not error.status:  # the server itself does not answer
                raise
            done.failures[catalog.name] = error
    return done


def _walk_into(client: Client, path: Parts, *, done: Walk, depth: int | None, objects_max: int) -> None:
    for child in children(client, path):
        if len(done.objects) >= objects_max:
            done.is_complete = False
            return
        done.objects.append(child)
        if child.kind in {"catalog", "namespace"} and (depth is None or depth > 1):
            _walk_into(
                client, child.path, done=done, depth=None if depth is None else depth - 1, objects_max=objects_max
            )


def children(client: Client, path: Parts) -> list[ChildInfo]:
    """List the objects directly below a path, namespaces first; without a path the catalogs.

    A catalog of a directory of Lance tables has no nodes: its content is listed by its own protocol.
    """
    if not path:
        known_catalogs = {each.name: each for each in client.catalogs.list()}
        return [_catalog(name, known_catalogs.get(name)) for name in client.catalogs.names()]
    try:
        known = list(client.children.list(path))
    except NotFoundError:
        known = _lance_children(client, path)
        if not known:
            raise
    known = known or _lance_children(client, path)
    return sorted(known, key=lambda child: (child.kind != "namespace", child.name))


def _catalog(name: str, catalog: Catalog | None) -> ChildInfo:
    """Return a catalog as a child. `catalog` is None if the caller may only use objects in it."""
    if catalog is None:
        return ChildInfo(kind="catalog", name=name, path=(name,))
    return ChildInfo(kind="catalog", name=name, path=(name,), format=catalog.provider, comment=catalog.comment)


def _lance_children(client: Client, path: Parts) -> list[ChildInfo]:
    try:
        namespaces = [ChildInfo(kind="namespace", name=each[-1], path=each) for each in client.lance.namespaces(path)]
        return namespaces + [ChildInfo(kind="table", name=each[-1], path=each) for each in client.lance.list(path)]
    except ClientError:
        return []


def tree_lines(objects: Sequence[ChildInfo], *, above: int, is_ascii: bool) -> Iterator[str]:
    """Draw a walk's objects as a tree. `above` is the number of parts of the path that was walked."""
    branch, last, bar = ("|-- ", "`-- ", "|   ") if is_ascii else ("├── ", "└── ", "│   ")
    lasts: list[bool] = []
    for number, child in enumerate(objects):
        level = len(child.path) - above - 1
        is_last = not any(True for _ in _siblings_after(objects, number, length=len(child.path)))
        lasts[level:] = [is_last]
        lead = "".join("    " if each else bar for each in lasts[:level])
        kind = "" if child.kind in {"catalog", "namespace"} else f"  ({child.format or child.kind})"
        yield f"{lead}{last if is_last else branch}{display.render(child.path[-1:])}{kind}"


def _siblings_after(objects: Sequence[ChildInfo], number: int, *, length: int) -> Iterator[ChildInfo]:
    """Yield the next sibling of an object, if it has one."""
    for later in objects[number + 1 :]:
        if len(later.path) < length:
            return
        if len(later.path) == length:
            yield later
            return
