# SPDX-License-Identifier: Apache-2.0
"""Parses function calls, and the windows of window functions.

Must not know the functions, except `count`: only it accepts a `*`.
"""

from __future__ import annotations

from typing import Literal

from limnos.rooms.sqlpp.language.errors import TextPosition, syntax, unexpected_word
from limnos.rooms.sqlpp.language.parser.expressions import ExpressionParser
from limnos.rooms.sqlpp.language.tokens import IDENTIFIER
from limnos.rooms.sqlpp.language.tree import (
    Call,
    DottedName,
    Expression,
    Frame,
    FrameEdge,
    GroupVariable,
    NamedField,
    OrderItem,
    Window,
)

_MODES: dict[str, Literal["range", "rows", "groups"]] = {"range": "range", "rows": "rows", "groups": "groups"}
_SIDES: dict[str, Literal["preceding", "following"]] = {"preceding": "preceding", "following": "following"}


class CallParser(ExpressionParser):
    """Parses function calls: arguments, FILTER and OVER."""

    def call(self, names: list[str], library: str | None, *, at: TextPosition) -> Call:
        """Parse a call from its opening parenthesis; the name is already consumed."""
        self.expect("(")
        distinct, star = False, False
        arguments: tuple[Expression, ...] = ()
        if self.kind != ")":
            distinct = self.accept("DISTINCT")
            star = self.star(names[-1])
            if not star or self.accept(","):
                arguments = self.comma_separated(self.expression)
        self.expect(")")
        expression = self.call_filter()
        window = self.window() if self.kind in ("OVER", "FROM", IDENTIFIER) else None
        return Call(
            at=at,
            function=DottedName(at, tuple(names)),
            library=library,
            arguments=arguments,
            distinct=distinct,
            star=star,
            filter=expression,
            window=window,
        )

    def star(self, function: str) -> bool:
        """Consume a `*` in place of an argument. Returns whether there was one. Only `count` allows it.

        Raises SqlppError in other calls.
        """
        if self.kind != "*":
            return False
        if function.lower() != "count":
            raise syntax("The parameter * can only be used in count().", self.at)
        self.advance()
        return True

    def call_filter(self) -> Expression | None:
        """Parse an optional `FILTER (WHERE …)`."""
        if not self.accept("FILTER"):
            return None
        self.expect("(")
        self.expect("WHERE")
        expression = self.expression()
        self.expect(")")
        return expression

    def window(self) -> Window | None:
        """Parse an optional `[FROM FIRST|LAST] [RESPECT|IGNORE NULLS] OVER …`; None if there is no OVER."""
        from_end: Literal["first", "last"] | None = None
        nulls: Literal["respect", "ignore"] | None = None
        ahead = 0
        if self.kind == "FROM" and self.peek().soft in ("FIRST", "LAST"):
            from_end = "first" if self.peek().soft == "FIRST" else "last"
            ahead = 2
        word = self.peek(ahead).soft
        if word in ("RESPECT", "IGNORE") and self.peek(ahead + 1).soft == "NULLS":
            nulls = "respect" if word == "RESPECT" else "ignore"
            ahead += 2
        if self.peek(ahead).kind != "OVER":
            return None
        for _ in range(ahead):
            self.advance()
        return self.over(from_end, nulls)

    def over(self, from_end: Literal["first", "last"] | None, nulls: Literal["respect", "ignore"] | None) -> Window:
        """Parse `OVER [variable AS] (…)`. The arguments are the modifiers that precede OVER."""
        self.enter()
        at = self.expect("OVER").place
        variable = None
        if self.named:
            variable = self.group_variable()
            self.expect("AS")
        self.expect("(")
        partition: tuple[Expression, ...] = ()
        if self.accept_soft("PARTITION"):
            self.expect("BY")
            partition = self.comma_separated(self.expression)
        order = self.order_by()
        frame = self.frame() if order and self.kind == IDENTIFIER else None
        self.expect(")")
        self.leave()
        return Window(
            at=at, variable=variable, partition=partition, order=order, frame=frame, from_end=from_end, nulls=nulls
        )

    def group_variable(self) -> GroupVariable:
        """Parse a variable, with an optional list of the variables that become fields: `g (a AS x, b)`."""
        at = self.at
        name = self.identifier()
        if not self.accept("("):
            return GroupVariable(at, name, None)
        fields = self.comma_separated(self.named_field)
        self.expect(")")
        return GroupVariable(at, name, fields)

    def named_field(self) -> NamedField:
        """Parse `variable AS name`."""
        at = self.at
        variable = self.identifier()
        self.expect("AS")
        return NamedField(at, variable, self.identifier())

    def order_by(self) -> tuple[OrderItem, ...]:
        """Parse an optional `ORDER BY expression [ASC|DESC] [NULLS FIRST|LAST], …`."""
        if not self.accept("ORDER"):
            return ()
        self.expect("BY")
        return self.comma_separated(self.order_item)

    def order_item(self) -> OrderItem:
        """Parse an expression of ORDER BY, its direction, and the position of NULL and MISSING."""
        value = self.expression()
        descending = self.kind == "DESC"
        if self.kind in ("ASC", "DESC"):
            self.advance()
        nulls: Literal["first", "last"] | None = None
        if self.accept_soft("NULLS"):
            nulls = "first" if self.expect_soft("FIRST", "LAST") == "first" else "last"
        return OrderItem(value.at, value, descending, nulls)

    def frame(self) -> Frame:
        """Parse the frame of a window: RANGE, ROWS or GROUPS, its bounds, and EXCLUDE."""
        at = self.at
        mode = _MODES[self.expect_soft("RANGE", "ROWS", "GROUPS")]
        end = None
        if self.accept("BETWEEN"):
            start = self.frame_edge()
            self.expect("AND")
            end = self.frame_edge()
        else:
            start = self.frame_edge()
        return Frame(at=at, mode=mode, start=start, end=end, exclude=self.exclusion())

    def frame_edge(self) -> FrameEdge:
        """Parse a bound of a frame: `UNBOUNDED PRECEDING`, `CURRENT ROW`, `2 FOLLOWING`."""
        at = self.at
        if self.accept_soft("CURRENT"):
            self.expect_soft("ROW")
            return FrameEdge(at, "current row", None)
        value = None if self.accept_soft("UNBOUNDED") else self.expression()
        return FrameEdge(at, _SIDES[self.expect_soft("PRECEDING", "FOLLOWING")], value)

    def exclusion(self) -> Literal["current row", "group", "ties", "no others"] | None:
        """Parse an optional `EXCLUDE CURRENT ROW|GROUP|TIES|NO OTHERS`. Raises SqlppError for other words."""
        if self.kind != IDENTIFIER:
            return None
        self.expect_soft("EXCLUDE")
        if self.accept("GROUP"):
            return "group"
        word = self.token.soft
        if word not in ("TIES", "CURRENT", "NO"):
            raise unexpected_word(self.token.image, self.at) if self.kind == IDENTIFIER else self.error()
        self.advance()
        if word == "TIES":
            return "ties"
        self.expect_soft("ROW" if word == "CURRENT" else "OTHERS")
        return "current row" if word == "CURRENT" else "no others"
