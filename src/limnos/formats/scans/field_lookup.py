# SPDX-License-Identifier: Apache-2.0
"""Resolves field names in a scan request.

Must not know filters. A client that requests a snapshot's schema may still use the table's current names: Iceberg's
Java library requests it with every snapshot, and Spark sends the current snapshot's id with current names. So a name is
looked up in both schemas. If it refers to different columns, or columns of different types, it is ignored.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyiceberg.schema import Schema
    from pyiceberg.types import NestedField


class FieldLookup:
    """Looks up field names in the schema of a scan, and in the table's current schema if that differs."""

    def __init__(self, schema: Schema, *, today: Schema | None, case_sensitive: bool) -> None:
        self._schema, self._today, self._case_sensitive = schema, today, case_sensitive

    def field(self, name: str | int) -> NestedField | None:
        """Return the field of the scan's schema for a name or field id; None if it is ambiguous, or was added to the
        table after that schema.

        Raises ValueError if neither schema has it.
        """
        then = self._find_field(self._schema, name)
        if self._today is None:
            return then if then is not None else self._unknown(name)
        today = self._find_field(self._today, name)
        if then is None and today is None:
            return self._unknown(name)
        if then is None and today is not None:
            then = self._find_field(self._schema, today.field_id)
        if then is None or (
            today is not None and (today.field_id, today.field_type) != (then.field_id, then.field_type)
        ):
            return None
        return then

    def _find_field(self, schema: Schema, name: str | int) -> NestedField | None:
        try:
            return schema.find_field(name, self._case_sensitive)
        except ValueError:
            return None

    @staticmethod
    def _unknown(name: str | int) -> NestedField:
        raise ValueError(name)
