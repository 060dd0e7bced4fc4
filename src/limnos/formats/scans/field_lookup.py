"""What a name in a request to plan a scan means.

May import pyiceberg alone. Who asks for a snapshot's schema may still mean the table's names: Iceberg's Java library asks for it with every snapshot, and Spark
names the current one in each of its queries, with the table's names of today. So a name is looked for in both, and where it means different columns, or
columns whose values are of different types, nothing is concluded from it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyiceberg.schema import Schema
    from pyiceberg.types import NestedField


class FieldLookup:
    """The names of the schema that a scan asks for, and of the table's of today where that is another."""

    def __init__(self, schema: Schema, *, today: Schema | None, case_sensitive: bool) -> None:
        self._schema, self._today, self._case_sensitive = schema, today, case_sensitive

    def field(self, name: str | int) -> NestedField | None:
        """Return the field of the scan's schema that a name, or a field's number, means; None when that is not certain, or the schema has none of the kind yet.

        Raises ValueError for what neither schema has.
        """
        then = self._found(self._schema, name)
        if self._today is None:
            return then if then is not None else self._unknown(name)
        today = self._found(self._today, name)
        if then is None and today is None:
            return self._unknown(name)
        if then is None and today is not None:
            then = self._found(self._schema, today.field_id)
        if then is None or (
            today is not None and (today.field_id, today.field_type) != (then.field_id, then.field_type)
        ):
            return None
        return then

    def _found(self, schema: Schema, name: str | int) -> NestedField | None:
        try:
            return schema.find_field(name, self._case_sensitive)
        except ValueError:
            return None

    @staticmethod
    def _unknown(name: str | int) -> NestedField:
        raise ValueError(name)
