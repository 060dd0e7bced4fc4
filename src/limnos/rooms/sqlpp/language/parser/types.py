# SPDX-License-Identifier: Apache-2.0
"""Parses types in declarations.

Must not know the built-in types.
"""

from __future__ import annotations

from limnos.rooms.sqlpp.language.parser.queries import QueryParser
from limnos.rooms.sqlpp.language.tree import ArrayType, BagType, FieldType, NamedType, RecordType, TypeExpression


class TypeParser(QueryParser):
    """Parses type expressions, and the types of datasets and views."""

    def type(self) -> TypeExpression:
        """Parse a type: a name, `[T]`, `{{T}}` or a record."""
        at = self.at
        if self.named:
            return self.type_name()
        self.enter()
        if self.accept("["):
            result: TypeExpression = ArrayType(at, self.type())
            self.expect("]")
        elif self.accept("{{"):
            result = BagType(at, self.type())
            self.expect("}}")
        else:
            result = self.record()
        self.leave()
        return result

    def type_name(self) -> NamedType:
        """Parse one identifier as a reference to a built-in or user-defined type."""
        return NamedType(self.at, self.name())

    def record(self) -> RecordType:
        """Parse `[OPEN|CLOSED] { name: T [?], … }`."""
        at = self.at
        open_ = self.kind != "CLOSED"
        if self.kind in ("OPEN", "CLOSED"):
            self.advance()
        self.expect("{")
        fields = () if self.kind == "}" else self.comma_separated(self.field_type)
        self.expect("}")
        return RecordType(at, open_, fields)

    def field_type(self) -> FieldType:
        """Parse `name: T [?]`."""
        at = self.at
        name = self.identifier()
        self.expect(":")
        return FieldType(at, name, self.type(), self.accept("?"))

    def dataset_type(self, *, open_: bool) -> TypeExpression:
        """Parse the type of a dataset or a view in parentheses: the name of a type, or fields.

        `open_` is whether a type given by fields is open by default.
        """
        at = self.expect("(").place
        if self.peek().kind in (".", ")"):
            name = self.type_name()
            self.expect(")")
            return name
        fields = self.comma_separated(self.inline_field)
        self.expect(")")
        if self.kind in ("OPEN", "CLOSED"):
            open_ = self.advance().kind == "OPEN"
            self.expect("TYPE")
        return RecordType(at, open_, fields)

    def inline_field(self) -> FieldType:
        """Parse `name T [NOT UNKNOWN]`, a field of an inline type."""
        at = self.at
        name = self.identifier()
        kind = self.type_name()
        required = self.accept("NOT")
        if required:
            self.expect("UNKNOWN")
        return FieldType(at, name, kind, not required)
