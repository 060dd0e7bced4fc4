# SPDX-License-Identifier: Apache-2.0
"""Translates ORDER BY over typed columns.

Must not know clauses.
"""

from __future__ import annotations

from limnos.rooms.sqlpp.language import plan
from limnos.rooms.sqlpp.language.relations import operators
from limnos.rooms.sqlpp.language.relations.expressions import shape
from limnos.rooms.sqlpp.language.relations.nodes import OrderTerm
from limnos.rooms.sqlpp.language.relations.shapes import UntranslatableExpression, missing_of, unknown_of
from limnos.rooms.sqlpp.language.relations.terms import LiteralTerm, Term, TruthTerm, call, term_of
from limnos.rooms.sqlpp.language.relations.translator import BlockTranslator


def order_terms_of(order: tuple[plan.Order, ...], carrier: BlockTranslator) -> tuple[OrderTerm, ...]:
    """Translate ORDER BY to order terms: MISSING is less than NULL, and NULL than other values, unless NULLS FIRST or
    LAST is stated.

    Raises UntranslatableExpression for values without an order.
    """
    order_terms: list[OrderTerm] = []
    for item in order:
        one = operators.cell(shape(item.value, carrier))
        if one.type not in operators.ORDERED and one.type != "null":
            raise UntranslatableExpression(f"ORDER BY values of type {one.type}")
        first = not item.descending if item.nulls_first is None else item.nulls_first
        flag = missing_of(one)
        if not isinstance(flag, bool):
            if one.type != "null":
                order_terms.append(OrderTerm(_flag_order_term(unknown_of(one)), descending=not first, nulls_first=True))
            order_terms.append(OrderTerm(_flag_order_term(flag), item.descending, nulls_first=True))
        if one.type != "null":
            order_terms.append(OrderTerm(one.term, item.descending, first))
    return tuple(order_terms)


def _flag_order_term(flag: TruthTerm) -> Term:
    """Return an order term that sorts rows first for which a flag is true."""
    return call("if", term_of(flag), LiteralTerm(0, "integer"), LiteralTerm(1, "integer"))
