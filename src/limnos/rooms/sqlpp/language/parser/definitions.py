# SPDX-License-Identifier: Apache-2.0
"""Parses CREATE and DROP of all objects except datasets, indexes and functions, and common parts.

Must not know the effect of definitions. IF [NOT] EXISTS may precede or follow the name.
"""

from __future__ import annotations

from limnos.rooms.sqlpp.language import tree
from limnos.rooms.sqlpp.language.errors import TextPosition, syntax
from limnos.rooms.sqlpp.language.parser.types import TypeParser
from limnos.rooms.sqlpp.language.tokens import INTEGER, QUOTED, STRING
from limnos.rooms.sqlpp.language.tree.expressions import FieldStep, Step
from limnos.rooms.sqlpp.language.tree.statements import Kind


class DefinitionParser(TypeParser):
    """Parses CREATE and DROP of dataverses, types, synonyms and views."""

    def if_not_exists(self, *, is_parsed: bool = False) -> bool:
        """Parse an optional IF NOT EXISTS. Returns whether there was one.

        With `is_parsed` it was already parsed before the name, so a second one is left as a syntax error.
        """
        if is_parsed or self.kind != "IF":
            return is_parsed
        self.advance()
        self.expect("NOT")
        self.expect("EXISTS")
        return True

    def if_exists(self, *, is_parsed: bool = False) -> bool:
        """Parse an optional IF EXISTS, like `if_not_exists`."""
        if is_parsed or self.kind != "IF":
            return is_parsed
        self.advance()
        self.expect("EXISTS")
        return True

    def create_dataverse(self, at: TextPosition) -> tree.CreateDataverse:
        """Parse `CREATE DATAVERSE [IF NOT EXISTS] name`, from its second word."""
        self.expect("DATAVERSE")
        if_not_exists = self.if_not_exists()
        name = self.name()
        return tree.CreateDataverse(at, name, self.if_not_exists(is_parsed=if_not_exists))

    def create_type(self, at: TextPosition) -> tree.CreateType:
        """Parse `CREATE TYPE name [IF NOT EXISTS] AS record`."""
        self.expect("TYPE")
        if_not_exists = self.if_not_exists()
        name = self.name()
        if_not_exists = self.if_not_exists(is_parsed=if_not_exists)
        self.expect("AS")
        return tree.CreateType(at, name, if_not_exists, self.record())

    def create_synonym(self, at: TextPosition) -> tree.CreateSynonym:
        """Parse `CREATE SYNONYM name [IF NOT EXISTS] FOR target`."""
        self.expect("SYNONYM")
        if_not_exists = self.if_not_exists()
        name = self.name()
        if_not_exists = self.if_not_exists(is_parsed=if_not_exists)
        self.expect("FOR")
        return tree.CreateSynonym(at, name, if_not_exists, self.name())

    def create_view(self, at: TextPosition, *, or_replace: bool) -> tree.CreateView:
        """Parse `CREATE [OR REPLACE] VIEW name [(fields)] AS body`. Raises SqlppError."""
        self.expect("VIEW")
        if_not_exists = self.if_not_exists()
        name = self.name()
        schema = self.view_schema() if self.kind == "(" else None
        if_not_exists = self.if_not_exists(is_parsed=if_not_exists)
        if if_not_exists and or_replace:
            raise syntax("Unexpected IF NOT EXISTS", at)
        self.expect("AS")
        return tree.CreateView(
            at=at, name=name, or_replace=or_replace, if_not_exists=if_not_exists, schema=schema, body=self.view_body()
        )

    def view_body(self) -> tree.Expression:
        """Parse a view's body: a query without parentheses, or a path."""
        if self.named:
            at = self.at
            variable = tree.Variable(at, self.advance().value)
            steps: list[Step] = []
            while self.kind == ".":
                dot = self.advance().place
                steps.append(FieldStep(dot, self.identifier()))
            return tree.PathExpression(at, variable, tuple(steps)) if steps else variable
        return self.query()

    def view_schema(self) -> tree.ViewSchema:
        """Parse the fields, formats and keys of a typed view."""
        at = self.at
        kind = self.dataset_type(open_=False)
        formats = self.cast_formats()
        keys: tuple[tuple[str, ...], ...] = ()
        if self.accept("PRIMARY"):
            keys = self.view_key()
            self.not_enforced()
        foreign = []
        while self.token.soft == "FOREIGN":
            began = self.advance().place
            paths = self.view_key()
            self.expect_soft("REFERENCES")
            foreign.append(tree.ForeignKey(began, paths, self.name()))
            self.not_enforced()
        return tree.ViewSchema(at=at, type=kind, formats=formats, keys=keys, foreign_keys=tuple(foreign))

    def cast_formats(self) -> tuple[tree.Option, ...]:
        """Parse `DEFAULT NULL` and the format patterns of dates and times."""
        self.expect_soft("DEFAULT")
        self.expect("NULL")
        formats = []
        while self.named and self.token.soft != "FOREIGN":
            at = self.at
            formats.append(tree.Option(at, self.identifier().lower(), self.string()))
        return tuple(formats)

    def view_key(self) -> tuple[tuple[str, ...], ...]:
        """Parse `KEY (path, …)`."""
        self.expect("KEY")
        self.expect("(")
        paths = self.comma_separated(self.path)
        self.expect(")")
        return paths

    def not_enforced(self) -> None:
        """Consume NOT ENFORCED, which a view's key requires."""
        self.expect("NOT")
        self.expect("ENFORCED")

    def drop_named(self, at: TextPosition, kind: Kind) -> tree.Drop:
        """Parse DROP of an object that is identified by its name alone, from the keyword of its kind."""
        self.advance()
        if_exists = self.if_exists()
        name = self.name()
        return tree.Drop(at, kind, name, self.if_exists(is_parsed=if_exists))

    def options(self) -> tuple[tree.Option, ...]:
        """Parse an adapter's options: `(("name"="value"), …)`."""
        self.expect("(")
        options = () if self.kind == ")" else self.comma_separated(self.option)
        self.expect(")")
        return options

    def option(self) -> tree.Option:
        """Parse `("name"="value")`; TRUE and FALSE need no quotes."""
        at = self.expect("(").place
        name = self.constant()
        self.expect("=")
        value = self.advance().image.lower() if self.kind in ("TRUE", "FALSE") else self.constant()
        self.expect(")")
        return tree.Option(at, name, value)

    def hint_options(self) -> tuple[tree.Option, ...]:
        """Parse an optional `HINTS (name=value, …)`."""
        if not self.accept("HINTS") or not self.accept("("):
            return ()
        options = self.comma_separated(self.hint_option)
        self.expect(")")
        return options

    def hint_option(self) -> tree.Option:
        """Parse `name=value`."""
        at = self.at
        name = self.string() if self.kind == STRING else self.identifier()
        self.expect("=")
        if self.kind == INTEGER:
            return tree.Option(at, name, str(self.integer()))
        return tree.Option(at, name, self.constant() if self.kind in (STRING, QUOTED) else self.expect(STRING).value)

    def settings(self) -> tree.Object | None:
        """Parse an optional `WITH {…}`."""
        return self.object() if self.accept("WITH") else None
