# SPDX-License-Identifier: Apache-2.0
"""Translates blocks of a query: sources and joins, WHERE, groups, windows, order, SELECT.

Must not know an engine. Untranslatable expressions raise UntranslatableExpression with the reason.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from limnos.rooms.sqlpp.language import plan
from limnos.rooms.sqlpp.language.engine_semantics import aggregates_in
from limnos.rooms.sqlpp.language.evaluator.joins import conjuncts
from limnos.rooms.sqlpp.language.relations import nodes, operators
from limnos.rooms.sqlpp.language.relations.datasets import dataset_of, shape_of
from limnos.rooms.sqlpp.language.relations.expressions import bind_slot, condition, finished_shape, fold_constant, shape
from limnos.rooms.sqlpp.language.relations.measures import measure_aggregate
from limnos.rooms.sqlpp.language.relations.nodes import JoinKind
from limnos.rooms.sqlpp.language.relations.orders import order_terms_of
from limnos.rooms.sqlpp.language.relations.shapes import (
    CellShape,
    ItemsShape,
    RecordShape,
    Shape,
    UntranslatableExpression,
    absent_where,
    is_null,
    map_terms,
    missing_of,
    similar,
    terms_in,
)
from limnos.rooms.sqlpp.language.relations.terms import (
    TRUE,
    CallTerm,
    ColumnTerm,
    LiteralTerm,
    Term,
    call,
    columns_in,
    term_of,
)
from limnos.rooms.sqlpp.language.relations.translator import BlockTranslator, column
from limnos.rooms.sqlpp.language.relations.windows import add_windows
from limnos.rooms.sqlpp.language.stored import RecordType

_JOINS: dict[str, JoinKind] = {"inner": "inner", "cross": "cross", "left": "left", "right": "right", "scan": "cross"}
_COUNT_MAX = 1 << 31


class QueryRows(NamedTuple):
    """The translated rows of a query and the shape of its results.

    The evaluator must still apply `evaluator_conditions` to each row; if there are any, it also applies `limit` and
    `offset`.
    """

    relation: nodes.Relation
    shape: Shape
    evaluator_conditions: tuple[Shape, ...] = ()
    limit: int | None = None
    offset: int = 0


def query_of(query: plan.Query, carrier: BlockTranslator) -> QueryRows:
    """Translate a complete query. Raises UntranslatableExpression.

    If `carrier.evaluator_conditions` is a list, untranslatable conditions are left to the evaluator.
    """
    for let in query.lets:
        bind_slot(let.slot, let.value, carrier=carrier)
    if len(query.arms) > 1 or query.output is not None:
        carrier.evaluator_conditions = None
    if len(query.arms) == 1:
        rows = _arm(query.arms[0], query.order if query.output is None else (), carrier=carrier)
    else:
        rows = _union([_arm(arm, (), carrier=carrier.inner()) for arm in query.arms], carrier)
    if query.output is not None and query.order:
        rows = _order_rows(rows, query.order, slot=query.output, carrier=carrier)
    limit, offset = _count(query.limit), _count(query.offset) or 0
    if rows.evaluator_conditions:
        return rows._replace(limit=limit, offset=offset)
    if limit is None and not offset:
        return rows
    return QueryRows(relation=nodes.RowLimit(rows.relation, limit, offset), shape=rows.shape)


def _arm(arm: plan.Block | plan.Query, order: tuple[plan.Order, ...], *, carrier: BlockTranslator) -> QueryRows:
    inner = carrier.inner()
    if isinstance(arm, plan.Query):
        return query_of(arm, inner)
    is_plain = arm.group is None and not arm.windows and not arm.select.distinct
    inner.evaluator_conditions = [] if carrier.evaluator_conditions is not None and is_plain else None
    block = block_of(arm, order, carrier=inner)
    if inner.outer_conditions:
        raise UntranslatableExpression("a condition about an outer query")
    return QueryRows(relation=inner.relation, shape=block, evaluator_conditions=tuple(inner.evaluator_conditions or ()))


def _count(node: plan.Expression | None) -> int | None:
    """Return the constant of LIMIT or OFFSET; None without the clause. Raises UntranslatableExpression for others."""
    if node is None:
        return None
    constant = fold_constant(node) if not isinstance(node, plan.Constant) else node
    if constant is None or type(constant.value) is not int or not 0 <= constant.value < _COUNT_MAX:
        raise UntranslatableExpression("LIMIT or OFFSET that is not a small integer constant")
    return constant.value


def _order_rows(rows: QueryRows, order: tuple[plan.Order, ...], *, slot: int, carrier: BlockTranslator) -> QueryRows:
    """Sort the results of UNION ALL by the query's ORDER BY."""
    inner = carrier.inner()
    inner.rows = rows.relation
    inner.known.shapes[slot] = rows.shape
    order_terms = order_terms_of(order, inner)
    return QueryRows(relation=nodes.Sort(inner.relation, order_terms), shape=rows.shape)


def _union(arms: list[QueryRows], carrier: BlockTranslator) -> QueryRows:
    first = arms[0]
    if not all(similar(first.shape, arm.shape) for arm in arms):
        raise UntranslatableExpression("UNION ALL of different types")
    results: list[tuple[nodes.Relation, tuple[int, ...]]] = []
    shapes = []
    for arm in arms:
        inner = carrier.inner()
        inner.rows = arm.relation
        flagged = _flag_shape(arm.shape)
        entries = {term: carrier.new() for term in terms_in(flagged)}
        inner.extend(*((number, term) for term, number in entries.items()))
        results.append((inner.relation, tuple(entries[term] for term in terms_in(flagged))))
        shapes.append(flagged)
    columns = tuple(carrier.new() for _ in results[0][1])
    numbers = iter(columns)
    return QueryRows(
        relation=nodes.Union(tuple(results), columns), shape=map_terms(shapes[0], lambda _: ColumnTerm(next(numbers)))
    )


def _flag_shape(one: Shape) -> Shape:
    """Return a shape in which all flags are terms instead of constants, so that the arms of UNION ALL have the same
    columns. Raises UntranslatableExpression.
    """
    if isinstance(one, CellShape):
        return CellShape(one.term, one.type, term_of(missing_of(one)), known=False)
    if isinstance(one, RecordShape) and one.declared is None:
        fields = tuple((name, _flag_shape(field)) for name, field in one.fields)
        return RecordShape(fields=fields, is_present=term_of(one.is_present), missing=term_of(one.missing))
    raise UntranslatableExpression("UNION ALL of whole objects or arrays")


# Blocks.


def block_of(block: plan.Block, order: tuple[plan.Order, ...], *, carrier: BlockTranslator) -> Shape:
    """Translate one block into `carrier`. Conditions on an outer block are collected in `carrier.outer_conditions`."""
    rows_of(block, carrier)
    if block.group is not None:
        add_groups(block, order, carrier=carrier)
    return add_select(block, order, carrier=carrier)


def rows_of(block: plan.Block, carrier: BlockTranslator) -> None:
    """Translate FROM, LET and WHERE of a block into `carrier`. Raises UntranslatableExpression."""
    if not block.sources:
        raise UntranslatableExpression("a query without FROM")
    for source in block.sources:
        _add_source(source, carrier)
    add_steps(block.lets, carrier)
    add_filter(block.where, carrier)


def add_steps(steps: tuple[plan.Let | plan.WindowCall, ...], carrier: BlockTranslator) -> None:
    """Translate LET: its values, with the window functions that they use before them."""
    for step in steps:
        if isinstance(step, plan.WindowCall):
            add_windows((step,), carrier)
        else:
            bind_slot(step.slot, step.value, carrier=carrier)


def add_filter(where: plan.Expression | None, carrier: BlockTranslator) -> None:
    """Translate WHERE or HAVING: simple conditions first, so that subqueries are joined to fewer rows."""
    later = []
    for node in conjuncts(where):
        if _has_query(node):
            later.append(node)
        else:
            _add_condition(node, carrier)
    for node in later:
        if not CONDITIONS(node, carrier):
            carrier.filter(condition(node, carrier))


def _add_condition(node: plan.Expression, carrier: BlockTranslator) -> None:
    """Add a filter to the rows, or leave the condition to the evaluator if allowed. Raises UntranslatableExpression."""
    try:
        carrier.filter(condition(node, carrier))
    except UntranslatableExpression:
        if carrier.evaluator_conditions is None:
            raise
        carrier.evaluator_conditions.append(finished_shape(node, carrier))


def _has_query(node: plan.Expression) -> bool:
    waiting: list[object] = [node]
    while waiting:
        one = waiting.pop()
        if isinstance(one, (plan.Subquery, plan.Exists)):
            return True
        if isinstance(one, plan.PlanNode):
            waiting.extend(getattr(one, name) for name in one.__struct_fields__[1:])
        elif type(one) is tuple:
            waiting.extend(one)
    return False


def _no_conditions(_node: plan.Expression, _carrier: BlockTranslator) -> bool:
    return False


CONDITIONS: Callable[[plan.Expression, BlockTranslator], bool] = _no_conditions
"""Translates a condition with a subquery to a join, if possible; set by the module for subqueries."""


def _add_source(source: plan.ForEach, carrier: BlockTranslator) -> None:
    """Translate a source of FROM to a join, or to UNNEST if it is correlated. Raises UntranslatableExpression."""
    inner = carrier.inner()
    result = source_of(source.source, inner)
    if result is None:
        _add_unnest(source, carrier)
        return
    if source.position is not None:
        raise UntranslatableExpression("AT of a dataset")
    if source.kind == "outer unnest":
        raise UntranslatableExpression("OUTER UNNEST of a query")
    if carrier.rows is None:
        carrier.rows, carrier.known.shapes[source.slot] = inner.relation, result
        return
    if source.kind in ("left", "right"):
        _outer(source, result, inner=inner, carrier=carrier)
        return
    carrier.known.shapes[source.slot] = result
    term = _on(source, carrier, right=inner.relation)
    carrier.join("inner" if term is not None else "cross", inner.relation, on=term)


def _on(source: plan.ForEach, carrier: BlockTranslator, *, right: nodes.Relation) -> Term | None:
    """Translate the ON condition of a join. Raises UntranslatableExpression if it refers to an outer query."""
    if source.condition is None:
        return None
    rows, carrier.rows = carrier.rows, None
    try:
        term = condition(source.condition, carrier)
    finally:
        carrier.rows = rows
    if not columns_in(term) <= nodes.outputs(right) | nodes.outputs(carrier.relation):
        raise UntranslatableExpression("ON with a condition about an outer query")
    return term


def _outer(source: plan.ForEach, result: Shape, *, inner: BlockTranslator, carrier: BlockTranslator) -> None:
    """Translate an outer join: values of the side without a match are MISSING. Raises UntranslatableExpression."""
    optional = inner if source.kind == "left" else carrier
    flag = carrier.new()
    slots = (source.slot,) if source.kind == "left" else source.others
    if source.kind == "right" and set(slots) != {
        slot for slot, one in carrier.known.shapes.items() if _is_of(one, carrier.relation)
    }:
        raise UntranslatableExpression("RIGHT JOIN after other terms")
    shapes = {slot: result if source.kind == "left" else carrier.known.shapes[slot] for slot in slots}
    materialized = {slot: optional.materialize_shape(one) for slot, one in shapes.items()}
    optional.extend((flag, TRUE))
    carrier.known.shapes.update(materialized)
    if source.kind == "right":
        carrier.known.shapes[source.slot] = result
    term = _on(source, carrier, right=inner.relation)
    carrier.join(_JOINS[source.kind], inner.relation, on=TRUE if term is None else term)
    absent = is_null(ColumnTerm(flag))
    carrier.known.shapes.update({slot: absent_where(one, absent) for slot, one in materialized.items()})


def _is_of(one: Shape, relation: nodes.Relation) -> bool:
    """Return whether a shape uses columns of a relation."""
    return bool(columns_in(*terms_in(one)) & nodes.outputs(relation))


def source_of(node: plan.Expression, inner: BlockTranslator) -> Shape | None:
    """Translate a dataset or a query in FROM into `inner`, and return the shape of its items; None for other
    expressions. Raises UntranslatableExpression.
    """
    if isinstance(node, plan.Local) and node.slot in inner.known.later:
        node = inner.known.later[node.slot]
    if isinstance(node, plan.LetIn):
        for slot, value in node.lets:
            bind_slot(slot, value, carrier=inner)
        return source_of(node.body, inner)
    if isinstance(node, plan.Scan):
        record = inner.known.types(node.dataverse, node.name)
        if record is None:
            raise UntranslatableExpression(f"the dataset {node.name}")
        inner.rows, record_shape = dataset_of(node.dataverse, node.name, record=record, ids=inner.known.ids)
        return record_shape
    if isinstance(node, plan.Subquery):
        rows = query_of(node.query, inner)
        inner.rows = rows.relation
        return rows.shape
    return None


def _add_unnest(source: plan.ForEach, carrier: BlockTranslator) -> None:
    """Translate a source that is an array column to UNNEST. Raises UntranslatableExpression."""
    if source.kind not in ("unnest", "outer unnest", "scan") or source.condition is not None:
        raise UntranslatableExpression("a join with the items of an array")
    if carrier.rows is None:
        raise UntranslatableExpression("FROM an array")
    items = shape(source.source, carrier)
    if not isinstance(items, ItemsShape):
        raise UntranslatableExpression("UNNEST of an expression that is not an array column")
    if not columns_in(items.term) <= nodes.outputs(carrier.relation):
        raise UntranslatableExpression("UNNEST of an outer query's array")
    item, place, outer = carrier.new(), carrier.new(), source.kind == "outer unnest"
    carrier.rows = nodes.Unnest(source=carrier.relation, array=items.term, item=item, place=place, outer=outer)
    result = shape_of(ColumnTerm(item), items.item, record=RecordType((), open=False), missing=False, known=False)
    counted = call("+", ColumnTerm(place), LiteralTerm(source.first, "bigint")) if source.first else ColumnTerm(place)
    position: Shape = CellShape(counted, "bigint", known=True)
    if outer:
        absent = is_null(ColumnTerm(place))
        result, position = absent_where(result, absent), absent_where(position, absent)
    carrier.known.shapes[source.slot] = result
    if source.position is not None:
        carrier.known.shapes[source.position] = position


# Groups.


def add_groups(
    block: plan.Block,
    order: tuple[plan.Order, ...],
    *,
    carrier: BlockTranslator,
    more: tuple[tuple[int, Term], ...] = (),
) -> None:
    """Translate GROUP BY, LET and HAVING. `more` are keys of a correlated subquery. Raises UntranslatableExpression."""
    group = block.group
    if group is None or group.slot is not None or group.sets != (tuple(range(len(group.keys))),):
        raise UntranslatableExpression("GROUP AS or several grouping sets")
    keys: list[tuple[int, Term]] = list(more)
    shapes: dict[int, Shape] = {}
    for slot, value in group.keys:
        one = operators.cell(shape(value, carrier))
        number = carrier.new()
        keys.append((number, operators.typed_term(one, "boolean") if one.type == "null" else one.term))
        flag = missing_of(one)
        if isinstance(flag, bool) or isinstance(one.missing, bool):
            shapes[slot] = column(number, one, missing=one.missing is True)
        else:  # groups of MISSING and of NULL are different
            new = carrier.new()
            keys.append((new, flag))
            shapes[slot] = column(number, one, missing=ColumnTerm(new))
    measures, aggregates = _measures(block, order, carrier=carrier)
    carrier.rows = nodes.RowGrouping(carrier.relation, tuple(keys), tuple(measures))
    carrier.aggregates = aggregates
    carrier.known.shapes.update(shapes)
    add_steps(block.group_lets, carrier)
    add_filter(block.having, carrier)


def _measures(
    block: plan.Block, order: tuple[plan.Order, ...], *, carrier: BlockTranslator
) -> tuple[list[nodes.Measure], dict[int, Shape]]:
    """Translate the aggregates of a block to measures. Also returns the shape of each, by the id of its node."""
    measures: dict[tuple[str, Term | None, bool], nodes.Measure] = {}
    shapes: dict[int, Shape] = {}
    for node in aggregates_in((block.group_lets, block.having, block.select, block.windows, order)):
        measure, result = measure_aggregate(node, carrier)
        entry = measures.setdefault((measure.function, measure.term, measure.distinct), measure)
        shapes[id(node)] = result(entry.id)
    return list(measures.values()), shapes


# SELECT.


def add_select(block: plan.Block, order: tuple[plan.Order, ...], *, carrier: BlockTranslator) -> Shape:
    """Translate windows, ORDER BY and SELECT. Returns the shape of the results."""
    if block.windows:
        add_windows(block.windows, carrier)
    if not block.select.distinct:
        flag_only_unknown = projection_shape(block.select, carrier)
        if order:
            carrier.rows = nodes.Sort(carrier.relation, order_terms_of(order, carrier))
        return flag_only_unknown
    flag_only_unknown = _flag_only_unknown(projection_shape(block.select, carrier))
    order_terms = order_terms_of(order, carrier)
    distinct, current = carrier.distinct_shape(flag_only_unknown)
    if order_terms:
        carrier.rows = nodes.Sort(carrier.relation, tuple(_place_of_results(place, current) for place in order_terms))
    return distinct


def _place_of_results(place: nodes.OrderTerm, entries: dict[Term, int]) -> nodes.OrderTerm:
    """Rewrite an ORDER BY term to use the columns of distinct results.

    Raises UntranslatableExpression if the results do not determine its value.
    """

    def put(term: Term) -> Term:
        if term in entries:
            return ColumnTerm(entries[term])
        if isinstance(term, CallTerm):
            return CallTerm(term.name, tuple(map(put, term.arguments)), term.word)
        if isinstance(term, LiteralTerm):
            return term
        raise UntranslatableExpression("ORDER BY values that DISTINCT results do not have")

    return nodes.OrderTerm(put(place.term), place.descending, place.nulls_first)


def _flag_only_unknown(one: Shape) -> Shape:
    """Return a shape whose MISSING flags are false for known values, for DISTINCT. Raises UntranslatableExpression."""
    if isinstance(one, CellShape):
        flag = missing_of(one)
        return CellShape(
            operators.typed_term(one, "boolean"),
            one.type,
            flag if not isinstance(flag, bool) else one.missing,
            one.known,
        )
    if isinstance(one, RecordShape) and one.open is None and one.is_present is True:
        return RecordShape(
            fields=tuple((name, _flag_only_unknown(field)) for name, field in one.fields), declared=one.declared
        )
    raise UntranslatableExpression("DISTINCT of open objects or arrays")


def projection_shape(select: plan.Select, carrier: BlockTranslator) -> Shape:
    """Translate a SELECT clause to the shape of its results. Raises UntranslatableExpression."""
    if select.value is not None:
        return finished_shape(select.value, carrier)
    fields: dict[str, Shape] = {}
    for projection in select.projections:
        value = finished_shape(projection.value, carrier)
        argument = value.fields if isinstance(value, RecordShape) else ()
        if projection.name is None and (
            not isinstance(value, RecordShape) or value.open is not None or value.is_present is not True
        ):
            raise UntranslatableExpression("the fields of a value that may be open, or not an object")
        for name, field in argument if projection.name is None else ((projection.name, value),):
            if name in fields:
                raise UntranslatableExpression(f"two fields {name}")
            fields[name] = field
    for path in select.exclude:
        if len(path) > 1:
            raise UntranslatableExpression("EXCLUDE of a path")
        fields.pop(path[0], None)
    return RecordShape(fields=tuple(fields.items()))
