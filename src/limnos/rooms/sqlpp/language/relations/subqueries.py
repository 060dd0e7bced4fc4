# SPDX-License-Identifier: Apache-2.0
"""Translates subqueries to joins.

EXISTS, IN and quantifiers become semi-joins and anti-joins; a scalar subquery becomes a left join with an aggregation.
Must not know an engine. Conditions of the inner block on the outer block's rows become the join condition. For a scalar
subquery they must be equalities, by which the inner rows are grouped. An uncorrelated query is joined unchanged.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from msgspec import structs

from limnos.rooms.sqlpp.language import plan
from limnos.rooms.sqlpp.language.relations import blocks, operators
from limnos.rooms.sqlpp.language.relations.blocks import add_groups, add_select, query_of, rows_of
from limnos.rooms.sqlpp.language.relations.expressions import (
    HANDLERS,
    bind_slot,
    call_of,
    condition,
    fold_constant,
    shape,
)
from limnos.rooms.sqlpp.language.relations.measures import measure_over
from limnos.rooms.sqlpp.language.relations.nodes import Measure, RowGrouping, RowLimit, outputs
from limnos.rooms.sqlpp.language.relations.shapes import (
    CellShape,
    RecordShape,
    Shape,
    UntranslatableExpression,
    absent_where,
    is_null,
    map_terms,
    terms_in,
    unknown_of,
)
from limnos.rooms.sqlpp.language.relations.terms import (
    FALSE,
    TRUE,
    CallTerm,
    ColumnTerm,
    LiteralTerm,
    Term,
    all_of,
    any_of,
    call,
    columns_in,
    term_of,
)
from limnos.rooms.sqlpp.language.relations.translator import BlockTranslator

_OVER_ARRAYS = {
    f"{form}_{name}": name
    for form in ("array", "coll", "strict")
    for name in ("count", "sum", "avg", "min", "max", "stddev_samp", "stddev_pop", "var_samp", "var_pop")
}


def query_in(node: plan.Expression, carrier: BlockTranslator) -> plan.Query | None:
    """Return the query that an expression denotes, directly or through variables; None if it is not a query."""
    while True:
        if isinstance(node, plan.Subquery):
            return node.query
        if isinstance(node, plan.LetIn):
            for slot, value in node.lets:
                bind_slot(slot, value, carrier=carrier)
            node = node.body
        elif isinstance(node, plan.Local) and node.slot in carrier.known.later:
            node = carrier.known.later[node.slot]
        else:
            return None


# Subqueries in conditions.


def take_condition(node: plan.Expression, carrier: BlockTranslator) -> bool:
    """Translate a condition with a subquery to a join of the rows. Returns False if it has no subquery of a supported
    form. Raises UntranslatableExpression.
    """
    negated = False
    while isinstance(node, plan.Negated):
        node, negated = node.operand, not negated
    if isinstance(node, plan.Exists):
        query = query_in(node.operand, carrier)
        if query is None:
            return False
        _join_partners(query, carrier, negated=negated, join_condition=lambda _shape, _inner: TRUE)
        return True
    if isinstance(node, plan.Operate) and node.operators in (("in",), ("not in",)):
        return _take_membership(node, carrier, negated=negated)
    if isinstance(node, plan.Quantified) and len(node.bindings) == 1:
        return _take_quantifier(node, carrier, negated=negated)
    return False


def _take_membership(node: plan.Operate, carrier: BlockTranslator, *, negated: bool) -> bool:
    query = query_in(node.operands[1], carrier)
    if query is None:
        return False
    value = operators.cell(shape(node.operands[0], carrier))
    if (node.operators[0] == "in") is not negated:
        _join_partners(
            query,
            carrier,
            negated=False,
            join_condition=lambda item, _: operators.compare_shapes(item, value, by="=").term,
        )
        return True
    # NOT IN is true if there are no items, or if the value and every item are known and different.
    _join_partners(query, carrier, negated=True, join_condition=lambda item, _: _may_be_equal(item, value))
    return True


def _may_be_equal(item: Shape, value: CellShape) -> Term:
    """Return the condition for whether an item equals a value, or may equal it because one of them is NULL or
    MISSING.
    """
    equal = operators.compare_shapes(item, value, by="=")
    if equal.type == "null":
        return TRUE
    unknown = any_of(unknown_of(item), unknown_of(value))
    if unknown is False:
        return equal.term
    if isinstance(equal.term, CallTerm) and equal.term.name == "=":
        return call("or", equal.term, call("is_null", equal.term))  # Spark executes this form as a hash join
    return call("or", equal.term, term_of(unknown))


def _take_quantifier(node: plan.Quantified, carrier: BlockTranslator, *, negated: bool) -> bool:
    ((slot, source),) = node.bindings
    query = query_in(source, carrier)
    if query is None or node.kind == "some and every":
        return False

    def join_condition(item: Shape, inner: BlockTranslator) -> Term:
        inner.known.shapes[slot] = item
        term = condition(node.condition, inner)
        return term if node.kind == "some" else call("not", call("coalesce", term, FALSE))

    _join_partners(query, carrier, negated=(node.kind == "every") is not negated, join_condition=join_condition)
    return True


def _join_partners(
    query: plan.Query,
    carrier: BlockTranslator,
    *,
    negated: bool,
    join_condition: Callable[[Shape, BlockTranslator], Term],
) -> None:
    """Semi-join the rows with the results of a query; anti-join if `negated`. `join_condition` returns the condition
    for a result.

    Raises UntranslatableExpression.
    """
    inner = carrier.inner()
    item = _results(query, inner)
    term = join_condition(item, inner)
    conditions = [*inner.outer_conditions, *([] if term == TRUE else [term])]
    on = term_of(all_of(*conditions))
    if not columns_in(on) <= outputs(inner.relation) | outputs(carrier.relation):
        raise UntranslatableExpression("a subquery about a query around its outer one")
    carrier.join("anti" if negated else "semi", inner.relation, on=on)


def _results(query: plan.Query, inner: BlockTranslator) -> Shape:
    """Translate a subquery and return the shape of its results.

    Conditions on an outer block are collected in `inner.outer_conditions` if the query has no groups or limits. Raises
    UntranslatableExpression.
    """
    block = query.arms[0]
    is_plain = len(query.arms) == 1 and isinstance(block, plan.Block) and query.limit is None and query.offset is None
    if not is_plain or not isinstance(block, plan.Block) or block.group is not None or block.windows:
        rows = query_of(query, inner)
        inner.rows = rows.relation
        return rows.shape
    for let in query.lets:
        bind_slot(let.slot, let.value, carrier=inner)
    rows_of(block, inner)
    try:
        return blocks.projection_shape(block.select, inner)
    except UntranslatableExpression:
        return RecordShape(fields=())  # EXISTS needs no shape, and other callers reject an empty one


# Scalar subqueries.


class _CorrelationKeys(NamedTuple):
    """The equalities of a correlated subquery: inner terms, by which the inner rows are grouped, and equal outer
    terms.
    """

    inner: tuple[tuple[int, Term], ...]
    outer: tuple[Term, ...]

    @property
    def on(self) -> Term:
        """The join condition: inner and outer terms are pairwise equal."""
        pairs = zip(self.outer, self.inner, strict=True)
        return term_of(all_of(*(call("=", outer, ColumnTerm(number)) for outer, (number, _) in pairs)))


def _keys(inner: BlockTranslator) -> _CorrelationKeys:
    """Return the correlation of an inner block. Raises UntranslatableExpression unless all its conditions are
    equalities.
    """
    inner_columns = outputs(inner.relation)
    results: list[tuple[Term, Term]] = []
    for term in inner.outer_conditions:
        parts = term.arguments if isinstance(term, CallTerm) and term.name == "and" else (term,)
        results.extend(_sides(one, inner_columns) for one in parts)
    inner.outer_conditions = []
    return _CorrelationKeys(tuple((inner.new(), own) for own, _ in results), tuple(outer for _, outer in results))


def _sides(term: Term, existing: frozenset[int]) -> tuple[Term, Term]:
    if isinstance(term, CallTerm) and term.name == "=":
        left, right = term.arguments
        for own, other in ((left, right), (right, left)):
            if columns_in(own) <= existing and columns_in(own) and not columns_in(other) & existing:
                return own, other
    raise UntranslatableExpression("a subquery with other conditions than equalities to its outer query")


def first_of(query: plan.Query, carrier: BlockTranslator) -> Shape:
    """Translate the first result of a query, left-joined to each row; MISSING if the query has no result.

    Raises UntranslatableExpression.
    """
    block = query.arms[0]
    if len(query.arms) == 1 and isinstance(block, plan.Block) and _is_one_group(block, query):
        return _one_group(query, block, carrier=carrier)
    inner = carrier.inner()
    item = _results(query, inner)
    if not inner.outer_conditions:
        inner.rows = RowLimit(inner.relation, 1, 0)
        return _joined_item(item, TRUE, carrier=carrier, inner=inner)
    if query.order:
        raise UntranslatableExpression("the first rows of an order, for each row of an outer query")
    keys = _keys(inner)
    entries = {term: inner.new() for term in terms_in(item)}
    measures = tuple(Measure(number, "first", term) for term, number in entries.items())
    inner.rows = RowGrouping(inner.relation, keys.inner, measures)
    item = map_terms(item, lambda term: ColumnTerm(entries[term]))
    return _joined_item(item, keys.on, carrier=carrier, inner=inner)


def _joined_item(item: Shape, on: Term, *, carrier: BlockTranslator, inner: BlockTranslator) -> Shape:
    """Left-join a subquery's result to each outer row, and return its shape; MISSING for rows without a match."""
    flag = inner.new()
    materialized = inner.materialize_shape(item)
    inner.extend((flag, TRUE))
    carrier.relation  # noqa: B018 - raises if there are no rows
    carrier.join("left", inner.relation, on=on)
    return absent_where(materialized, is_null(ColumnTerm(flag)))


def _is_one_group(block: plan.Block, query: plan.Query) -> bool:
    group = block.group
    return (
        group is not None
        and not group.keys
        and group.sets == ((),)
        and group.slot is None
        and query.limit is None
        and query.offset is None
        and not block.windows
        and not block.select.distinct
    )


def _one_group(query: plan.Query, block: plan.Block, *, carrier: BlockTranslator) -> Shape:
    """Translate a subquery that aggregates all rows without GROUP BY. It has one result, even for no rows.

    Raises UntranslatableExpression.
    """
    if block.having is not None:
        raise UntranslatableExpression("HAVING in a subquery without GROUP BY")
    inner = carrier.inner()
    for let in query.lets:
        bind_slot(let.slot, let.value, carrier=inner)
    rows_of(block, inner)
    keys = _keys(inner)
    add_groups(block, (), carrier=inner, more=keys.inner)
    measures = inner.relation
    if not isinstance(measures, RowGrouping):
        raise UntranslatableExpression("LET after an aggregate with a subquery")
    _joined_group(measures, keys, carrier=carrier)
    counts = {one.id for one in measures.measures if one.function == "count"}
    carrier.aggregates = {
        **carrier.aggregates,
        **{at: _zero_counts(one, counts) for at, one in inner.aggregates.items()},
    }
    return add_select(structs.replace(block, group=None), (), carrier=carrier)


def _joined_group(grouping: RowGrouping, keys: _CorrelationKeys, *, carrier: BlockTranslator) -> None:
    carrier.relation  # noqa: B018 - raises if there are no rows
    carrier.join("left" if keys.inner else "cross", grouping, on=keys.on if keys.inner else None)


def _zero_counts(one: Shape, counts: set[int]) -> Shape:
    """Replace NULL by 0 in the columns of counts, because a left join gives NULL if there are no inner rows."""
    if isinstance(one, CellShape) and isinstance(one.term, ColumnTerm) and one.term.id in counts:
        return structs.replace(one, term=call("coalesce", one.term, LiteralTerm(0, "bigint")))
    return one


def over_query(function: str, query: plan.Query, *, carrier: BlockTranslator) -> Shape:
    """Translate an aggregate function over the results of a query, such as `array_sum((SELECT …))`.

    Raises UntranslatableExpression.
    """
    inner = carrier.inner()
    item = _results(query, inner)
    if function.startswith("strict_") and function != "strict_count" and unknown_of(item) is not False:
        raise UntranslatableExpression(f"{function} of a value that may be unknown")
    name = _OVER_ARRAYS[function]
    if function == "strict_count":
        item = CellShape(TRUE, "boolean", known=True)
    measure, result = measure_over(name, item, distinct=False, condition=None, carrier=inner)
    keys = _keys(inner)
    grouping = RowGrouping(inner.relation, keys.inner, (measure,))
    _joined_group(grouping, keys, carrier=carrier)
    return _zero_counts(result(measure.id), {measure.id} if measure.function == "count" else set())


def _element(node: plan.ElementOf, carrier: BlockTranslator) -> Shape:
    """Translate `(query)[0]` to the first result of the query. Raises UntranslatableExpression for other operands."""
    query = query_in(node.base, carrier)
    index = node.index if isinstance(node.index, plan.Constant) else fold_constant(node.index)
    if query is None or index is None or index.value != 0 or isinstance(index.value, bool):
        raise UntranslatableExpression("an item of an array")
    return first_of(query, carrier)


def _exists(node: plan.Exists, carrier: BlockTranslator) -> Shape:
    """Translate EXISTS within an expression: whether the count of results is greater than 0.

    Raises UntranslatableExpression.
    """
    query = query_in(node.operand, carrier)
    if query is None:
        raise UntranslatableExpression("EXISTS of an expression that is not a query")
    count = over_query("strict_count", query, carrier=carrier)
    return CellShape(call("<", LiteralTerm(0, "bigint"), operators.cell(count).term), "boolean", known=True)


def _with_queries(plain: Callable[..., Shape]) -> Callable[..., Shape]:
    """Return a call handler that translates array functions over subqueries to aggregates, and other calls with
    `plain`.
    """

    def handle(node: plan.FunctionCall, carrier: BlockTranslator) -> Shape:
        if node.function.name in _OVER_ARRAYS and len(node.arguments) == 1:
            query = query_in(node.arguments[0], carrier)
            if query is not None:
                return over_query(node.function.name, query, carrier=carrier)
        return plain(node, carrier)

    return handle


def install_handlers() -> None:
    """Register the handlers of subqueries for expressions and conditions."""
    HANDLERS[plan.ElementOf] = _element
    HANDLERS[plan.Exists] = _exists
    HANDLERS[plan.FunctionCall] = _with_queries(call_of)
    blocks.CONDITIONS = take_condition
