# SPDX-License-Identifier: Apache-2.0
"""Translates expressions of plans to shapes: types and flags of their values, and the terms that compute them.

Must not know clauses. The module for subqueries registers its own handlers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from limnos.rooms.sqlpp.language import plan
from limnos.rooms.sqlpp.language.errors import SqlppError
from limnos.rooms.sqlpp.language.evaluator.budget import Budget
from limnos.rooms.sqlpp.language.evaluator.expressions import compile_expression
from limnos.rooms.sqlpp.language.evaluator.queries import working_of
from limnos.rooms.sqlpp.language.relations import functions, operators
from limnos.rooms.sqlpp.language.relations.datasets import shape_of
from limnos.rooms.sqlpp.language.relations.deferred_expressions import defer_to_evaluator
from limnos.rooms.sqlpp.language.relations.shapes import (
    CellShape,
    FixedShape,
    ItemsShape,
    RecordShape,
    Shape,
    UntranslatableExpression,
    missing_of,
    null_of,
    unknown_of,
)
from limnos.rooms.sqlpp.language.relations.terms import (
    FALSE,
    ColumnTerm,
    LambdaTerm,
    LiteralTerm,
    Term,
    any_of,
    call,
    not_of,
    term_of,
)
from limnos.rooms.sqlpp.language.relations.translator import BlockTranslator
from limnos.rooms.sqlpp.language.stored import RecordType, has_open
from limnos.rooms.sqlpp.language.values.model import MISSING, Value, type_name

Handler = Callable[..., Shape]
HANDLERS: Final[dict[type, Handler]] = {}
IN_MAX: Final = 1000
"""The maximum number of values of an IN."""
_CHAIN_MAX = 64
_FOLDED_BUDGET = 10_000
_NEVER_FOLDED = (
    plan.Local,
    plan.Scan,
    plan.Subquery,
    plan.Aggregate,
    plan.Quantified,
    plan.LetIn,
    plan.Exists,
)


def shape(node: plan.Expression, carrier: BlockTranslator) -> Shape:
    """Translate an expression to a shape. Raises UntranslatableExpression."""
    if not isinstance(node, plan.Constant):
        constant = fold_constant(node)
        if constant is not None:
            return shape(constant, carrier)
    handler = HANDLERS.get(type(node))
    if handler is None:
        raise UntranslatableExpression(f"{type(node).__name__}")
    return handler(node, carrier)


def finished_shape(node: plan.Expression, carrier: BlockTranslator) -> Shape:
    """Translate an expression of the result, which no operator uses. An untranslatable one is deferred to the
    evaluator.

    Raises UntranslatableExpression if the evaluator cannot compute it from a row.
    """
    rows, outer_conditions = carrier.rows, list(carrier.outer_conditions)
    try:
        return shape(node, carrier)
    except UntranslatableExpression as reason:
        carrier.rows, carrier.outer_conditions = rows, outer_conditions
        return defer_to_evaluator(node, carrier, reason=reason)


def condition(node: plan.Expression, carrier: BlockTranslator) -> Term:
    """Translate a filter condition to a boolean term. FALSE, NULL and MISSING need not be distinguished.

    Raises UntranslatableExpression.
    """
    return operators.is_true(shape(node, carrier))


def fold_constant(node: plan.Expression) -> plan.Constant | None:
    """Evaluate a constant expression; None if it is not constant or its evaluation fails."""
    waiting: list[object] = [node]
    while waiting:
        one = waiting.pop()
        if isinstance(one, _NEVER_FOLDED) or (isinstance(one, plan.FunctionCall) and not one.function.is_deterministic):
            return None
        if isinstance(one, plan.PlanNode) and not isinstance(one, plan.Constant):
            waiting.extend(getattr(one, name) for name in one.__struct_fields__[1:])
        elif type(one) is tuple:
            waiting.extend(one)
    try:
        return plan.Constant(
            node.at, compile_expression(node, working_of(_no_rows, budget=Budget(steps=_FOLDED_BUDGET), slots=0))([])
        )
    except SqlppError:
        return None


def _no_rows(_dataverse: tuple[str, ...], _name: str) -> tuple[Value, ...]:
    return ()


def _handles(kind: type) -> Callable[[Handler], Handler]:
    def put(handler: Handler) -> Handler:
        HANDLERS[kind] = handler
        return handler

    return put


@_handles(plan.Constant)
def _constant(node: plan.Constant, carrier: BlockTranslator) -> Shape:
    value = node.value
    if value is None or value is MISSING:
        return operators.null(missing=value is MISSING)
    if isinstance(value, dict):
        return RecordShape(
            fields=tuple((name, _constant(plan.Constant(node.at, content), carrier)) for name, content in value.items())
        )
    name = type_name(value)
    if isinstance(value, tuple) and name in ("array", "multiset"):
        return FixedShape(
            tuple(_constant(plan.Constant(node.at, content), carrier) for content in value), name == "multiset"
        )
    return CellShape(LiteralTerm(value, name), name, known=True)  # type: ignore[arg-type]


@_handles(plan.Local)
def _local(node: plan.Local, carrier: BlockTranslator) -> Shape:
    later = carrier.known.later.get(node.slot)
    if later is not None:
        return shape(later, carrier)
    result = carrier.known.shapes.get(node.slot)
    if result is None:
        raise UntranslatableExpression(f"the variable {node.name}")
    return result


@_handles(plan.FieldOf)
def _field(node: plan.FieldOf, carrier: BlockTranslator) -> Shape:
    base = shape(node.base, carrier)
    if not isinstance(base, RecordShape):
        raise UntranslatableExpression(f"the field {node.name} of a value that may not be an object")
    field = base.field(node.name)
    if field is not None:
        return field
    if base.declared is not None and (has_open(base.declared) and _may_be_open(base.declared, node.name)):
        raise UntranslatableExpression(f"the field {node.name}, which is not a column")
    if base.is_present is not True:
        raise UntranslatableExpression(f"the field {node.name} of a value that may not be an object")
    return operators.null(missing=True)


def _may_be_open(declared: RecordType, name: str) -> bool:
    """Return whether objects of a type may have a field of this name that is not stored as a column."""
    return declared.open or declared.field(name) is not None


@_handles(plan.FunctionCall)
def call_of(node: plan.FunctionCall, carrier: BlockTranslator) -> Shape:
    """Translate a function call whose arguments are all translatable. Raises UntranslatableExpression."""
    make = functions.CARRIED.get(node.function.name)
    if make is None:
        raise UntranslatableExpression(f"the function {node.function.name}")
    return make(*(shape(argument, carrier) for argument in node.arguments))


@_handles(plan.Aggregate)
def _aggregate(node: plan.Aggregate, carrier: BlockTranslator) -> Shape:
    aggregate = carrier.aggregates.get(id(node))
    if aggregate is None:
        raise UntranslatableExpression(f"the aggregate {node.function.name}")
    return aggregate


@_handles(plan.Operate)
def _operate(node: plan.Operate, carrier: BlockTranslator) -> Shape:
    first = node.operators[0]
    if first in ("and", "or"):
        shapes = [shape(operand, carrier) for operand in node.operands]
        return operators.both(shapes) if first == "and" else operators.either(shapes)
    if first in ("in", "not in"):
        return _membership(node, carrier)
    result = shape(node.operands[0], carrier)
    for operator, operand in zip(node.operators, node.operands[1:], strict=True):
        result = _apply_operator(result, shape(operand, carrier), by=operator)
    return result


def _apply_operator(left: Shape, right: Shape, *, by: str) -> Shape:
    if by in operators.COMPARISONS:
        return operators.compare_shapes(left, right, by=by)
    work = _OPERATORS.get(by)
    return operators.arithmetic(left, right, by=by) if work is None else work(left, right)


_OPERATORS: Mapping[str, Callable[[Shape, Shape], Shape]] = {
    "||": operators.concatenate_shapes,
    "like": operators.like,
    "not like": lambda left, right: operators.negated(operators.like(left, right)),
    "is distinct from": operators.distinct,
    "is not distinct from": lambda left, right: operators.negated(operators.distinct(left, right)),
}


def _membership(node: plan.Operate, carrier: BlockTranslator) -> Shape:
    """Translate IN and NOT IN of a literal array or an array column. Raises UntranslatableExpression."""
    if len(node.operands) != 2:
        raise UntranslatableExpression("IN in a chain of operators")
    value, items = shape(node.operands[0], carrier), shape(node.operands[1], carrier)
    result = (
        functions.is_within(value, items, item=carrier.new())
        if isinstance(items, ItemsShape)
        else _literal_membership(value, items)
    )
    return operators.negated(result) if node.operators[0] == "not in" else result


def _literal_membership(value: Shape, items: Shape) -> Shape:
    if not isinstance(items, FixedShape) or not items.items or len(items.items) > IN_MAX:
        raise UntranslatableExpression("IN of a value that is not an array, or too long")
    one = operators.cell(value)
    if one.type != "null" and all(_is_plain(item, one) for item in items.items):
        return operators.truth(call("in", one.term, *(item.term for item in items.items)), one)  # type: ignore[union-attr]
    if len(items.items) > _CHAIN_MAX or any(missing_of(item) is not False for item in items.items):
        raise UntranslatableExpression("IN of mixed values")
    return operators.either([operators.compare_shapes(item, one, by="=") for item in items.items])


def _is_plain(item: Shape, one: CellShape) -> bool:
    return isinstance(item, CellShape) and isinstance(item.term, LiteralTerm) and item.known and item.type == one.type


@_handles(plan.Negated)
def _negated(node: plan.Negated, carrier: BlockTranslator) -> Shape:
    return operators.negated(shape(node.operand, carrier))


@_handles(plan.SignOf)
def _sign(node: plan.SignOf, carrier: BlockTranslator) -> Shape:
    operand = shape(node.operand, carrier)
    if node.minus:
        return operators.minus(operand)
    return operators.of_type(operand, "integer", "bigint", "double")


@_handles(plan.Between)
def _between(node: plan.Between, carrier: BlockTranslator) -> Shape:
    value, low, high = (shape(each, carrier) for each in (node.value, node.low, node.high))
    cell_shape = operators.both(
        [operators.compare_shapes(low, value, by="<="), operators.compare_shapes(value, high, by="<=")]
    )
    return operators.negated(cell_shape) if node.negated else cell_shape


@_handles(plan.IsTest)
def _is(node: plan.IsTest, carrier: BlockTranslator) -> Shape:
    value = shape(node.value, carrier)
    if node.test != "null":
        unknown = unknown_of(value)
        flag = missing_of(value) if node.test == "missing" else unknown if node.test == "unknown" else not_of(unknown)
        return CellShape(term_of(not_of(flag) if node.negated else flag), "boolean", known=True)
    null = null_of(value)
    term, missing = term_of(not_of(null) if node.negated else null), missing_of(value)
    if missing is False:
        return CellShape(term, "boolean", known=True)
    return CellShape(call("if", term_of(missing), LiteralTerm(None, "boolean"), term), "boolean", missing=True)


@_handles(plan.CaseOf)
def _case(node: plan.CaseOf, carrier: BlockTranslator) -> Shape:
    subject = None if node.subject is None else shape(node.subject, carrier)
    cell_shape = operators.null() if node.otherwise is None else operators.cell(shape(node.otherwise, carrier))
    for when, then in reversed(node.branches):
        result = shape(when, carrier)
        term = operators.is_true(result if subject is None else operators.compare_shapes(subject, result, by="="))
        cell_shape = operators.choose_cell(
            call("coalesce", term, FALSE), then=operators.cell(shape(then, carrier)), otherwise=cell_shape
        )
    return cell_shape


@_handles(plan.ArrayOf)
def _array(node: plan.ArrayOf, carrier: BlockTranslator) -> Shape:
    return FixedShape(tuple(finished_shape(item, carrier) for item in node.items))


@_handles(plan.BagOf)
def _bag(node: plan.BagOf, carrier: BlockTranslator) -> Shape:
    return FixedShape(tuple(finished_shape(item, carrier) for item in node.items), bag=True)


@_handles(plan.ObjectOf)
def _object(node: plan.ObjectOf, carrier: BlockTranslator) -> Shape:
    fields: dict[str, Shape] = {}
    for name, value in node.pairs:
        called = fold_constant(name)
        if called is None or not isinstance(called.value, str) or called.value in fields:
            raise UntranslatableExpression("an object whose field names are not constant, or repeated")
        fields[called.value] = finished_shape(value, carrier)
    return RecordShape(fields=tuple(fields.items()))


@_handles(plan.LetIn)
def _let(node: plan.LetIn, carrier: BlockTranslator) -> Shape:
    for slot, value in node.lets:
        bind_slot(slot, value, carrier=carrier)
    return shape(node.body, carrier)


def bind_slot(slot: int, value: plan.Expression, *, carrier: BlockTranslator) -> None:
    """Record the value of a LET variable: as a shape, or as a subquery that is inlined at each use."""
    if any(isinstance(one, plan.Subquery) for one in _outermost(value)):
        carrier.known.later[slot] = value
    else:
        carrier.known.shapes[slot] = finished_shape(value, carrier)


def _outermost(node: plan.Expression) -> tuple[plan.Expression, ...]:
    """Return a path expression and the expressions of its prefixes."""
    expressions = [node]
    while isinstance(expressions[-1], (plan.FieldOf, plan.ElementOf)):
        expressions.append(expressions[-1].base)
    return tuple(expressions)


@_handles(plan.Quantified)
def _quantified(node: plan.Quantified, carrier: BlockTranslator) -> Shape:
    """Translate SOME and EVERY over an array column. Raises UntranslatableExpression."""
    if len(node.bindings) != 1:
        raise UntranslatableExpression("a quantifier over several sources")
    ((slot, source),) = node.bindings
    items = shape(source, carrier)
    if not isinstance(items, ItemsShape):
        raise UntranslatableExpression("a quantifier over a value that is not a column")
    number = carrier.new()
    owner = RecordType((), open=False)
    item = shape_of(ColumnTerm(number), items.item, record=owner, missing=False, known=False)
    carrier.known.shapes[slot] = item
    rows, carrier.rows = carrier.rows, None
    try:
        met: Term = call("coalesce", condition(node.condition, carrier), FALSE)
    finally:
        carrier.rows = rows
    if node.kind == "some":
        term = call("coalesce", call("exists", items.term, LambdaTerm(number, met)), FALSE)
        return CellShape(term, "boolean", known=True)
    fails_somewhere = call("coalesce", call("exists", items.term, LambdaTerm(number, call("not", met))), FALSE)
    some = any_of(
        call("<", LiteralTerm(0, "bigint"), call("coalesce", call("size", items.term), LiteralTerm(0, "bigint")))
    )
    term = call("not", fails_somewhere)
    return CellShape(term if node.kind == "every" else call("and", term, term_of(some)), "boolean", known=True)
