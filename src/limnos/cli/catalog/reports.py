# SPDX-License-Identifier: Apache-2.0
"""`reports`: metrics reports of scans and commits of a table, which clients sent."""

from __future__ import annotations

from typing import Literal

import msgspec

from limnos.cli.common import DEFAULTS, CommonFlags
from limnos.cli.output import show_rows


def reports(
    path: str, /, *, type: Literal["scan", "commit"] | None = None, limit: int = 20, common: CommonFlags = DEFAULTS
) -> None:
    """List clients' reports of scans and commits of a table, newest first.

    Parameters
    ----------
    path
        The table, as `main.raw.trips`.
    type
        Only reports of scans, or of commits.
    limit
        The maximum number of reports.
    """
    with common.client() as client:
        rows = [msgspec.structs.asdict(each) for each in client.reports.list(path, type=type, limit=limit)]
    show_rows(rows, ["id", "at", "type", "user", "snapshot_id"], output_format=common.output_format, empty="no reports")
