# SPDX-License-Identifier: Apache-2.0
"""`head`: the first rows of a table, or the beginning of a fileset's file; `files`: the files of a fileset."""

from __future__ import annotations

import difflib
import re
import shlex
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Final

import msgspec
from cyclopts import Parameter

from limnos.cli.catalog.columns import column_names
from limnos.cli.command_line import typed_tokens
from limnos.cli.common import DEFAULTS, CommonFlags
from limnos.cli.failures import UsageError
from limnos.cli.hints.arguments import hint_for_name_alone
from limnos.cli.hints.typed_command import TypedCommand
from limnos.cli.lookups import known_path
from limnos.cli.output import Row, show_rows, to_json, visible
from limnos.client.errors import ClientError, NotFoundError, RefusedError
from limnos.client.values import PreviewColumn
from limnos.names import display

if TYPE_CHECKING:
    from limnos.client import Client

_NO_COLUMN: Final = "The table has no column "
"""The server's message about a column that the table lacks."""
_NO_NAMESPACE: Final = "as ?table=raw.trips"
"""The part of the server's message about a path that cannot be a table's."""
_DOTS_OF_OBJECTS: Final = 2
"""The minimum number of dots in the path of a table or fileset."""
ENTRIES_MAX: Final = 1_000
"""The maximum number of entries of a directory in one answer."""
LocationFlag = Annotated[str | None, Parameter(help="The name of the fileset's location; without it the default one.")]


def head(
    path: str,
    /,
    *,
    rows: Annotated[int, Parameter(name=["--rows", "--limit"], help="Maximum number of rows to show, up to 200.")] = 10,
    columns: Annotated[str, Parameter(help="Names of columns, separated by commas; the default is the first 60.")] = "",
    snapshot: Annotated[
        int | None, Parameter(help="A snapshot's id, or a Lance table's version; the default is the current one.")
    ] = None,
    file: Annotated[str | None, Parameter(help="The file to show, if PATH is a fileset.")] = None,
    location: LocationFlag = None,
    common: CommonFlags = DEFAULTS,
) -> None:
    """Show the first rows of a table that are visible to you, or with `--file` the beginning of a fileset's file.

    The server reads them, within limits of bytes and time, and applies your row filters and column masks. You need the
    right to read the table's rows, or the fileset's files. The read is recorded in the audit.

    Parameters
    ----------
    path
        The table, as `main.raw.trips`, or the fileset.
    """
    if file is not None:
        _show_file(path, file, location=location, rows=rows, common=common)
        return
    if location is not None:
        raise UsageError("--location is the name of a fileset's location", hint="name a file in it by --file")
    with common.client() as client:
        if len(display.parse(path)) == 1:
            raise _too_short(path)
        try:
            result = client.previews.head(
                path,
                rows=rows,
                columns=[name.strip() for name in columns.split(",") if name.strip()],
                snapshot_id=snapshot,
            )
        except RefusedError as error:
            if _NO_COLUMN in error.message:
                raise _missing_column(client, path, error=error) from error
            raise (_too_short(path) if _NO_NAMESPACE in error.message else error) from error
        except NotFoundError as error:
            raise _file_error(path) or error from error
    if _print_rows(result.columns, result.rows, empty="no rows that you may see", common=common):
        return
    masked = [each.name for each in result.columns if each.masked]
    left_out = 0 if columns else result.columns_left_out
    for remark in _remarks(left_out, is_complete=result.complete, is_restricted=result.restricted, masked=masked):
        print(remark, file=sys.stderr)


def _missing_column(client: Client, path: str, *, error: RefusedError) -> UsageError | RefusedError:
    """Return the error for a column that the table lacks, with a near name; `error` itself if it has none."""
    missing = error.message.rpartition(_NO_COLUMN)[2].strip("'")
    try:
        names = column_names(client, path)
    except ClientError:
        return error
    near = next(iter(difflib.get_close_matches(missing, names, n=1, cutoff=0.6)), None)
    if near is None:
        return error
    pattern = re.compile(rf"(^|[=,]) *{re.escape(missing)} *(?=,|$)")
    tokens = typed_tokens.get()
    flag = [at for at, token in enumerate(tokens) if token.startswith("--columns")]
    again = [
        pattern.sub(rf"\g<1>{near}", token) if at in flag or at - 1 in flag else token
        for at, token in enumerate(tokens)
    ]
    return UsageError(f"{path} has no column '{missing}'", hint=f"'{shlex.join(['limnos', *again])}'")


def _too_short(path: str) -> UsageError:
    """Return the error for a path that is too short for a table."""
    if "/" in path and "`" not in path:
        dotted = shlex.quote(display.render([part for part in path.split("/") if part]))
        return UsageError("the parts of a path have dots between them, no slashes", hint=f"'limnos head {dotted}'")
    known_object = known_path(display.parse(path)) if "." not in path else None
    if known_object is not None and known_object.length == 0:
        text = f"'{path}' is no catalog, and a table is catalog.namespace.table"
        typed = TypedCommand(typed_tokens.get())
        return UsageError(text, hint=hint_for_name_alone(typed, path, kinds=("table", "view", "fileset")))
    if known_object is not None:
        text = f"'{path}' is a catalog: a table is catalog.namespace.table"
        return UsageError(text, hint=f"'limnos list tables {shlex.quote(path)}' lists its tables")
    return UsageError(
        f"'{path}' is a namespace, or its catalog is missing: a table is catalog.namespace.table",
        hint=f"'limnos list {shlex.quote(path)}' lists its tables",
    )


def _file_error(path: str) -> UsageError | None:
    """Return the error for a file that was typed as part of its fileset's path; None for another path."""
    fileset, slash, file = path.partition("/")
    if not slash or not file or "`" in path or fileset.count(".") < _DOTS_OF_OBJECTS:
        return None
    again = shlex.join(["limnos", "head", fileset, "--file", file])
    return UsageError("the file of a fileset is named by --file", hint=f"'{again}'")


def files(
    path: str,
    directory: str = "/",
    /,
    *,
    location: LocationFlag = None,
    after: Annotated[str | None, Parameter(help="Continue after this name; a directory's ends with a slash.")] = None,
    limit: Annotated[int, Parameter(help="Maximum number of entries, up to 1000.")] = 200,
    common: CommonFlags = DEFAULTS,
) -> None:
    """List the files and directories of a fileset, directories first.

    Parameters
    ----------
    path
        The fileset, as `files.raw.scans`.
    directory
        A directory or a file in it; the default is the top.
    """
    with common.client() as client:
        page = client.previews.entries(path, directory, location=location, after=after, limit=limit)
        parent, _, name = directory.rstrip("/").rpartition("/")
        if not page.entries and name and after is None:
            above = client.previews.entries(path, parent or "/", location=location, limit=ENTRIES_MAX)
            page = msgspec.structs.replace(page, entries=tuple(each for each in above.entries if each.name == name))
    rows: list[Row] = [
        {"name": f"{each.name}/", "size": None, "changed_at": None}
        if each.directory
        else {"name": each.name, "size": each.size, "changed_at": each.changed_at}
        for each in page.entries
    ]
    show_rows(rows, ["name", "size", "changed_at"], output_format=common.output_format, empty="no files here")
    if page.after is not None:
        print(f"there are more: continue with --after {shlex.quote(page.after)}", file=sys.stderr)


def _show_file(path: str, file: str, *, location: str | None, rows: int, common: CommonFlags) -> None:
    with common.client() as client:
        result = client.previews.file(path, file, location=location, rows=rows)
    if result.kind == "rows":
        if _print_rows(result.columns, result.rows, empty="no rows", common=common):
            return
    elif common.output_format == "json":
        print(to_json({"kind": result.kind, "size": result.size, "complete": result.complete, "text": result.text}))
        return
    elif result.kind == "text":
        print(visible(result.text.replace("\t", "    ")))
    else:
        print(f"a binary file of {result.size} bytes: fetch it with a client", file=sys.stderr)
        return
    for remark in _remarks(result.columns_left_out, is_complete=result.complete):
        print(remark, file=sys.stderr)


def _print_rows(
    columns: Sequence[PreviewColumn], rows: Sequence[Sequence[object]], *, empty: str, common: CommonFlags
) -> bool:
    """Print rows. Returns whether they were printed as JSON, to which the caller must not add text."""
    names = [each.name for each in columns]
    if common.output_format == "json":
        print(to_json([dict(zip(names, row, strict=True)) for row in rows]))
        return True
    texts = [{name: _text(value) for name, value in zip(names, row, strict=True)} for row in rows]
    show_rows(texts, names, output_format=common.output_format, empty=empty, verbatim=True)
    return False


def _text(value: object) -> str:
    if value is None:
        return "null"
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def _remarks(
    columns_left_out: int, *, is_complete: bool, is_restricted: bool = False, masked: Sequence[str] = ()
) -> list[str]:
    remarks = [] if is_complete else ["there are more rows, or files that were not read"]
    if columns_left_out:
        word = "column" if columns_left_out == 1 else "columns"
        remarks.append(f"{columns_left_out} more {word}: name some by --columns")
    if is_restricted:
        verb = "is" if len(masked) == 1 else "are"
        values = f"and {', '.join(masked)} {verb} masked" if masked else "and values masked"
        remarks.append(f"a read restriction applies to you: rows may be left out, {values}")
    return remarks
