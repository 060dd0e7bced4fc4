# SPDX-License-Identifier: Apache-2.0
"""Parses statements: selects the kind by the first word, and parses those that change data.

Must not know the effect of statements.
"""

from __future__ import annotations

from collections.abc import Callable

from limnos.rooms.sqlpp.language.errors import TextPosition, syntax
from limnos.rooms.sqlpp.language.parser.updates import UpdateParser
from limnos.rooms.sqlpp.language.tokens import PRESORTED
from limnos.rooms.sqlpp.language.tree import (
    Analyze,
    Boolean,
    CopyFrom,
    CopyTo,
    Decimal,
    Delete,
    DottedName,
    Explain,
    Expression,
    GroupKey,
    Insert,
    Integer,
    Load,
    Option,
    OrderItem,
    QueryExpression,
    QueryStatement,
    SetOption,
    Statement,
    String,
    TypeExpression,
    UnaryOperation,
    Use,
)
from limnos.rooms.sqlpp.language.tree.statements import Kind

_DROPS: dict[str, Kind] = {
    "DATAVERSE": "dataverse",
    "TYPE": "type",
    "DATASET": "dataset",
    "COLLECTION": "dataset",
    "SYNONYM": "synonym",
    "VIEW": "view",
}


class StatementParser(UpdateParser):
    """Parses one statement of any kind; its first word determines the kind."""

    def statement(self) -> Statement:
        """Parse one statement without its semicolon. It is a query unless its first word begins another statement."""
        read = _STATEMENTS.get(self.kind)
        return read(self) if read else QueryStatement(self.at, self.body())

    def explain(self) -> Explain:
        """Parse `EXPLAIN query`. Raises SqlppError unless a query follows."""
        at = self.expect("EXPLAIN").place
        if self.kind == "EXPLAIN":
            raise self.error()
        statement = self.statement()
        if not isinstance(statement, QueryStatement):
            raise syntax("EXPLAIN is not supported for this kind of statement", at)
        return Explain(at, statement)

    def use(self) -> Use:
        """Parse `USE dataverse`."""
        return Use(self.expect("USE").place, self.name())

    def set_option(self) -> SetOption:
        """Parse `SET name "value"`."""
        at = self.expect("SET").place
        name = self.identifier()
        return SetOption(at, name, self.constant())

    def create(self) -> Statement:
        """Parse CREATE; the next words determine the kind of object. Raises SqlppError for another word."""
        at = self.expect("CREATE").place
        if self.accept("OR"):
            self.expect_soft("REPLACE")
            if self.kind == "VIEW":
                return self.create_view(at, or_replace=True)
            return self.create_function(at, or_replace=True)
        if self.kind == "VIEW":
            return self.create_view(at, or_replace=False)
        if self.kind == "FUNCTION":
            return self.create_function(at, or_replace=False)
        read = _CREATES.get(self.kind)
        if read is None:
            raise self.error()
        return read(self, at)

    def drop(self) -> Statement:
        """Parse DROP; the next word determines the kind of object. Raises SqlppError for another word."""
        at = self.expect("DROP").place
        if self.kind == "INDEX":
            return self.drop_index(at)
        if self.kind == "FUNCTION":
            return self.drop_function(at)
        if self.kind not in _DROPS:
            raise self.error()
        return self.drop_named(at, _DROPS[self.kind])

    def insert(self) -> Insert:
        """Parse `INSERT|UPSERT INTO dataset [AS variable] source [RETURNING value]`."""
        token = self.advance()
        self.expect("INTO")
        target = self.name()
        variable = self.identifier() if self.accept("AS") else None
        source = self.body()
        returning = self.expression() if self.accept("RETURNING") else None
        return Insert(
            at=token.place,
            upsert=token.kind == "UPSERT",
            target=target,
            variable=variable,
            source=source,
            returning=returning,
        )

    def delete(self) -> Delete:
        """Parse `DELETE FROM dataset [[AS] variable] [WHERE condition]`."""
        at = self.expect("DELETE").place
        self.expect("FROM")
        target = self.name()
        variable = self.identifier() if self.accept("AS") or self.named else None
        return Delete(at, target, variable, self.optional("WHERE"))

    def load(self) -> Load:
        """Parse `LOAD DATASET dataset USING adapter (options) [PRE-SORTED]`."""
        at = self.expect("LOAD").place
        self.dataset_word()
        target = self.name()
        self.expect("USING")
        adapter = self.identifier()
        options = self.options()
        return Load(at=at, target=target, adapter=adapter, options=options, presorted=self.accept(PRESORTED))

    def copy(self) -> CopyFrom | CopyTo:
        """Parse COPY: `COPY [INTO] dataset [[AS] (type)] FROM …`, `COPY dataset [variable] TO …` or
        `COPY (query) variable TO …`.
        """
        at = self.expect("COPY").place
        if self.accept("("):
            query = self.query()
            self.expect(")")
            self.accept("AS")
            return self.copy_to(at, query, variable=self.identifier())
        into = self.accept("INTO")
        target = self.name()
        has_as = self.accept("AS")
        if into or self.kind in ("USING", "FROM", "("):
            type_ = self.dataset_type(open_=True) if has_as or self.kind == "(" else None
            return self.copy_from(at, target, type_=type_)
        variable = self.identifier() if has_as or self.named else target.last
        return self.copy_to(at, target, variable=variable)

    def copy_from(self, at: TextPosition, target: DottedName, *, type_: TypeExpression | None) -> CopyFrom:
        """Parse `FROM adapter PATH (…) [WITH {…}]`; instead of PATH an adapter may have options in parentheses."""
        if not self.accept("USING"):
            self.expect("FROM")
        adapter = self.identifier()
        if self.kind == "(":
            return CopyFrom(at=at, target=target, adapter=adapter, options=self.options(), type=type_)
        began = self.expect("PATH").place
        self.expect("(")
        paths = ",".join(self.comma_separated(self.string))
        self.expect(")")
        return CopyFrom(
            at=at,
            target=target,
            adapter=adapter,
            options=(Option(began, "path", paths), *self.setting_options()),
            type=type_,
        )

    def copy_to(self, at: TextPosition, source: DottedName | QueryExpression, *, variable: str) -> CopyTo:
        """Parse `TO adapter PATH (…) [OVER (…)] [TYPE ({…}) | AS type] [formats] WITH {…}`.

        Raises SqlppError if both TYPE and AS state a type.
        """
        self.expect("TO")
        adapter = self.identifier()
        self.expect("PATH")
        self.expect("(")
        path = self.comma_separated(self.expression)
        self.expect(")")
        partition, order = self.copy_order() if self.accept("OVER") else ((), ())
        type_: TypeExpression | None = None
        if self.accept("TYPE"):
            self.expect("(")
            type_ = self.record()
            self.expect(")")
        if self.kind == "AS" and type_ is not None:
            raise syntax(
                "Both 'TYPE()' and 'AS()' are provided. Please use either 'TYPE()' or 'AS()'.", self.token.place
            )
        if self.accept("AS"):
            type_ = self.dataset_type(open_=False)
        formats = []
        while self.named:
            began = self.at
            formats.append(Option(began, self.identifier().lower(), self.string()))
        if self.kind != "WITH":
            raise self.error()
        return CopyTo(
            at=at,
            source=source,
            variable=variable,
            adapter=adapter,
            path=path,
            partition=partition,
            order=order,
            type=type_,
            formats=tuple(formats),
            options=self.setting_options(),
        )

    def copy_order(self) -> tuple[tuple[GroupKey, ...], tuple[OrderItem, ...]]:
        """Parse `(PARTITION BY key [variable], … ORDER BY …)` after OVER; at least one of the two clauses is required.

        Raises SqlppError if both are absent.
        """
        self.expect("(")
        partition: tuple[GroupKey, ...] = ()
        if self.accept_soft("PARTITION"):
            self.expect("BY")
            partition = self.comma_separated(self.group_key)
        order = self.order_by()
        if not partition and not order:
            raise syntax("OVER-clause cannot be empty", self.token.place)
        self.expect(")")
        return partition, order

    def analyze(self) -> Analyze:
        """Parse `ANALYZE DATASET dataset [WITH {…}]`, or with `DROP STATISTICS`. Raises SqlppError for other words."""
        at = self.expect("ANALYZE").place
        self.dataset_word()
        dataset = self.name()
        if self.accept("DROP"):
            if not self.named or self.token.value.upper() != "STATISTICS":
                raise self.error()
            self.advance()
            return Analyze(at, dataset, True, ())
        return Analyze(at, dataset, False, self.setting_options())

    def setting_options(self) -> tuple[Option, ...]:
        """Parse an optional `WITH {…}` whose values are strings, numbers or booleans.

        Raises SqlppError for another value.
        """
        settings = self.settings()
        options = []
        for pair in () if settings is None else settings.pairs:
            name, value = (_setting_text(each) for each in (pair.name, pair.value))
            if name is None or value is None:
                raise syntax("The value of a setting must be a string, a number or a boolean", pair.at)
            options.append(Option(pair.at, name, value))
        return tuple(options)


def _setting_text(node: Expression) -> str | None:
    """Return the text of a literal; None for another expression."""
    if isinstance(node, Boolean):
        return str(node.value).lower()
    if isinstance(node, UnaryOperation) and node.operator == "-":
        text = _setting_text(node.operand)
        return None if text is None or isinstance(node.operand, (Boolean, String)) else f"-{text}"
    if isinstance(node, Decimal):
        return node.text
    return str(node.value) if isinstance(node, (String, Integer)) else None


_STATEMENTS: dict[str, Callable[[StatementParser], Statement]] = {
    "ANALYZE": StatementParser.analyze,
    "EXPLAIN": StatementParser.explain,
    "USE": StatementParser.use,
    "SET": StatementParser.set_option,
    "CREATE": StatementParser.create,
    "DROP": StatementParser.drop,
    "DECLARE": StatementParser.declare_function,
    "INSERT": StatementParser.insert,
    "UPSERT": StatementParser.insert,
    "DELETE": StatementParser.delete,
    "LOAD": StatementParser.load,
    "COPY": StatementParser.copy,
    "UPDATE": StatementParser.update,
}

_CREATES: dict[str, Callable[[StatementParser, TextPosition], Statement]] = {
    "DATAVERSE": StatementParser.create_dataverse,
    "TYPE": StatementParser.create_type,
    "DATASET": StatementParser.create_dataset,
    "COLLECTION": StatementParser.create_dataset,
    "INTERNAL": StatementParser.create_dataset,
    "EXTERNAL": StatementParser.create_external,
    "INDEX": StatementParser.create_index,
    "PRIMARY": StatementParser.create_primary_index,
    "SYNONYM": StatementParser.create_synonym,
}
