# SPDX-License-Identifier: Apache-2.0
"""Parses queries: blocks in either order, terms of FROM, groups, set operations.

Must not know statements. A block that begins with FROM and one that begins with SELECT give the same node.
"""

from __future__ import annotations

from typing import Literal

from limnos.rooms.sqlpp.language import tree
from limnos.rooms.sqlpp.language.errors import SqlppError, shorten, syntax
from limnos.rooms.sqlpp.language.parser.calls import CallParser
from limnos.rooms.sqlpp.language.parser.expressions import QUERY_STARTS, last_name
from limnos.rooms.sqlpp.language.printer import render
from limnos.rooms.sqlpp.language.tokens import END, IDENTIFIER, QUOTED

_OPERATIONS: dict[str, Literal["union", "intersect", "except"]] = {
    "UNION": "union",
    "INTERSECT": "intersect",
    "EXCEPT": "except",
}
_UNNEST = ("UNNEST", "CORRELATE", "FLATTEN")


# Tokens after a SELECT without projections, which means SELECT *, as in AsterixDB.
_SELECTS_ALL = frozenset(
    {"FROM", "LET", "LETTING", "WITH", "ORDER", "LIMIT", "OFFSET", "RETURNING", *_OPERATIONS, ")", "}", ";", END}
)


class QueryParser(CallParser):
    """Parses queries: SELECT blocks, their clauses, and set operations."""

    def query(self) -> tree.QueryExpression:
        """Parse a query without parentheses: `[WITH …] block [UNION ALL …] [ORDER BY …] [LIMIT …] [OFFSET …]`."""
        self.enter()
        at = self.at
        lets = self.lets()
        block = self.block()
        arms = []
        while self.kind in _OPERATIONS:
            arms.append(self.arm())
        order = self.order_by()
        limit, offset = self.limits()
        self.leave()
        return tree.QueryExpression(
            at=at, lets=lets, block=block, arms=tuple(arms), order=order, limit=limit, offset=offset
        )

    def arm(self) -> tree.SetArm:
        """Parse a set operator and its right operand."""
        token = self.advance()
        every = self.accept("ALL")
        if self.kind != "(":
            return tree.SetArm(token.place, _OPERATIONS[token.kind], every, self.block())
        self.advance()
        query = self.query()
        self.expect(")")
        return tree.SetArm(token.place, _OPERATIONS[token.kind], every, query)

    def limits(self) -> tuple[tree.Expression | None, tree.Expression | None]:
        """Parse optional LIMIT and OFFSET, in either order."""
        if self.accept("LIMIT"):
            limit = self.expression()
            return limit, self.expression() if self.accept("OFFSET") else None
        if self.accept("OFFSET"):
            offset = self.expression()
            return self.expression() if self.accept("LIMIT") else None, offset
        return None, None

    def block(self) -> tree.Block:
        """Parse one block: its clauses, beginning with SELECT or FROM. Raises SqlppError for another token."""
        self.enter()
        at = self.at
        select = self.select() if self.kind == "SELECT" else None
        if select is None and self.kind != "FROM":
            raise self.error()
        terms, lets, where = self.terms(), self.lets(), self.optional("WHERE")
        group, group_lets, having = self.group() if terms else (None, (), None)
        if select is None:
            select = self.select()
        self.leave()
        return tree.Block(
            at=at, terms=terms, lets=lets, where=where, group=group, group_lets=group_lets, having=having, select=select
        )

    def optional(self, word: str) -> tree.Expression | None:
        """Parse an optional clause that is a keyword and an expression, such as WHERE; None if it is absent."""
        return self.expression() if self.accept(word) else None

    def group(self) -> tuple[tree.GroupBy | None, tuple[tree.Let, ...], tree.Expression | None]:
        """Parse an optional GROUP BY with GROUP AS, LET and HAVING."""
        if self.kind != "GROUP":
            return None, (), None
        at = self.advance().place
        self.expect("BY")
        elements = self.comma_separated(self.grouping)
        variable = None
        if self.accept("GROUP"):
            self.expect("AS")
            variable = self.group_variable()
        return tree.GroupBy(at, elements, variable), self.lets(), self.optional("HAVING")

    def lets(self) -> tuple[tree.Let, ...]:
        """Parse an optional LET or WITH."""
        if self.kind in ("LET", "LETTING"):
            self.advance()
            return self.comma_separated(self.let)
        return self.comma_separated(self.with_) if self.accept("WITH") else ()

    def let(self) -> tree.Let:
        """Parse `name = value`."""
        at = self.at
        name = self.identifier()
        self.expect("=")
        return tree.Let(at, name, self.expression())

    def with_(self) -> tree.Let:
        """Parse `name AS value`."""
        at = self.at
        name = self.identifier()
        self.expect("AS")
        return tree.Let(at, name, self.expression())

    def select(self) -> tree.Select:
        """Parse `SELECT [DISTINCT]` with VALUE or projections, and EXCLUDE."""
        at = self.expect("SELECT").place
        distinct = self.kind == "DISTINCT"
        if self.kind in ("DISTINCT", "ALL"):
            self.advance()
        if self.kind in ("VALUE", "ELEMENT", "RAW"):
            self.advance()
            return tree.Select(at=at, distinct=distinct, value=self.expression(), projections=(), exclude=())
        if self.kind in _SELECTS_ALL:
            return tree.Select(
                at=at,
                distinct=distinct,
                value=None,
                projections=(tree.Projection(at, None, None, every=False),),
                exclude=(),
            )
        projections = self.comma_separated(self.projection)
        exclude = self.comma_separated(self.path) if self.accept_soft("EXCLUDE") else ()
        return tree.Select(at=at, distinct=distinct, value=None, projections=projections, exclude=exclude)

    def projection(self) -> tree.Projection:
        """Parse one projection: `*`, `value.*`, or `value [AS name]`."""
        at, began = self.at, self.index
        if self.accept("*"):
            return tree.Projection(at, None, None, every=False)
        value = self.expression()
        if self.kind == "." and self.peek().kind == "*" and self.bare == began:
            self.advance()
            self.advance()
            return tree.Projection(at, value, None, every=True)
        if self.accept("AS") or self.kind == QUOTED or (self.kind == IDENTIFIER and self.token.soft != "EXCLUDE"):
            return tree.Projection(at, value, self.identifier(), every=False)
        return tree.Projection(at, value, last_name(value), every=False)

    def terms(self) -> tuple[tree.Term, ...]:
        """Parse an optional FROM; empty if it is absent."""
        return self.comma_separated(self.term) if self.accept("FROM") else ()

    def term(self) -> tree.Term:
        """Parse one term of FROM, with its joins and unnests."""
        at = self.at
        source, variable, position = self.source()
        links: list[tree.Join | tree.Unnest] = []
        while (link := self.link()) is not None:
            links.append(link)
        return tree.Term(at=at, source=source, variable=variable, position=position, links=tuple(links))

    def source(self) -> tuple[tree.Expression, str, str | None]:
        """Parse `source [AS] variable [AT position]`: an expression to iterate over, its variable, and the position
        variable.

        Raises SqlppError if the variable is required and absent.
        """
        value = self.expression()
        if self.accept("AS") or self.named:
            variable = self.identifier()
        else:
            inferred = last_name(value)
            if inferred is None:
                raise _no_alias(value)
            variable = inferred
        return value, variable, self.identifier() if self.accept("AT") else None

    def link(self) -> tree.Join | tree.Unnest | None:
        """Parse an optional join or unnest; None if there is none."""
        at, kind = self.at, self.kind
        if kind in ("INNER", "JOIN", *_UNNEST):
            self.accept("INNER")
            return self.join_or_unnest("inner")
        if kind == "LEFT":
            self.advance()
            self.accept("OUTER")
            return self.join_or_unnest("left")
        if kind == "RIGHT":
            self.advance()
            self.accept("OUTER")
            return self.join("right")
        if kind == "CROSS":
            self.advance()
            self.expect("JOIN")
            source, variable, position = self.source()
            return tree.Join(at=at, kind="cross", source=source, variable=variable, position=position, condition=None)
        return None

    def join_or_unnest(self, kind: Literal["inner", "left"]) -> tree.Join | tree.Unnest:
        """Parse a join or an unnest of this kind, after the words that state the kind."""
        if self.kind not in _UNNEST:
            return self.join(kind)
        at = self.advance().place
        source, variable, position = self.source()
        return tree.Unnest(at=at, outer=kind == "left", source=source, variable=variable, position=position)

    def join(self, kind: Literal["inner", "left", "right"]) -> tree.Join:
        """Parse `JOIN source ON condition`."""
        at = self.expect("JOIN").place
        source, variable, position = self.source()
        self.expect("ON")
        return tree.Join(
            at=at, kind=kind, source=source, variable=variable, position=position, condition=self.expression()
        )

    def grouping(self) -> tree.Grouping:
        """Parse an element of GROUP BY: a key, a set of keys, ROLLUP, CUBE or GROUPING SETS.

        As in AsterixDB, a parenthesis begins a set of keys.
        """
        at, word = self.at, self.token.soft
        if word in ("ROLLUP", "CUBE") and self.peek().kind == "(":
            self.advance()
            self.advance()
            sets = self.comma_separated(self.group_set)
            self.expect(")")
            return tree.Rollup(at, word == "CUBE", sets)
        if word == "GROUPING" and self.peek().soft == "SETS" and self.peek(2).kind == "(":
            self.enter()
            for _ in range(3):
                self.advance()
            elements = self.comma_separated(self.grouping)
            self.expect(")")
            self.leave()
            return tree.GroupingSets(at, elements)
        if self.kind == "(" and self.peek().kind == ")":
            self.advance()
            self.advance()
            return tree.GroupSet(at, ())
        return self.group_set()

    def group_set(self) -> tree.GroupSet:
        """Parse a set of keys in parentheses, or a single key. The expression of a single key may begin with a
        parenthesis.
        """
        at = self.at
        if not self.accept("("):
            return tree.GroupSet(at, (self.group_key(),))
        first = self.query() if self.kind in QUERY_STARTS else self.expression()
        if self.accept(")"):
            return tree.GroupSet(at, (self.named_key(self.expression(first)),))
        keys = [self.named_key(first)]
        while self.accept(","):
            keys.append(self.group_key())
        self.expect(")")
        return tree.GroupSet(at, tuple(keys))

    def group_key(self) -> tree.GroupKey:
        """Parse `expression [AS variable]` in GROUP BY."""
        return self.named_key(self.expression())

    def named_key(self, value: tree.Expression) -> tree.GroupKey:
        """Parse the optional `[AS] variable` of a grouping expression that is already parsed."""
        if self.accept("AS") or self.named:
            return tree.GroupKey(value.at, value, self.identifier())
        return tree.GroupKey(value.at, value, last_name(value))

    def body(self) -> tree.Expression:
        """Parse the body of a statement, function or view: a query or an expression."""
        return self.query() if self.kind in QUERY_STARTS else self.expression()


def _no_alias(value: tree.Expression) -> SqlppError:
    return syntax(f"Need an alias for the enclosed expression:\n{shorten(render(value))}", value.at)
