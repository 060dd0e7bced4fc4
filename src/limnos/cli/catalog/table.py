# SPDX-License-Identifier: Apache-2.0
"""`table check | mend`: checks a table's files and its metadata, and corrects metadata that some readers refuse."""

from __future__ import annotations

import sys
from typing import Annotated

import msgspec
from cyclopts import App, Parameter

from limnos.cli.common import DEFAULTS, CommonFlags
from limnos.cli.output import show_rows, visible

app = App(name="table")
_UNSEEN = "outside"


@app.command
def check(
    path: str,
    /,
    *,
    all_snapshots: Annotated[bool, Parameter(name="--all", negative=())] = False,
    common: CommonFlags = DEFAULTS,
) -> int:
    """Check that a table's files exist with the recorded length, and that all readers accept its metadata. Exit code 1
    if not.

    Checks metadata, manifest lists, manifests, data and delete files, and statistics, with advice for each. You need
    the right to modify the table.

    Parameters
    ----------
    path
        The table, as `main.raw.trips`.
    all_snapshots
        Check all snapshots of the table, not only the current one.
    """
    with common.client() as client:
        result = client.table_checks.check(path, every=all_snapshots)
    rows = [msgspec.structs.asdict(each) for each in result.findings]
    show_rows(
        rows,
        ["kind", "problem", "snapshot_id", "size_told", "size_found", "file"],
        output_format=common.output_format,
        empty=f"{result.files} files were checked: nothing is missing",
    )
    for text in dict.fromkeys(f"{each.kind} {each.problem}: {each.told}" for each in result.findings):
        sys.stderr.write(visible(text) + "\n")
    return 1 if any(each.problem != _UNSEEN for each in result.findings) else 0


@app.command
def mend(path: str, /, *, common: CommonFlags = DEFAULTS) -> None:
    """Correct a table's metadata that some readers refuse, by one commit, if nothing is lost.

    Otherwise the error says what you can do, and nothing is changed. An older release stored such metadata. You need
    the right to commit to the table.

    Parameters
    ----------
    path
        The table, as `main.raw.trips`.
    """
    with common.client() as client:
        before = client.tables.load(path, snapshots="refs").metadata_location
        after = client.tables.mend(path).metadata_location
    print(f"nothing to mend in {path}" if after == before else f"mended {path}")
