# SPDX-License-Identifier: Apache-2.0
"""`records load | dump | ls | describe`: exports of metalakes as records in a key-value database that no server uses.

May import `cli`, `names` and the file framing of `client`, and when a command needs them `model`, `formats` and
`store`.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import App, Parameter

from limnos.cli.catalog.exchange import open_input, read_pieces
from limnos.cli.extras import import_extra
from limnos.cli.failures import StoppedError, UsageError
from limnos.cli.output import Format, format_of, show_done, show_fields, show_rows
from limnos.client.activity.exchange import ExportForm, cut_into_parts, form_of
from limnos.names import display

if TYPE_CHECKING:
    from limnos.model.proto.limnos.v1.export_pb2 import ExportRecord
    from limnos.store.key_value_records.records import RecordReader, RecordStore

app = App(name="records")

_LMDB = "lmdb:"
OutputFlag = Annotated[
    Format | None,
    Parameter(env_var="LIMNOS_OUTPUT", help="Output format; the default is `table` on a terminal, else `json`."),
]


@app.command
def load(
    store: str, file: Annotated[Path, Parameter(allow_leading_hyphen=True)] = Path("-"), /, *, output: OutputFlag = None
) -> None:
    """Replace the export in the database by that of a file, in one transaction.

    Parameters
    ----------
    store
        `lmdb:FOLDER` for LMDB, a file for SQLite, or `postgresql://…`.
    file
        The file that `limnos export` wrote; - is standard input.
    """
    with _open_store(store, makes=True) as record_store, open_input(file) as source, record_store.writing() as writes:
        count = writes.replace(_records(read_pieces(source)))
        lake, revision = writes.metalake.metalake.name, writes.revision + 1
    fields = {"store": store, "metalake": lake, "records": count, "revision": revision}
    show_done(
        f"loaded {count} records of metalake {lake} as revision {revision}", fields, output_format=_format_of(output)
    )


@app.command
def dump(store: str, /, *, format: ExportForm = "proto") -> None:
    """Write the stored export to standard output, in the format of `limnos import`.

    Parameters
    ----------
    store
        `lmdb:FOLDER` for LMDB, a file for SQLite, or `postgresql://…`.
    format
        Length-prefixed Protobuf messages, or JSON lines.
    """
    out = sys.stdout.buffer
    if format == "proto" and sys.stdout.isatty():
        raise UsageError(
            "Protobuf cannot be shown in a terminal",
            hint=f"'limnos records dump {store} > lake.export', or --format json",
        )
    encoding = import_extra("limnos.formats.exchange.encoding", extra="server")
    with _open_store(store) as record_store, record_store.reading() as reads:
        for record in reads.everything():
            out.write(encoding.encode_records([record], format))
    out.flush()


@app.command(name="list")
def list_records(store: str, path: str | None = None, /, *, output: OutputFlag = None) -> None:
    """List the objects below an object, by kind and name.

    Parameters
    ----------
    store
        `lmdb:FOLDER` for LMDB, a file for SQLite, or `postgresql://…`.
    path
        A catalog or a namespace, as `main` or `main.a.b`; by default the metalake.
    """
    records = import_extra("limnos.store.key_value_records.records", extra="server")
    with _open_store(store) as record_store, record_store.reading() as reads:
        rows = [
            {"name": records.name_of(each), "kind": records.kind_of(each).word, "id": records.id_of(each)}
            for above in _find_records(reads, path)
            for each in reads.children(records.id_of(above))
        ]
    show_rows(rows, ["name", "kind", "id"], output_format=_format_of(output))


@app.command
def describe(
    store: str,
    path: str | None = None,
    /,
    *,
    kind: Annotated[str | None, Parameter(help="Kind of PATH, if several objects have the name.")] = None,
    output: OutputFlag = None,
) -> None:
    """Show the record of an object, and the parts that belong to it.

    Parameters
    ----------
    store
        `lmdb:FOLDER` for LMDB, a file for SQLite, or `postgresql://…`.
    path
        An object, as `main.a.t`; a user, group or role by its name; by default the metalake.
    """
    records = import_extra("limnos.store.key_value_records.records", extra="server")
    with _open_store(store) as record_store, record_store.reading() as reads:
        some = {records.kind_of(each).word: each for each in _find_records(reads, path)}
        if len(some) > 1 and kind not in some:
            text = " and ".join(f"a {each}" for each in some)
            raise UsageError(f"{path} is {text}", hint=f"choose one: --kind {next(iter(some))}")
        word, record = (kind, some[kind]) if kind in some else next(iter(some.items()))
        hanging = [_fields(each) for each in reads.hanging(records.id_of(record))]
    show_fields({"kind": word, **_fields(record), "hanging": hanging}, output_format=_format_of(output))


@contextmanager
def _open_store(store: str, *, makes: bool = False) -> Iterator[RecordStore]:
    """Open a store for the body of a `with`. Raises StoppedError for a store that does not exist; with `makes`,
    creates it instead.
    """
    records = import_extra("limnos.store.key_value_records.records", extra="server")
    path = Path(store.removeprefix(_LMDB))
    if not makes and "://" not in store and not path.exists():
        raise StoppedError(
            f"there is no {path}", code="not-found", hint="give the store that 'limnos records load' created"
        )
    if store.startswith(_LMDB):
        pairs: Any = import_extra(
            "limnos.store.key_value_records.lmdb_storage", extra="server,records"
        ).LmdbKeyValueStore(path)
    else:
        pairs = import_extra("limnos.store.key_value_records.sql_storage", extra="server").SqlKeyValueStore(store)
    record_store: RecordStore = records.RecordStore(pairs)
    try:
        yield record_store
    finally:
        record_store.close()


def _records(source: Iterator[bytes]) -> Iterator[ExportRecord]:
    """Yield the records of an export from the chunks of its file."""
    encoding = import_extra("limnos.formats.exchange.encoding", extra="server")
    head = next(source, b"")
    form, first = form_of(head), 1
    for part in cut_into_parts(chain((head,), source), form):
        yield from encoding.decode_records(part.data, form, first=first)
        first += part.records


def _find_records(reads: RecordReader, path: str | None) -> list[ExportRecord]:
    records = reads.walk(display.parse(path) if path else ())
    if not records:
        raise StoppedError(f"there is no {path} in these records", code="not-found")
    return records


def _fields(record: ExportRecord) -> dict[str, Any]:
    """Return a record's fields in Protobuf's JSON form, with the fields of its nested message at the same level."""
    encoding = import_extra("google.protobuf.json_format", extra="server")
    rest: dict[str, Any] = encoding.MessageToDict(record, preserving_proto_field_name=True)
    fields: dict[str, Any] = rest.pop(record.WhichOneof("record") or "")
    return fields | rest


def _format_of(output: Format | None) -> Format:
    return output or format_of((), os.environ, terminal=sys.stdout.isatty())
