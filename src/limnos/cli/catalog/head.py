"""`head`: the first rows of a table.

May import `client` values and this room.
"""

from __future__ import annotations

import sys
from typing import Annotated

import msgspec
from cyclopts import Parameter

from limnos.cli.common import DEFAULTS, CommonFlags
from limnos.cli.output import show_rows, to_json


def head(
    path: str,
    /,
    *,
    rows: Annotated[int, Parameter(help="Maximum number of rows to show, up to 200.")] = 10,
    columns: Annotated[str, Parameter(help="Names of columns, separated by commas; the default is the first 60.")] = "",
    snapshot: Annotated[int | None, Parameter(help="A snapshot's id; the default is the current one.")] = None,
    common: CommonFlags = DEFAULTS,
) -> None:
    """Show the first rows of an Iceberg table, as you may see them.

    The server reads them, within limits of bytes and time, and applies your row filters and column masks. You need the
    right to read the table's rows. The read is recorded in the audit.

    Parameters
    ----------
    path
        The table, as `main.raw.trips`.
    """
    with common.client() as client:
        result = client.previews.head(
            path, rows=rows, columns=[name for name in columns.split(",") if name], snapshot_id=snapshot
        )
    names = [each.name for each in result.columns]
    if common.shape == "json":
        print(to_json([dict(zip(names, row, strict=True)) for row in result.rows]))
        return
    texts = [{name: _text(value) for name, value in zip(names, row, strict=True)} for row in result.rows]
    show_rows(texts, names, shape=common.shape, empty="no rows that you may see", verbatim=True)
    for remark in _remarks(result.columns_left_out, is_complete=result.complete, is_restricted=result.restricted):
        print(remark, file=sys.stderr)


def _text(value: object) -> str:
    if value is None:
        return "null"
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def _remarks(columns_left_out: int, *, is_complete: bool, is_restricted: bool) -> list[str]:
    remarks = [] if is_complete else ["there are more rows, or files that were not read"]
    if columns_left_out:
        remarks.append(f"{columns_left_out} more columns: name some by --columns")
    if is_restricted:
        remarks.append("a read restriction applies to you: rows may be left out, and values masked")
    return remarks
