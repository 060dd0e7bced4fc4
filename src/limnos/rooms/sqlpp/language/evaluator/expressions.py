# SPDX-License-Identifier: Apache-2.0
"""Compiles expressions: each node of a plan becomes a function from a row of variables to a value.

Must not know names. A plan is compiled to functions once, which are called for each row; in Python this is much faster
than interpreting the plan. A row is a list with one value for each slot of the statement.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import cast

from limnos.rooms.sqlpp.language import plan
from limnos.rooms.sqlpp.language.errors import BudgetSpent, SqlppError
from limnos.rooms.sqlpp.language.evaluator.context import EvaluationContext, Row
from limnos.rooms.sqlpp.language.evaluator.operators import OPERATORS, charge_chain, conjunction, disjunction
from limnos.rooms.sqlpp.language.evaluator.slots import with_last_result
from limnos.rooms.sqlpp.language.functions.collections import distinct, items
from limnos.rooms.sqlpp.language.functions.costs import OPERATOR, compare_cost
from limnos.rooms.sqlpp.language.functions.types import CONSTRUCTORS
from limnos.rooms.sqlpp.language.values import access, arithmetic, comparison
from limnos.rooms.sqlpp.language.values.model import MISSING, Bag, Value, is_unknown, type_name

TYPE_MISMATCH, UNSUPPORTED_TYPE = 2, 4
DUPLICATE_FIELD = 13
INVALID_FORMAT = 6
WARNED_TEXT_MAX = 80
"""The maximum number of characters of a value that a warning repeats."""


def compile_expression(node: plan.Expression, working: EvaluationContext) -> Callable[[Row], Value]:
    """Compile an expression to a function of a row. With a metered budget each call of the function is charged."""
    result = _WORKS[type(node)](node, working)
    meter = working.meter
    if meter is None:
        return result

    def evaluate_metered(row: Row) -> Value:
        meter.units -= 1
        if meter.units < 0:
            raise BudgetSpent
        return result(row)

    return evaluate_metered


def compile_expressions(nodes: tuple[plan.Expression, ...], working: EvaluationContext) -> list[Callable[[Row], Value]]:
    """Compile several expressions to functions of a row."""
    return [compile_expression(node, working) for node in nodes]


def _constant(node: plan.Constant, _: EvaluationContext) -> Callable[[Row], Value]:
    value = node.value
    return lambda _: value


def _local(node: plan.Local, _: EvaluationContext) -> Callable[[Row], Value]:
    slot = node.slot
    return lambda row: row[slot]


def _scan(node: plan.Scan, working: EvaluationContext) -> Callable[[Row], Value]:
    elements: tuple[Value, ...] | None = None

    def work(_: Row) -> Value:
        nonlocal elements
        if elements is None:  # read once per statement: a subquery that runs for each row reads the same objects
            elements = tuple(working.rows(node.dataverse, node.name))
            working.budget.keep(len(elements))
        return elements

    return work


def _field(node: plan.FieldOf, working: EvaluationContext) -> Callable[[Row], Value]:
    base, name = compile_expression(node.base, working), node.name
    return lambda row: access.field(base(row), name)


def _element(node: plan.ElementOf, working: EvaluationContext) -> Callable[[Row], Value]:
    base, index = compile_expression(node.base, working), compile_expression(node.index, working)
    return lambda row: access.element(base(row), index(row))


def _slice(node: plan.SliceOf, working: EvaluationContext) -> Callable[[Row], Value]:
    base, start = (
        _charge_result(compile_expression(node.base, working), working),
        compile_expression(node.start, working),
    )
    if node.end is None:
        return lambda row: access.part_from(base(row), start(row))
    end = compile_expression(node.end, working)
    return lambda row: access.part(base(row), start(row), end(row))


def _charge_result(work: Callable[[Row], Value], working: EvaluationContext) -> Callable[[Row], Value]:
    """Wrap a function so that the size of its result is charged, because the caller copies the result."""
    meter = working.meter
    if meter is None:
        return work

    def evaluate_metered(row: Row) -> Value:
        value = work(row)
        meter.spend(len(value) if isinstance(value, (tuple, str)) else 1)
        return value

    return evaluate_metered


def _call(node: plan.FunctionCall, working: EvaluationContext) -> Callable[[Row], Value]:
    run, arguments = node.function.run, compile_expressions(node.arguments, working)
    meter = working.meter
    stray = node.function.stray
    if stray is not None:
        run = _warn_of_ignored(node, run, working=working)
    if node.function.name in CONSTRUCTORS:
        run = _warn_of_invalid(node, run, working=working)
    if meter is not None:
        cost = node.function.cost

        def evaluate_metered(row: Row) -> Value:
            values = [argument(row) for argument in arguments]
            meter.charge(cost, values)
            return run(*values)

        return evaluate_metered
    if len(arguments) == 1:
        (only,) = arguments
        return lambda row: run(only(row))
    return lambda row: run(*[argument(row) for argument in arguments])


def _warn_of_ignored(
    node: plan.FunctionCall, run: Callable[..., Value], *, working: EvaluationContext
) -> Callable[..., Value]:
    """Wrap an aggregate over an array so that it adds a warning about items that it ignores because of their type."""
    name = node.function.name.partition("_")[2]

    def run_with_warnings(*values: Value) -> Value:
        warn_of_strays(node, items(values[0]) or (), name=name, working=working)
        return run(*values)

    return run_with_warnings


def _warn_of_invalid(
    node: plan.FunctionCall, run: Callable[..., Value], *, working: EvaluationContext
) -> Callable[..., Value]:
    """Wrap a type constructor so that it adds a warning about a string that is not in the type's format."""
    name = node.function.name.replace("_", "-")

    def run_with_warning(*values: Value) -> Value:
        result = run(*values)
        if result is None and values and isinstance(values[0], str):
            words = f"Invalid format for {name} in {values[0][:WARNED_TEXT_MAX]}"
            working.budget.warn(SqlppError(INVALID_FORMAT, words, node.at))
        return result

    return run_with_warning


def warn_of_strays(
    node: plan.FunctionCall | plan.Aggregate | plan.WindowCall,
    values: Sequence[Value],
    *,
    name: str,
    working: EvaluationContext,
) -> bool:
    """Add a warning about the first value that an aggregate ignores because of its type. Returns whether one exists."""
    result = None if node.function.stray is None else node.function.stray(values)
    if result is None:
        return False
    words = f"Unsupported type: agg-{name} cannot process input type {type_name(result)}"
    working.budget.warn(SqlppError(UNSUPPORTED_TYPE, words, node.at))
    return True


def aggregate_of(
    node: plan.Aggregate | plan.queries.WindowCall,
    argument: Callable[[Row], Value] | None,
    *,
    working: EvaluationContext,
) -> Callable[[list[Row]], Value]:
    """Compile an aggregate to a function of a list of rows."""
    run, entry = node.function.run, None if node.filter is None else compile_expression(node.filter, working)
    once, meter, cost = node.distinct, working.meter, node.function.cost

    def work(rows: list[Row]) -> Value:
        if entry is not None:
            rows = [row for row in rows if entry(row) is True]
        if argument is None:
            return len(rows)
        values = [argument(row) for row in rows]
        if meter is not None:
            meter.charge(compare_cost if once else cost, values)
        warn_of_strays(node, values, name=node.function.name, working=working)
        return run(distinct(values) if once else values)

    return work


def _aggregate(node: plan.Aggregate, working: EvaluationContext) -> Callable[[Row], Value]:
    argument = None if node.argument is None else compile_expression(node.argument, working)
    over = aggregate_of(node, argument, working=working)
    group = working.group_slot

    def work(row: Row) -> Value:
        return over(cast("list[Row]", row[group]))  # the slot holds the rows of the group

    return work


def _operate(node: plan.Operate, working: EvaluationContext) -> Callable[[Row], Value]:
    operands = compile_expressions(node.operands, working)
    first = node.operators[0]
    if first in ("and", "or"):
        return conjunction(operands) if first == "and" else disjunction(operands)
    if working.meter is not None:
        return charge_chain(node.operators, operands, meter=working.meter)
    if len(operands) == 2:
        left, right = operands
        run = OPERATORS[first]
        return lambda row: run(left(row), right(row))
    chain = list(zip([OPERATORS[operator] for operator in node.operators], operands[1:], strict=True))

    def work(row: Row) -> Value:
        value = operands[0](row)
        for run, operand in chain:
            value = run(value, operand(row))
        return value

    return work


def _negated(node: plan.Negated, working: EvaluationContext) -> Callable[[Row], Value]:
    operand = compile_expression(node.operand, working)
    return lambda row: comparison.negated(operand(row))


def _sign(node: plan.SignOf, working: EvaluationContext) -> Callable[[Row], Value]:
    operand = compile_expression(node.operand, working)
    if node.minus:
        return lambda row: arithmetic.negate(operand(row))

    def work(row: Row) -> Value:
        value = operand(row)
        return value if is_unknown(value) or arithmetic.negate(value) is not None else None

    return work


def _exists(node: plan.Exists, working: EvaluationContext) -> Callable[[Row], Value]:
    operand = compile_expression(node.operand, working)

    def work(row: Row) -> Value:
        elements = items(operand(row))
        return elements is not None and len(elements) > 0

    return work


def _between(node: plan.Between, working: EvaluationContext) -> Callable[[Row], Value]:
    value, low, high = compile_expressions((node.value, node.low, node.high), working)
    negated, meter = node.negated, working.meter

    def work(row: Row) -> Value:
        result, least, most = value(row), low(row), high(row)
        if meter is not None:
            meter.charge(compare_cost, (result, result, least, most), base=OPERATOR)
        truth = comparison.both(comparison.less_or_equal(least, result), comparison.less_or_equal(result, most))
        return comparison.negated(truth) if negated else truth

    return work


def _is(node: plan.IsTest, working: EvaluationContext) -> Callable[[Row], Value]:
    value, negated = compile_expression(node.value, working), node.negated
    if node.test == "missing":
        return lambda row: (value(row) is MISSING) is not negated
    if node.test in ("unknown", "known"):
        return lambda row: is_unknown(value(row)) is not (negated == (node.test == "unknown"))

    def null(row: Row) -> Value:
        result = value(row)
        return MISSING if result is MISSING else (result is None) is not negated

    return null


def _case(node: plan.CaseOf, working: EvaluationContext) -> Callable[[Row], Value]:
    subject = None if node.subject is None else compile_expression(node.subject, working)
    branches = [
        (compile_expression(condition, working), compile_expression(result, working))
        for condition, result in node.branches
    ]
    otherwise = None if node.otherwise is None else compile_expression(node.otherwise, working)
    meter = working.meter

    def is_met(value: Value, target: Value) -> Value:
        if meter is not None:
            meter.charge(compare_cost, (value, target), base=OPERATOR)
        return comparison.equal(value, target)

    def work(row: Row) -> Value:
        value = MISSING if subject is None else subject(row)
        for condition, result in branches:
            truth = condition(row) if subject is None else is_met(value, condition(row))
            if truth is True:
                return result(row)
        return None if otherwise is None else otherwise(row)

    return work


def _quantified(node: plan.Quantified, working: EvaluationContext) -> Callable[[Row], Value]:
    bindings = [(slot, compile_expression(source, working)) for slot, source in node.bindings]
    condition = compile_expression(node.condition, working)
    wants = node.kind == "some"

    def search(row: Row, depth: int) -> bool | None:
        """Return whether the condition has the deciding result (TRUE for SOME, another one for EVERY) for some
        combination; None if there is no combination.
        """
        if depth == len(bindings):
            return (condition(row) is True) is wants
        slot, source = bindings[depth]
        met: bool | None = None
        for item in items(source(row)) or ():
            working.budget.step()
            row[slot] = item
            is_found = search(row, depth + 1)
            if is_found:
                return True
            met = is_found if met is None else met
        return met

    def work(row: Row) -> Value:
        is_found = search(row, 0)
        if wants:
            return is_found is True
        return (node.kind == "every") if is_found is None else not is_found

    return work


def _array(node: plan.ArrayOf, working: EvaluationContext) -> Callable[[Row], Value]:
    works = compile_expressions(node.items, working)
    return lambda row: tuple([work(row) for work in works])


def _bag(node: plan.BagOf, working: EvaluationContext) -> Callable[[Row], Value]:
    works = compile_expressions(node.items, working)
    return lambda row: Bag([work(row) for work in works])


def _object(node: plan.ObjectOf, working: EvaluationContext) -> Callable[[Row], Value]:
    """Compile an object constructor. If several fields have the same name, the first wins, with a warning.

    As in AsterixDB, a literal name precedes a computed one, and a computed constant a name that depends on the row.
    """
    sorted_pairs = sorted(node.pairs, key=lambda pair: _name_rank(pair[0]))
    pairs = [(compile_expression(name, working), compile_expression(value, working)) for name, value in sorted_pairs]

    def work(row: Row) -> Value:
        fields: dict[str, Value] = {}
        for name, value in pairs:
            called = name(row)
            if not isinstance(called, str):
                continue
            if called in fields:
                working.budget.warn(SqlppError(DUPLICATE_FIELD, f'Duplicate field name "{called}"', node.at))
            else:
                fields[called] = value(row)
        return {name: value for name, value in fields.items() if value is not MISSING}

    return work


def _name_rank(name: plan.Expression) -> int:
    """Return the precedence of a field name: 0 for a literal, 1 for another constant, 2 if it depends on the row."""
    if isinstance(name, plan.Constant):
        return 0
    waiting: list[plan.Expression] = [name]
    while waiting:
        one = waiting.pop()
        if isinstance(one, plan.FunctionCall) and one.function.is_deterministic:
            waiting.extend(one.arguments)
        elif not isinstance(one, plan.Constant):
            return 2
    return 1


def _let(node: plan.LetIn, working: EvaluationContext) -> Callable[[Row], Value]:
    lets = [(slot, compile_expression(value, working)) for slot, value in node.lets]
    body = compile_expression(node.body, working)

    def work(row: Row) -> Value:
        for slot, value in [(slot, value(row)) for slot, value in lets]:
            row[slot] = value
        return body(row)

    return work


def _subquery(node: plan.Subquery, working: EvaluationContext) -> Callable[[Row], Value]:
    return with_last_result(node, working.query(node.query), working=working)


def source_items(value: Value, node: plan.PlanNode, *, working: EvaluationContext) -> tuple[Value, ...]:
    """Return the items of a source of rows; empty for NULL, MISSING and, with a warning, for a value that is not a
    collection.
    """
    elements = items(value)
    if elements is not None:
        return elements
    if not is_unknown(value):
        words = (
            "Type mismatch: function scan-collection expects its 1st input parameter to be of type array or multiset, "
            f"but the actual input type is {type_name(value)}"
        )
        working.budget.warn(SqlppError(TYPE_MISMATCH, words, node.at))
    return ()


_WORKS: dict[type, Callable[..., Callable[[Row], Value]]] = {
    plan.Constant: _constant,
    plan.Local: _local,
    plan.Scan: _scan,
    plan.FieldOf: _field,
    plan.ElementOf: _element,
    plan.SliceOf: _slice,
    plan.FunctionCall: _call,
    plan.Aggregate: _aggregate,
    plan.Operate: _operate,
    plan.Negated: _negated,
    plan.SignOf: _sign,
    plan.Exists: _exists,
    plan.Between: _between,
    plan.IsTest: _is,
    plan.CaseOf: _case,
    plan.Quantified: _quantified,
    plan.ArrayOf: _array,
    plan.BagOf: _bag,
    plan.ObjectOf: _object,
    plan.LetIn: _let,
    plan.Subquery: _subquery,
}
