# SPDX-License-Identifier: Apache-2.0
"""`lance list | describe | import | serve`: directories of Lance tables."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import App, Parameter

from limnos.cli.catalog.describe import lance_columns
from limnos.cli.common import DEFAULTS, CommonFlags, Property, properties_of
from limnos.cli.extras import import_extra
from limnos.cli.failures import StoppedError, UsageError
from limnos.cli.output import Format, format_of, show_fields, show_rows, visible
from limnos.client import ClientError, ConflictError
from limnos.client.values import Parts
from limnos.names import display

if TYPE_CHECKING:
    from limnos.client import Client

if TYPE_CHECKING:
    from limnos.rooms.lance.sources.directories import DirectoryTable, LanceDirectory

app = App(name="lance")

_EXTRA = "server,lance"


@Parameter(name="*")
@dataclass(frozen=True, slots=True, kw_only=True)
class DirectoryFlags:
    """Flags of every `lance` command on a directory: storage options and layout."""

    layout: Annotated[
        Literal["v0", "v1", "v2"] | None,
        Parameter(
            help="Layout of its tables, if it cannot be detected: folders, `NAME.lance`, or an index `__manifest`."
        ),
    ] = None
    storage: Annotated[
        list[str] | None,
        Parameter(
            negative="",
            help=(
                "KEY=VALUE for an object store, in Lance's terms (`aws_region`, `aws_endpoint`); may be repeated. The"
                " default is the environment."
            ),
        ),
    ] = None

    def open(self, root: str) -> LanceDirectory:
        """Open a directory. Raises StoppedError for a local directory that does not exist."""
        rules = import_extra("limnos.rooms.lance.formats.layouts", extra=_EXTRA)
        directories = import_extra("limnos.rooms.lance.sources.directories", extra=_EXTRA)
        at = rules.root_of(root, here=os.getcwd())  # noqa: PTH109 - a text
        if rules.is_local(at) and not Path(at).is_dir():
            raise StoppedError(
                f"there is no directory {at}",
                code="not-found",
                hint="give the folder that contains the tables; 'limnos show PATH' shows one of the lake",
            )
        layout = rules.DirectoryLayout(self.layout) if self.layout else None
        directory: LanceDirectory = directories.LanceDirectory(at, options=properties_of(self.storage), layout=layout)
        return directory


_PLAIN = DirectoryFlags()
"""The default if no flags are given."""
OutputFlag = Annotated[
    Format | None,
    Parameter(env_var="LIMNOS_OUTPUT", help="Output format; the default is `table` on a terminal, else `json`."),
]


@app.command(name="list")
def list_directory(
    root: str,
    path: str | None = None,
    /,
    *,
    all: Annotated[bool, Parameter(negative="", help="Every table, also those in namespaces.")] = False,
    way: DirectoryFlags = _PLAIN,
    output: OutputFlag = None,
) -> None:
    """List the namespaces and tables of a directory.

    Parameters
    ----------
    root
        The directory: a path, or a URI such as `s3://bucket/prefix`.
    path
        A namespace in it, as `ml.text`.
    """
    directory = way.open(root)
    levels = display.parse(path) if path else ()
    rows = [] if all else [_row((*levels, name), "namespace") for name in directory.namespaces(levels)]
    entries = (
        [each for each in directory.all_tables() if each.levels[: len(levels)] == levels]
        if all
        else directory.tables(levels)
    )
    others = _folders_without_tables(directory, entries) if way.layout is None else frozenset()
    rows += [
        {**_row(each.levels, "folder" if each.folder in others else "table"), "location": directory.location(each)}
        for each in entries
    ]
    show_rows(
        rows,
        ["name", "kind", "location"],
        output_format=_format_of(output),
    )


def _folders_without_tables(directory: LanceDirectory, entries: list[DirectoryTable]) -> frozenset[str]:
    """Return the folders without a Lance table if the layout `v0` was inferred, and print their names to standard
    error.
    """
    rules = import_extra("limnos.rooms.lance.formats.layouts", extra=_EXTRA)
    if directory.layout is not rules.DirectoryLayout.V0:
        return frozenset()
    folders = [entry.folder for entry in entries]
    tables = directory.storage.folders_with(folders, rules.VERSIONS) | directory.storage.folders_with(
        folders, rules.RESERVED
    )
    others = [folder for folder in folders if folder not in tables]
    if others:
        more = f" and {len(others) - 3} more" if len(others) > 3 else ""
        none = "" if tables else "; no folder here has one: give the folder that contains the tables"
        print(visible(f"without a Lance table: {', '.join(others[:3])}{more}{none}"), file=sys.stderr)
    return frozenset(others)


@app.command
def describe(
    root: str,
    path: str | None = None,
    /,
    *,
    version: Annotated[int | None, Parameter(help="One of its versions, instead of the latest.")] = None,
    tag: Annotated[str | None, Parameter(help="The version that has this tag.")] = None,
    way: DirectoryFlags = _PLAIN,
    output: OutputFlag = None,
) -> None:
    """Show a table of a directory; without PATH, the directory's layout.

    Parameters
    ----------
    root
        The directory: a path, or a URI such as `s3://bucket/prefix`.
    path
        A table in it, as `docs` or `ml.text.docs`.
    """
    directory = way.open(root)
    if path is None:
        entries = directory.all_tables()
        fields: dict[str, object] = {"root": directory.root, "layout": directory.layout, "tables": len(entries)}
    else:
        fields = _describe_entry(directory, directory.find(display.parse(path)), version=version, tag=tag)
    show_fields(fields, output_format=_format_of(output), hidden=("path",))


@app.command(name="import")
def import_tables(
    root: str,
    /,
    *,
    into: str,
    dry_run: Annotated[bool, Parameter(negative="")] = False,
    way: DirectoryFlags = _PLAIN,
    common: CommonFlags = DEFAULTS,
) -> int:
    """Register the tables of a directory in a server's catalog, with their namespaces. Files stay in place.

    Parameters
    ----------
    root
        The directory: a path, or a URI such as `s3://bucket/prefix`, which the server must be allowed to read.
    into
        Catalog for Lance tables, or a namespace of it, as `lance` or `lance.ml`.
    dry_run
        Register nothing: the server only checks the tables.
    """
    directory, home = way.open(root), display.parse(into)
    entries = directory.all_tables()
    with common.client() as client:
        results = [] if dry_run else _make_namespaces(client, home, directory=directory, entries=entries)
        rows = [_import_entry(client, each, directory=directory, home=home, dry_run=dry_run) for each in entries]
        if all(row["done"] == "failed" for row in rows):
            _drop_namespaces(client, results)
    show_rows(rows, ["name", "done", "location", "why"], output_format=common.output_format, empty="no tables")
    return 1 if any(row["done"] == "failed" for row in rows) else 0


@app.command
def serve(
    root: str | None = None,
    /,
    *,
    impl: str | None = None,
    property: Property = None,
    listen: str = "127.0.0.1:2333",
    config: Path | None = None,
    way: DirectoryFlags = _PLAIN,
) -> None:
    """Serve a directory over Lance REST to clients on this machine, without a store and without access control.

    Parameters
    ----------
    root
        The directory: a path, or a URI such as `s3://bucket/prefix`.
    impl
        Serve an implementation of Lance's namespace instead: `dir`, `rest`, or `module.Class`.
    listen
        Address to listen on, as HOST:PORT; port 0 selects a free port.
    config
        TOML file whose section `lance` is used; a server's file works, too.
    """
    adapter = import_extra("limnos.rooms.lance.app.adapter", extra=_EXTRA)
    if (root is None) == (impl is None):
        raise UsageError("serve takes a directory, or --impl without one", hint="'limnos lance serve ./data'")
    if property and impl is None:
        raise UsageError("--property is for --impl", hint="give the properties of an object store with --storage")
    load = import_extra("limnos.config.loading", extra=_EXTRA).load
    settings = load(flags={}, file=config, environ=os.environ).settings.lance
    if impl is not None:
        what = adapter.implementation_namespace(impl, properties_of(property))
    else:
        what = adapter.directory_namespace(way.open(root or ""))
    adapter.serve(what, listen=listen, settings=settings, announce=lambda url: print(f"ready {url}", flush=True))


def _format_of(output: Format | None) -> Format:
    return output or format_of((), os.environ, terminal=sys.stdout.isatty())


def _row(levels: Parts, kind: str) -> dict[str, object]:
    return {"name": display.render(levels), "kind": kind, "path": levels}


def _describe_entry(
    directory: LanceDirectory, entry: DirectoryTable, *, version: int | None, tag: str | None
) -> dict[str, object]:
    """Return the fields of a table for `lance describe`. Raises StoppedError if a version or tag is requested but the
    table has no data yet.
    """
    fields = {
        "kind": "table",
        "name": display.render(entry.levels),
        "path": entry.levels,
        "location": directory.location(entry),
    }
    if directory.is_declared(entry):
        if version is not None or tag is not None:
            raise StoppedError(f"{display.render(entry.levels)} has no data yet", code="not-found")
        return {**fields, "version": None, "columns": {}, "properties": entry.properties}
    read = import_extra("limnos.rooms.lance.sources.reading", extra=_EXTRA)
    request_type = import_extra("limnos.rooms.lance.sources.questions", extra=_EXTRA).Describe
    result = read.describe(
        request_type(location=fields["location"], options=directory.options, version=version, tag=tag)
    )
    columns = lance_columns({"fields": _decode_fields(result.fields)})
    return {
        **fields,
        "version": result.version,
        "columns": columns,
        "stats": result.stats,
        "properties": entry.properties,
    }


def _decode_fields(fields: bytes) -> object:
    import msgspec

    return msgspec.json.decode(fields)


def _make_namespaces(
    client: Client, home: Parts, *, directory: LanceDirectory, entries: list[DirectoryTable]
) -> list[Parts]:
    """Create the namespaces of the tables and of the target, unless they exist. Returns the created namespaces."""
    results: list[Parts] = []
    inside = sorted({entry.levels[:end] for entry in entries for end in range(1, len(entry.levels))})
    above: list[tuple[Parts, dict[str, str]]] = [(home[:end], {}) for end in range(2, len(home) + 1)]
    for path, properties in [*above, *(((*home, *levels), directory.properties(levels)) for levels in inside)]:
        try:
            client.namespaces.create(path, properties=properties)
        except ConflictError:
            continue
        results.append(path)
    return results


def _drop_namespaces(client: Client, results: list[Parts]) -> None:
    """Drop the namespaces that a failed import created, innermost first. A namespace that is not empty stays."""
    for path in reversed(results):
        with suppress(ClientError):
            client.namespaces.drop(path)


def _import_entry(
    client: Client, entry: DirectoryTable, *, directory: LanceDirectory, home: Parts, dry_run: bool
) -> dict[str, object]:
    path = (*home, *entry.levels)
    row: dict[str, object] = {"name": display.render(path), "path": path}
    try:
        row["location"] = location = directory.location(entry)
        is_declared = directory.is_declared(entry)
        send = client.lance.declare if is_declared else client.lance.register
        row["location"] = send(path, location=location, properties=entry.properties, dry_run=dry_run)
    except ConflictError as error:
        return _existing_row(client, path, row=row, error=error)
    except (ClientError, import_extra("limnos.model.errors", extra=_EXTRA).LimnosError) as error:
        return {**row, "done": "failed", "why": error.message}
    outcome = "declared" if is_declared else "registered"
    return (
        {**row, "done": "nothing", "why": f"--dry-run: it would be {outcome}"}
        if dry_run
        else {**row, "done": outcome, "why": None}
    )


def _existing_row(client: Client, path: Parts, *, row: dict[str, object], error: ConflictError) -> dict[str, object]:
    """Return the result row of a table whose name exists already: `nothing` if that table has the same location, else
    `failed`.
    """
    try:
        location = client.lance.load(path).location
    except ClientError:
        return {**row, "done": "failed", "why": error.message}
    same = location.removeprefix("file://") == str(row["location"]).removeprefix("file://")
    return (
        {**row, "done": "nothing", "why": "it is registered already"}
        if same
        else {**row, "done": "failed", "why": error.message}
    )
