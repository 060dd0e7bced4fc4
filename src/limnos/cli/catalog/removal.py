# SPDX-License-Identifier: Apache-2.0
"""`delete`: objects of the tree, one or with everything below, and the way back.

Without `--kind`, the kind of an object is requested from the server.
"""

from __future__ import annotations

import shlex
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Final, Literal, NamedTuple, TypeAlias

from cyclopts import Parameter

from limnos.cli.catalog.tree import check_is_in_tree, require
from limnos.cli.catalog.walk import Walk, walk
from limnos.cli.common import DEFAULTS, CommonFlags, KindFlag, YesFlag, confirm
from limnos.cli.failures import StoppedError, UsageError
from limnos.cli.output import show_done, show_rows, visible
from limnos.client import ArgumentError, ClientError, ConflictError, DeniedError, NotFoundError
from limnos.client.paths import catalog_name
from limnos.model.declared_kinds import DECLARED, DeclaredKind
from limnos.model.kinds import REST_PROVIDERS, is_source_provider
from limnos.names import display

if TYPE_CHECKING:
    from limnos.client import Client

PREVIEWED_MAX: Final = 20
"""The number of names that a preview of a recursive deletion lists."""
_System: TypeAlias = Literal["own", "iceberg-rest", "other"]
_FINAL: Final = frozenset({"catalog", "metalake"})
"""Kinds of objects that are not restored."""


def drop(
    path: str,
    /,
    *,
    kind: KindFlag = None,
    recursive: Annotated[bool, Parameter(name=["--recursive", "-r"], negative="")] = False,
    dry_run: Annotated[bool, Parameter(negative="")] = False,
    purge: Annotated[bool, Parameter(negative="", help="Delete a table's files too, afterwards.")] = False,
    force: Annotated[bool, Parameter(negative="", help="The same as --recursive, of a catalog or metalake.")] = False,
    yes: YesFlag = False,
    common: CommonFlags = DEFAULTS,
) -> None:
    """Delete a table, view, fileset or model, or an empty catalog or namespace; with `-r` everything below, too.

    Parameters
    ----------
    path
        The object to delete; with `--kind metalake` a metalake's name.
    recursive
        Delete a namespace, catalog or metalake with everything below it. Lists what goes, and asks first.
    dry_run
        List what would go, and delete nothing.
    """
    with common.client() as client:
        result = kind or client.objects.kind(path)
        check_is_in_tree(result, path, verb="delete")
        if result not in _DROPPED:
            raise UsageError(
                f"this command does not delete a {result}",
                hint="delete a topic with its cluster's own tools, a template with 'limnos delete template NAME'",
            )
        _check_drop_flags(path, result, purge=purge, force=force)
        is_previewed = recursive or dry_run
        is_unread = result == "metalake" or (result == "catalog" and not is_previewed)  # the server drops it as a whole
        system = "own" if is_unread else _system_of(client, path)
        is_external = system != "own"
        flags = _DropFlags(common, purge=purge, is_forced=recursive or force, system=system)
        is_read = not (is_external and result == "catalog")  # its objects stay in their system
        below = _read_below(client, path, kind=result, common=common) if is_previewed and is_read else Walk()
        if is_previewed and common.output_format == "table":
            preview = (
                _preview(path, result, below=below, is_recursive=recursive or force)
                if is_read
                else f"the command deletes catalog {path}; its objects stay in the external system"
            )
            print(visible(preview), file=sys.stderr)
            print(visible(_obstacle(client, path, kind=result)), end="", file=sys.stderr)
        if dry_run:
            objects = [{"kind": each.kind, "name": display.render(each.path)} for each in below.objects]
            if common.output_format != "table":
                show_rows(objects, ["kind", "name"], output_format=common.output_format)
            return
        warning = f" A {result} cannot be restored." if result in _FINAL else ""
        confirm(f"Delete {result} {path}{' and its files' if purge else ''}?{warning}", yes=yes)
        if recursive and result == "namespace":
            _drop_below(client, below, flags=flags)
        _DROPPED[result](client, path, flags)
    back = "" if purge or (is_external and result != "catalog") else _way_back(path, result, below=below)
    below_count = {"below": len(below.objects)} if flags.is_forced else {}
    done = {"dropped": path, "kind": result, **below_count}
    show_done(f"deleted {result} {path}{back}", done, output_format=common.output_format)


def _read_below(client: Client, path: str, *, kind: str, common: CommonFlags) -> Walk:
    if kind == "metalake":
        with replace(common, metalake=path).client() as own:
            return walk(own, ())
    return walk(client, display.parse(path)) if kind in {"catalog", "namespace"} else Walk()


def _preview(path: str, kind: str, *, below: Walk, is_recursive: bool) -> str:
    """Return the preview of a recursive deletion: numbers by kind, and the first names; or that it has to be one."""
    counts = Counter(each.kind for each in below.objects)
    numbers = ", ".join(f"{count} {word}{'s' if count > 1 else ''}" for word, count in sorted(counts.items()))
    more = "" if below.is_complete else " at least"
    content = f" and{more} {numbers} below it:" if numbers else ", with nothing below it"
    lines = [f"the command deletes {kind} {path}{content}"]
    lines += [f"  {each.kind} {display.render(each.path)}" for each in below.objects[:PREVIEWED_MAX]]
    if len(below.objects) > PREVIEWED_MAX:
        lines.append(f"  … {len(below.objects) - PREVIEWED_MAX} more")
    if numbers and not is_recursive:
        lines[0] = (
            f"{kind} {path} is not empty: the deletion is refused without --recursive, and takes {numbers} with it:"
        )
    return "\n".join(lines)


def _obstacle(client: Client, path: str, *, kind: str) -> str:
    """Return a line that says what would refuse a deletion, or that nothing restores its object; empty otherwise."""
    try:
        protector = client.protection.get(path, kind=kind)
    except (ClientError, ArgumentError):
        protector = None
    if protector is not None:
        return f"it is refused: {protector.by.kind} {protector.by.name} is protected; see 'limnos unprotect'\n"
    return f"a {kind} cannot be restored\n" if kind in _FINAL else ""


def _way_back(path: str, kind: str, *, below: Walk) -> str:
    """Return how to restore a deleted object."""
    if kind in _FINAL:
        return f"; a {kind} cannot be restored"
    contents = " --contents" if below.objects else ""
    return f"; '{shlex.join(['limnos', 'undrop', path])}{contents}' restores it"


def _check_drop_flags(path: str, kind: str, *, purge: bool, force: bool) -> None:
    if purge and kind != "table":
        raise UsageError(f"--purge is only for tables, and {path} is a {kind}", hint="leave --purge out")
    if force and kind not in {"catalog", "metalake"}:
        raise UsageError(
            f"--force is only for catalogs and metalakes, and {path} is a {kind}", hint="leave --force out"
        )


class _DropFlags(NamedTuple):
    """The flags of the command `delete` that its helper functions need."""

    common: CommonFlags
    purge: bool
    is_forced: bool
    system: _System


def _drop_table(client: Client, path: str, *, flags: _DropFlags) -> None:
    """Drop an Iceberg or Lance table, or one of an external system. With `purge` it must not be a Lance table: raises
    UsageError or NotFoundError.
    """
    purge = flags.purge
    if flags.system == "other":
        require(client.schemas.drop(path, purge=purge), "table", path)
        return
    if len(display.parse(path)) > 2:
        try:
            client.tables.drop(path, purge=purge)
            return
        except NotFoundError as error:
            missing: NotFoundError | None = error
    else:
        missing = None
    if purge:
        if missing is not None:
            raise missing
        raise UsageError(
            "--purge is only for Iceberg tables", hint="a Lance table's files are deleted when it leaves the trash"
        )
    client.lance.drop(path)


def _drop_namespace(client: Client, path: str, *, flags: _DropFlags) -> None:
    """Drop an empty namespace, or an empty schema of an external system."""
    if flags.system == "other":
        require(client.schemas.drop(path), "namespace", path)
    else:
        client.namespaces.drop(path)


def _system_of(client: Client, path: str) -> _System:
    """Return whether an object is this server's, of another Iceberg catalog, or of another external system, whose
    objects Iceberg's clients do not see.
    """
    try:
        provider = client.catalogs.get(display.parse(path)[0]).provider or ""
    except (NotFoundError, DeniedError):
        return "own"
    if provider in REST_PROVIDERS:
        return "iceberg-rest"
    return "other" if is_source_provider(provider) else "own"


def _drop_below(client: Client, below: Walk, *, flags: _DropFlags) -> None:
    """Delete the objects of a walk, the deepest first. Raises StoppedError if there are too many, and an error of the
    server with the number of objects that were deleted before it.
    """
    if not below.is_complete:
        raise StoppedError(
            f"more than {len(below.objects)} objects are below it", hint="delete parts of it first, by longer paths"
        )
    for count, child in enumerate(reversed(below.objects)):
        delete = _DROPPED.get(child.kind)
        path = display.render(child.path)
        if delete is None:
            raise StoppedError(
                f"a {child.kind} is deleted in its own system: {path}", hint="delete it there, then repeat the command"
            )
        try:
            delete(client, path, flags)
        except ClientError as error:
            error.message = f"{error.message} ({path}; {count} of {len(below.objects)} objects were deleted before it)"
            raise


def _drop_container(client: Client, path: str, *, kind: str, flags: _DropFlags) -> None:
    """Drop a catalog or metalake. Without the flag `force`, it must be empty.

    The server drops only disabled catalogs and metalakes. So an empty one is disabled first, which also prevents
    additions between the check and the drop; it is enabled again if the drop fails.
    """
    home = client.metalakes if kind == "metalake" else client.catalogs
    name = path if kind == "metalake" else catalog_name(path)
    try:
        require(home.drop(name, force=flags.is_forced), kind, path)
        return
    except ConflictError as error:
        if error.code != "in-use" or _holds_something(client, kind, name=name, common=flags.common):
            raise
    home.disable(name)
    try:
        require(home.drop(name), kind, path)
    except ClientError:
        home.enable(name)
        raise


def _holds_something(client: Client, kind: str, *, name: str, common: CommonFlags) -> bool:
    if kind == "catalog":
        return bool(client.namespaces.list((name,)))
    with replace(common, metalake=name).client() as inside:
        return bool(inside.catalogs.list())


def _drop_declared(declared: DeclaredKind) -> Callable[[Client, str, _DropFlags], None]:
    return lambda client, path, _: client.declared(declared).drop(path)


_DROPPED: Final[dict[str, Callable[[Client, str, _DropFlags], None]]] = {
    "metalake": lambda client, path, flags: _drop_container(client, path, kind="metalake", flags=flags),
    "catalog": lambda client, path, flags: _drop_container(client, path, kind="catalog", flags=flags),
    "namespace": lambda client, path, flags: _drop_namespace(client, path, flags=flags),
    "table": lambda client, path, flags: _drop_table(client, path, flags=flags),
    "view": lambda client, path, _: client.views.drop(path),
    "fileset": lambda client, path, _: require(client.filesets.delete(path), "fileset", path),
    "model": lambda client, path, _: require(client.models.delete(path), "model", path),
    **{each.kind.word: _drop_declared(each) for each in DECLARED},
}
"""For each kind the function by which the command drops an object. Other kinds are refused."""
