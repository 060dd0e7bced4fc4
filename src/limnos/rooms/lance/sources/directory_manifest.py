# SPDX-License-Identifier: Apache-2.0
"""The index of a V2 directory: a Lance table `__manifest` with a row for each namespace and table.

Must not know folders. Rows of unknown kinds and unknown columns are preserved. A name is reserved by a merge on its
identifier, which the library repeats after a concurrent commit: if two writers create the same name, the second writer
fails.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

import lance
import msgspec
import pyarrow as pa

from limnos.model.errors import InvalidTable
from limnos.names.path import Levels
from limnos.rooms.lance.formats.layouts import MANIFEST, ManifestRow, ManifestRowKind, object_id_of, row_of
from limnos.rooms.lance.sources.library_errors import translate_library_errors
from limnos.rooms.lance.sources.opening import open_latest

SCHEMA: Final = pa.schema(
    [
        pa.field(
            "object_id", pa.string(), nullable=False, metadata={"lance-schema:unenforced-primary-key:position": "0"}
        ),
        pa.field("object_type", pa.string(), nullable=False),
        pa.field("location", pa.string()),
        pa.field("metadata", pa.string()),
        pa.field("base_objects", pa.list_(pa.field("object_id", pa.string()))),
    ]
)
_READ: Final = ("object_id", "object_type", "location", "metadata")
_RETRIES: Final = 20


class DirectoryManifest:
    """The index of one Lance directory. It is read again each time, because other clients write to it."""

    def __init__(self, root: str, options: Mapping[str, str]) -> None:
        self._at = f"{root}/{MANIFEST}"
        self._options = dict(options)

    def rows(self) -> list[ManifestRow]:
        """Return the rows of the index; empty if it does not exist. Raises InvalidTable for a damaged index,
        StorageFailed if the storage cannot be read.
        """
        dataset = open_latest(self._at, self._options)
        if dataset is None:
            return []
        missing = [name for name in _READ if name not in dataset.schema.names]
        if missing:
            raise InvalidTable(
                f"{self._at} has no column {missing[0]}: it is not the manifest table of a Lance directory namespace"
            )
        kinds = ", ".join(f"'{kind}'" for kind in ManifestRowKind)
        with translate_library_errors(self._at):
            table = dataset.to_table(columns=list(_READ), filter=f"object_type IN ({kinds})")
        rows = [
            row_of(each["object_id"], each["object_type"], location=each["location"], metadata=each["metadata"])
            for each in table.to_pylist()
        ]
        return [row for row in rows if row is not None]

    def insert(self, row: ManifestRow) -> bool:
        """Add a row, and create the index if it does not exist. Returns False if the name is taken."""
        dataset = self._open_or_create()
        fields: dict[str, Any] = {
            "object_id": object_id_of(row.levels),
            "object_type": row.kind.value,
            "location": row.location,
            "metadata": msgspec.json.encode(row.properties).decode() if row.properties else None,
        }
        new = pa.table(
            {field.name: pa.array([fields.get(field.name)], field.type) for field in dataset.schema},
            schema=dataset.schema,
        )
        with translate_library_errors(self._at):
            merge = dataset.merge_insert("object_id").when_not_matched_insert_all().conflict_retries(_RETRIES)
            merge_result: dict[str, Any] = merge.execute(new)
        return bool(merge_result["num_inserted_rows"])

    def delete(self, levels: Iterable[Levels]) -> None:
        """Delete the rows with these names."""
        quoted_ids = ", ".join(_quote_text(object_id_of(each)) for each in levels)
        with translate_library_errors(self._at):
            self._open_or_create().delete(f"object_id IN ({quoted_ids})", conflict_retries=_RETRIES)

    def rename(self, levels: Levels, target: Levels) -> None:
        """Change the name of a namespace's or table's row. The caller has checked that the new name is not in use."""
        with translate_library_errors(self._at):
            self._open_or_create().update(
                {"object_id": _quote_text(object_id_of(target))},
                where=f"object_id = {_quote_text(object_id_of(levels))}",
                conflict_retries=_RETRIES,
            )

    def _open_or_create(self) -> lance.LanceDataset:
        dataset = open_latest(self._at, self._options)
        if dataset is not None:
            return dataset
        try:
            return lance.write_dataset(
                SCHEMA.empty_table(), self._at, mode="create", storage_options=self._options or None
            )
        except OSError:
            made_meanwhile = open_latest(self._at, self._options)
            if made_meanwhile is None:
                raise
            return made_meanwhile


def _quote_text(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
