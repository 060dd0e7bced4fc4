# SPDX-License-Identifier: Apache-2.0
"""Fixtures of stored records: their fields in `expected.json`, and their bytes beside it.

`python -m tests.model.record_fixtures dashboard_record` writes the bytes of a new one. Bytes that exist never change.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any, cast

from limnos.model.records import NODE_RECORDS, Record, RoleRecord, encode

HOME = Path(__file__).parent / "fixtures" / "records" / "v1.0"
EXPECTED = cast("dict[str, dict[str, dict[str, object]]]", json.loads((HOME / "expected.json").read_text("utf-8")))
RECORD_CLASSES: dict[str, type[Record]] = {
    each.MESSAGE.DESCRIPTOR.name: each for each in (*NODE_RECORDS.values(), RoleRecord)
}
"""The record class of each message."""


def record_class(name: str) -> type[Record]:
    """Return the class of a fixture's record."""
    return RECORD_CLASSES[str(EXPECTED["records"][name]["kind"])]


def expected_fields(name: str) -> dict[str, Any]:
    """Return the fields that a fixture's record has."""
    fields = cast("dict[str, object]", EXPECTED["records"][name]["fields"])
    return {key: tuple(value) if isinstance(value, list) else value for key, value in fields.items()}


def write_fixture(name: str, folder: Path) -> None:
    """Write the bytes of a record with the expected fields. Raises FileExistsError."""
    with (folder / f"{name}.bin").open("xb") as file:
        file.write(encode(record_class(name)(**expected_fields(name))))


if __name__ == "__main__":
    write_fixture(sys.argv[1], HOME)
