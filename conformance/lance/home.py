# SPDX-License-Identifier: Apache-2.0
"""The state of one client in one depth group: its names, results of earlier calls, and versions to commit.

May import pyarrow, pylance (for the files that a writer stages before it commits) and the standard library. It must not
know how a client sends requests.
"""

from __future__ import annotations

import shutil
import tempfile
import uuid
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa

import lance

Json = dict[str, object]
SIZE = 8
COUNT = 300
NEAR = [17.0] * SIZE
ROWS = pa.table(
    {
        "id": pa.array(range(COUNT), pa.int64()),
        "text": [f"word{number % 7} cat" for number in range(COUNT)],
        "vector": pa.array([[float(number)] * SIZE for number in range(COUNT)], pa.list_(pa.float32(), SIZE)),
    }
)


def stream(table: pa.Table = ROWS) -> bytes:
    """Rows as an Arrow stream."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table, max_chunksize=100)
    return bytes(sink.getvalue())


@dataclass
class Home:
    """A namespace in which a client creates objects with its mark in their names, and the answers that it got."""

    path: tuple[str, ...]
    mark: str
    told: dict[str, Json] = field(default_factory=dict)

    @property
    def depth(self) -> int:
        """The number of names in the identifier of an object in the home."""
        return len(self.path) + 1

    def named(self, name: str) -> list[str]:
        """Return the full identifier of an object in the home; of the home itself without a name."""
        return [*self.path, f"{self.mark}_{name}"] if name else list(self.path)

    def said(self, key: str, name: str) -> object:
        """Return a field of an earlier answer; without one, a text that names nothing."""
        return self.told.get(key, {}).get(name, "none")

    def place(self, key: str) -> Path:
        """Return the location of a table from an earlier answer."""
        return Path(str(self.said(key, "location")).removeprefix("file://"))

    def staged(self, key: str, version: int) -> Json:
        """Write a version as pylance does, up to its staged manifest. Returns the body that commits it."""
        place = self.place(key)
        with tempfile.TemporaryDirectory() as folder:
            scratch = Path(folder) / "t"
            if place.is_dir() and version > 1:
                shutil.copytree(place, scratch)
            before = {each.relative_to(scratch) for each in scratch.rglob("*")}
            lance.write_dataset(ROWS, str(scratch), mode="append" if version > 1 else "create")
            manifest = f"{2**64 - 1 - version:020d}.manifest"
            staged = place / "_versions" / f"{manifest}-{uuid.uuid4()}"
            for each in scratch.rglob("*"):
                if each.is_file() and each.relative_to(scratch) not in before:
                    target = staged if each.name == manifest else place / each.relative_to(scratch)
                    target.parent.mkdir(parents=True, exist_ok=True)
                    shutil.copyfile(each, target)
        return {
            "version": version,
            "manifest_path": str(staged).lstrip("/"),
            "manifest_size": staged.stat().st_size,
            "naming_scheme": "V2",
        }
