# SPDX-License-Identifier: Apache-2.0
"""Translates queries to relational algebra over typed columns, for a columnar engine with the evaluator's semantics.

Must not know engines. The translation is pure. `terms` and `nodes` define its operations, and each engine must
implement the same semantics.
"""

from __future__ import annotations

from typing import NamedTuple

from msgspec import structs

from limnos.rooms.sqlpp.language import plan
from limnos.rooms.sqlpp.language.relations import subqueries
from limnos.rooms.sqlpp.language.relations.blocks import query_of
from limnos.rooms.sqlpp.language.relations.nodes import Relation, is_closed, outputs
from limnos.rooms.sqlpp.language.relations.results import ResultLayout, layout_of
from limnos.rooms.sqlpp.language.relations.shapes import RecordShape, Shape, UntranslatableExpression
from limnos.rooms.sqlpp.language.relations.terms import columns_in
from limnos.rooms.sqlpp.language.relations.translator import BlockTranslator, DatasetTypes, TranslationState

__all__ = ["RelationalQuery", "UntranslatableExpression", "translate_query"]

subqueries.install_handlers()


class RelationalQuery(NamedTuple):
    """A translated query: its relation, and the layout of its results."""

    relation: Relation
    layout: ResultLayout


def translate_query(query: plan.Query, types: DatasetTypes, *, fields: frozenset[str] | None = None) -> RelationalQuery:
    """Translate a query without outer variables. Raises UntranslatableExpression with the reason.

    `fields` are the only fields of a dataset's objects that the caller uses; None for all.
    """
    try:
        carrier = BlockTranslator(TranslationState(types))
        carrier.evaluator_conditions = []
        rows = query_of(query, carrier)
        shape = rows.shape if fields is None else _reduce_shape(rows.shape, fields)
        layout = layout_of(shape, rows.evaluator_conditions, limit=rows.limit, offset=rows.offset)
        terms = columns_in(*(term for term, _ in layout.columns))
        if not is_closed(rows.relation) or not terms <= outputs(rows.relation):
            raise UntranslatableExpression(
                "a subquery about rows of an outer query, in a place where it cannot be joined"
            )
    except RecursionError:
        raise UntranslatableExpression("an expression nested too deep") from None
    return RelationalQuery(rows.relation, layout)


def _reduce_shape(shape: Shape, fields: frozenset[str]) -> Shape:
    """Return a shape with only the used fields; unchanged if one of them is not a column."""
    if not isinstance(shape, RecordShape) or shape.declared is None or not fields <= {name for name, _ in shape.fields}:
        return shape
    entry = tuple((name, field) for name, field in shape.fields if name in fields)
    return structs.replace(shape, fields=entry, declared=None, open=None)
