# SPDX-License-Identifier: Apache-2.0
"""Prints expressions, with parentheses only where precedence requires them."""

from __future__ import annotations

from collections.abc import Iterator

from limnos.names.sqlpp import identifier
from limnos.rooms.sqlpp.language import tree
from limnos.rooms.sqlpp.language.printer.base import Piece, list_pieces, operand, prints, string
from limnos.rooms.sqlpp.language.tree.expressions import BETWEEN, IS, LEVELS, NOT, POSTFIX, PRIMARY


@prints(tree.MissingLiteral)
def _missing(_: tree.MissingLiteral) -> Iterator[Piece]:
    yield "MISSING"


@prints(tree.Null)
def _null(_: tree.Null) -> Iterator[Piece]:
    yield "NULL"


@prints(tree.Boolean)
def _boolean(node: tree.Boolean) -> Iterator[Piece]:
    yield "TRUE" if node.value else "FALSE"


@prints(tree.Integer)
def _integer(node: tree.Integer) -> Iterator[Piece]:
    yield str(node.value)


@prints(tree.Decimal)
def _decimal(node: tree.Decimal) -> Iterator[Piece]:
    yield node.text


@prints(tree.String)
def _string(node: tree.String) -> Iterator[Piece]:
    yield string(node.value)


@prints(tree.Parameter)
def _parameter(node: tree.Parameter) -> Iterator[Piece]:
    yield f"${node.name}" if isinstance(node.name, int) else f"${identifier(node.name)}"


@prints(tree.Variable)
def _variable(node: tree.Variable) -> Iterator[Piece]:
    yield identifier(node.name)


@prints(tree.FieldStep)
def _field(node: tree.FieldStep) -> Iterator[Piece]:
    yield f".{identifier(node.name)}"


@prints(tree.ElementStep)
def _element(node: tree.ElementStep) -> Iterator[Piece]:
    yield "["
    yield from operand(node.index)
    yield "]"


@prints(tree.SliceStep)
def _slice(node: tree.SliceStep) -> Iterator[Piece]:
    yield "["
    if node.start is not None:
        yield from operand(node.start)
    yield ":"
    if node.end is not None:
        yield from operand(node.end)
    yield "]"


@prints(tree.ItemsStep)
def _items(_: tree.ItemsStep) -> Iterator[Piece]:
    yield "[*]"


@prints(tree.PathExpression)
def _path(node: tree.PathExpression) -> Iterator[Piece]:
    yield from operand(node.base, PRIMARY)
    yield from node.steps


@prints(tree.UnaryOperation)
def _unary(node: tree.UnaryOperation) -> Iterator[Piece]:
    if node.operator == "not":
        yield "NOT "
        yield from operand(node.operand, NOT + 1)
    else:
        yield node.operator if node.operator in ("+", "-") else "EXISTS "
        yield from operand(node.operand, POSTFIX)


@prints(tree.OperationChain)
def _operation(node: tree.OperationChain) -> Iterator[Piece]:
    level = LEVELS[node.operators[0]]
    yield from operand(node.operands[0], level + 1)
    for operator, right in zip(node.operators, node.operands[1:], strict=True):
        yield f" {operator.upper()} "
        yield from operand(right, level + 1)


@prints(tree.BetweenExpression)
def _between(node: tree.BetweenExpression) -> Iterator[Piece]:
    yield from operand(node.value, BETWEEN + 1)
    yield " NOT BETWEEN " if node.negated else " BETWEEN "
    yield from operand(node.low, BETWEEN + 1)
    yield " AND "
    yield from operand(node.high, BETWEEN + 1)


@prints(tree.IsExpression)
def _is(node: tree.IsExpression) -> Iterator[Piece]:
    yield from operand(node.value, IS + 1)
    yield f" IS {'NOT ' if node.negated else ''}{node.test.upper()}"


@prints(tree.CaseBranch)
def _case_branch(node: tree.CaseBranch) -> Iterator[Piece]:
    yield " WHEN "
    yield from operand(node.condition)
    yield " THEN "
    yield from operand(node.result)


@prints(tree.Case)
def _case(node: tree.Case) -> Iterator[Piece]:
    yield "CASE"
    if node.subject is not None:
        yield " "
        yield from operand(node.subject)
    yield from node.branches
    if node.otherwise is not None:
        yield " ELSE "
        yield from operand(node.otherwise)
    yield " END"


@prints(tree.QuantifierBinding)
def _binding(node: tree.QuantifierBinding) -> Iterator[Piece]:
    yield f"{identifier(node.name)} IN "
    yield from operand(node.source)


@prints(tree.QuantifiedExpression)
def _quantified(node: tree.QuantifiedExpression) -> Iterator[Piece]:
    """Print a quantified expression, always with END, because the parser would else consume the END of a surrounding
    CASE.
    """
    yield f"{node.kind.upper()} "
    yield from list_pieces(node.bindings)
    yield " SATISFIES "
    yield from operand(node.condition)
    yield " END"


@prints(tree.Array)
def _array(node: tree.Array) -> Iterator[Piece]:
    yield "["
    yield from list_pieces(node.items)
    yield "]"


@prints(tree.Bag)
def _bag(node: tree.Bag) -> Iterator[Piece]:
    yield "{{ "
    yield from list_pieces(node.items)
    yield " }}"


@prints(tree.ObjectPair)
def _pair(node: tree.ObjectPair) -> Iterator[Piece]:
    yield from operand(node.name)
    yield ": "
    yield from operand(node.value)


@prints(tree.Object)
def _object(node: tree.Object) -> Iterator[Piece]:
    """Print an object constructor with a space after the brace, because two adjacent braces would begin a multiset."""
    yield "{ "
    yield from list_pieces(node.pairs)
    yield " }"


@prints(tree.Call)
def _call(node: tree.Call) -> Iterator[Piece]:
    *dataverse, last = node.function.parts
    library = [] if node.library is None else [node.library]
    name_parts = [identifier(part) for part in [*dataverse, *library]]
    between = "#" if library else "." if name_parts else ""
    yield f"{'.'.join(name_parts)}{between}{identifier(last)}("
    yield "DISTINCT " if node.distinct else ""
    yield "*" if node.star else ""
    yield ", " if node.star and node.arguments else ""
    yield from list_pieces(node.arguments)
    yield ")"
    if node.filter is not None:
        yield " FILTER (WHERE "
        yield from operand(node.filter)
        yield ")"
    if node.window is not None:
        yield node.window


@prints(tree.Window)
def _window(node: tree.Window) -> Iterator[Piece]:
    yield f" FROM {node.from_end.upper()}" if node.from_end else ""
    yield f" {node.nulls.upper()} NULLS" if node.nulls else ""
    yield " OVER "
    if node.variable is not None:
        yield node.variable
        yield " AS "
    yield "("
    if node.partition:
        yield "PARTITION BY "
        yield from list_pieces(node.partition)
    yield from order_by_pieces(node.order, before=" " if node.partition else "")
    if node.frame is not None:
        yield node.frame
    yield ")"


def order_by_pieces(items: tuple[tree.OrderItem, ...], *, before: str = " ") -> Iterator[Piece]:
    """Yield an ORDER BY clause, preceded by `before`; yields nothing if `items` is empty."""
    if items:
        yield f"{before}ORDER BY "
        yield from list_pieces(items)


@prints(tree.OrderItem)
def _order_item(node: tree.OrderItem) -> Iterator[Piece]:
    yield from operand(node.value)
    yield " DESC" if node.descending else ""
    yield f" NULLS {node.nulls.upper()}" if node.nulls else ""


@prints(tree.Frame)
def _frame(node: tree.Frame) -> Iterator[Piece]:
    yield f" {node.mode.upper()} "
    if node.end is None:
        yield node.start
    else:
        yield "BETWEEN "
        yield node.start
        yield " AND "
        yield node.end
    yield f" EXCLUDE {node.exclude.upper()}" if node.exclude else ""


@prints(tree.FrameEdge)
def _frame_edge(node: tree.FrameEdge) -> Iterator[Piece]:
    if node.side == "current row":
        yield "CURRENT ROW"
        return
    if node.value is None:
        yield "UNBOUNDED"
    else:
        yield from operand(node.value)
    yield f" {node.side.upper()}"


@prints(tree.GroupVariable)
def _group_variable(node: tree.GroupVariable) -> Iterator[Piece]:
    yield identifier(node.name)
    if node.fields is not None:
        yield " ("
        yield from list_pieces(node.fields)
        yield ")"


@prints(tree.NamedField)
def _named_field(node: tree.NamedField) -> Iterator[Piece]:
    yield f"{identifier(node.variable)} AS {identifier(node.name)}"
