# SPDX-License-Identifier: Apache-2.0
"""`export` and `import`: write a metalake to a file, and create one from such a file on the same or another server.

Files are read and sent in parts, so they may be of any size. An interrupted import continues after the records that the
server has.
"""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import msgspec
from cyclopts import Parameter

from limnos.cli.command_line import typed_tokens
from limnos.cli.common import DEFAULTS, CommonFlags, YesFlag, confirm
from limnos.cli.failures import StoppedError, UsageError
from limnos.cli.hints.typed_command import TypedCommand
from limnos.cli.input_files import READ_BYTES, open_input, read_pieces
from limnos.cli.output import show_done, show_rows, visible
from limnos.cli.sentences import proposal_for, quote_command
from limnos.client.activity.exchange import ExportForm, ExportPart, check_export, cut_into_parts, drop_first_records
from limnos.client.errors import ClientError, DeniedError, NotFoundError, UnavailableError
from limnos.client.values import ImportInfo, MetalakeImportResult

if TYPE_CHECKING:
    from limnos.client import Client


def export(
    metalake: str,
    /,
    *,
    format: ExportForm = "proto",
    secrets: Annotated[bool, Parameter(negative="")] = False,
    common: CommonFlags = DEFAULTS,
) -> None:
    """Write a consistent export of a metalake to standard output.

    Parameters
    ----------
    metalake
        The metalake, as `lake`.
    format
        Length-prefixed Protobuf messages, or JSON lines.
    secrets
        Also export secrets of catalogs; only for a service admin who owns the metalake.
    """
    out = sys.stdout.buffer
    if format == "proto" and sys.stdout.isatty():
        file = metalake if "." in metalake else f"{metalake}.export"
        name = common.metalake if "." in metalake else metalake
        command_line = f"'limnos export {shlex.quote(name)} > {shlex.quote(file)}'"
        raise UsageError("Protobuf cannot be shown in a terminal", hint=f"{command_line}, or --format json")
    with common.client() as client:
        is_begun = False
        try:
            for piece in client.export(metalake, format=format, secrets=secrets):
                is_begun = True
                out.write(piece)
        except (NotFoundError, DeniedError) as error:
            if "." in metalake:
                raise StoppedError(
                    f"'{metalake}' is no metalake, and an export is of a whole one; a file that a shell made for it is"
                    " empty",
                    code=NotFoundError.kind,
                    hint=(
                        f"'limnos export {shlex.quote(common.metalake)} > {shlex.quote(metalake)}' writes a metalake to"
                        f" this file; {rows_hint(metalake)}"
                    ),
                ) from error
            raise
        except UnavailableError as error:
            if is_begun:
                raise StoppedError(
                    f"the export ended early, and its output is incomplete: {error}",
                    code="unavailable",
                    hint="export again",
                ) from error
            raise
    out.flush()


def rows_hint(path: str) -> str:
    """Return the clause of a hint about the rows of a table; SQL++ reads those of its own catalog."""
    if (statement := proposal_for(["csv", path])) is not None:
        return f"{quote_command(statement.command)} prints the rows of a table"
    command_line = shlex.join(["limnos", "head", path, "--output", "csv", "--rows", "200"])
    return f"'{command_line}' writes a table's first rows, COPY TO of 'limnos sql' all of them"


def import_(
    file: Annotated[Path | None, Parameter(allow_leading_hyphen=True)] = None,
    /,
    *,
    name: Annotated[str | None, Parameter(name="--into")] = None,
    ids: Literal["keep", "map"] = "map",
    resume: int | None = None,
    give_up: int | None = None,
    list: Annotated[bool, Parameter(negative="")] = False,
    yes: YesFlag = False,
    common: CommonFlags = DEFAULTS,
) -> None:
    """Create a metalake from an export. It is invisible until the import is complete.

    Parameters
    ----------
    file
        The file that `limnos export` wrote; - is standard input.
    name
        The name of the imported metalake.
    ids
        Whether objects keep their ids, which must be unused, or get new ids.
    resume
        Continue the interrupted import with this id.
    give_up
        Abandon the import with this id and delete its objects.
    list
        List unfinished imports.
    """
    if not list and give_up is None and (file is None or (name is None) == (resume is None)):
        raise _incomplete(file, is_both=name is not None)
    with common.client() as client:
        if list:
            _list(client, common)
        elif give_up is not None:
            confirm(f"Delete all records of import {give_up}?", yes=yes)
            try:
                client.imports.give_up(give_up)
            except NotFoundError as error:
                raise StoppedError(
                    f"there is no open import {give_up}: it is complete, or was abandoned",
                    code=error.kind,
                    hint="'limnos import --list' lists the open ones",
                ) from error
            show_done(f"import {give_up} was abandoned", {"given_up": give_up}, output_format=common.output_format)
        elif file is not None:
            _import(client, file, name=name, ids=ids, resume=resume, common=common)


def _incomplete(file: Path | None, *, is_both: bool) -> UsageError:
    """Return the error for an import without a file, without the new name, or with both a new name and `--resume`."""
    command_line = shlex.join(["limnos", "import", str(file or "FILE"), "--into", "NAME"])
    if is_both and file is not None:
        return UsageError(
            "--into begins an import, and --resume continues one", hint=f"'{command_line}', or --resume alone"
        )
    missing = "the metalake's new name is" if file is not None else "the file and the metalake's new name are"
    return UsageError(f"{missing} missing", hint=f"'{command_line}': the import creates a metalake of that name")


def _list(client: Client, common: CommonFlags) -> None:
    rows = [msgspec.structs.asdict(each) for each in client.imports.list()]
    columns = ["id", "name", "source", "records", "state", "ids", "begun_by", "fed_at"]
    show_rows(rows, columns, output_format=common.output_format, empty="no import is in progress")


def _import(client: Client, file: Path, *, name: str | None, ids: str, resume: int | None, common: CommonFlags) -> None:
    with open_input(file) as source:
        head = source.read(READ_BYTES)
        form = check_export(head)  # before the server opens an import
        parts = cut_into_parts(chain((head,), read_pieces(source)), form)
        info = (
            client.imports.load(resume)
            if name is None and resume is not None
            else client.imports.begin(name or "", format=form, ids=ids)
        )
        try:
            import_result = _feed_import(client, info, parts=parts, form=form)
        except (ClientError, KeyboardInterrupt) as error:
            typed = TypedCommand(typed_tokens.get() or ())
            resumes = f"'{typed.command('import', str(file), '--resume', str(info.id))}'"
            gives_up = f"'{typed.command('import', '--give-up', str(info.id))}'"
            is_passing = isinstance(error, (KeyboardInterrupt, UnavailableError))
            note = (
                f"import {info.id} is open: continue with {resumes}, or {gives_up}"
                if is_passing
                else f"import {info.id} is open: {resumes} continues once the cause is mended, such as a setting of the"
                f" server; if the file is at fault, {gives_up} deletes its records"
            )
            print(visible(note), file=sys.stderr)
            raise
    show_done(
        f"imported {import_result.records} records as metalake {import_result.metalake}{_masked_note(import_result)}",
        msgspec.structs.asdict(import_result),
        output_format=common.output_format,
    )


def _feed_import(
    client: Client, info: ImportInfo, *, parts: Iterator[ExportPart], form: ExportForm
) -> MetalakeImportResult:
    """Send the records that the server does not have yet, and finish the import."""
    former_count = 0
    for part in parts:
        if former_count + part.records > info.records:
            info = client.imports.feed(info, drop_first_records(part, info.records - former_count, form=form))
        former_count += part.records
    return client.imports.finish(info.id)


def _masked_note(done: MetalakeImportResult) -> str:
    if not done.masked:
        return ""
    text = ", ".join(done.masked[:5]) + (", …" if len(done.masked) > 5 else "")
    return f"; set the secrets again that the file does not contain: {text}"
