"""Pieces of expressions.

May import `base` and the tree. Must not decide anything: parentheses stand where the tree needs them and nowhere else.
"""

from __future__ import annotations

from collections.abc import Iterator

from limnos.sqlpp.printer.base import Piece, identifier, list_pieces, operand, prints, string
from limnos.sqlpp.tree import (
    Array,
    Bag,
    BetweenExpression,
    Boolean,
    Call,
    Case,
    CaseBranch,
    Decimal,
    ElementStep,
    FieldStep,
    Frame,
    FrameEdge,
    GroupVariable,
    Integer,
    IsExpression,
    ItemsStep,
    MissingLiteral,
    NamedField,
    Null,
    Object,
    ObjectPair,
    OperationChain,
    OrderItem,
    Parameter,
    PathExpression,
    QuantifiedExpression,
    QuantifierBinding,
    SliceStep,
    String,
    UnaryOperation,
    Variable,
    Window,
)
from limnos.sqlpp.tree.expressions import BETWEEN, IS, LEVELS, NOT, POSTFIX, PRIMARY


@prints(MissingLiteral)
def _missing(_: MissingLiteral) -> Iterator[Piece]:
    yield "MISSING"


@prints(Null)
def _null(_: Null) -> Iterator[Piece]:
    yield "NULL"


@prints(Boolean)
def _boolean(node: Boolean) -> Iterator[Piece]:
    yield "TRUE" if node.value else "FALSE"


@prints(Integer)
def _integer(node: Integer) -> Iterator[Piece]:
    yield str(node.value)


@prints(Decimal)
def _decimal(node: Decimal) -> Iterator[Piece]:
    yield node.text


@prints(String)
def _string(node: String) -> Iterator[Piece]:
    yield string(node.value)


@prints(Parameter)
def _parameter(node: Parameter) -> Iterator[Piece]:
    yield f"${node.name}" if isinstance(node.name, int) else f"${identifier(node.name)}"


@prints(Variable)
def _variable(node: Variable) -> Iterator[Piece]:
    yield identifier(node.name)


@prints(FieldStep)
def _field(node: FieldStep) -> Iterator[Piece]:
    yield f".{identifier(node.name)}"


@prints(ElementStep)
def _element(node: ElementStep) -> Iterator[Piece]:
    yield "["
    yield from operand(node.index)
    yield "]"


@prints(SliceStep)
def _slice(node: SliceStep) -> Iterator[Piece]:
    yield "["
    if node.start is not None:
        yield from operand(node.start)
    yield ":"
    if node.end is not None:
        yield from operand(node.end)
    yield "]"


@prints(ItemsStep)
def _items(_: ItemsStep) -> Iterator[Piece]:
    yield "[*]"


@prints(PathExpression)
def _path(node: PathExpression) -> Iterator[Piece]:
    yield from operand(node.base, PRIMARY)
    yield from node.steps


@prints(UnaryOperation)
def _unary(node: UnaryOperation) -> Iterator[Piece]:
    if node.operator == "not":
        yield "NOT "
        yield from operand(node.operand, NOT + 1)
    else:
        yield node.operator if node.operator in ("+", "-") else "EXISTS "
        yield from operand(node.operand, POSTFIX)


@prints(OperationChain)
def _operation(node: OperationChain) -> Iterator[Piece]:
    level = LEVELS[node.operators[0]]
    yield from operand(node.operands[0], level + 1)
    for operator, right in zip(node.operators, node.operands[1:], strict=True):
        yield f" {operator.upper()} "
        yield from operand(right, level + 1)


@prints(BetweenExpression)
def _between(node: BetweenExpression) -> Iterator[Piece]:
    yield from operand(node.value, BETWEEN + 1)
    yield " NOT BETWEEN " if node.negated else " BETWEEN "
    yield from operand(node.low, BETWEEN + 1)
    yield " AND "
    yield from operand(node.high, BETWEEN + 1)


@prints(IsExpression)
def _is(node: IsExpression) -> Iterator[Piece]:
    yield from operand(node.value, IS + 1)
    yield f" IS {'NOT ' if node.negated else ''}{node.test.upper()}"


@prints(CaseBranch)
def _when(node: CaseBranch) -> Iterator[Piece]:
    yield " WHEN "
    yield from operand(node.condition)
    yield " THEN "
    yield from operand(node.result)


@prints(Case)
def _case(node: Case) -> Iterator[Piece]:
    yield "CASE"
    if node.subject is not None:
        yield " "
        yield from operand(node.subject)
    yield from node.branches
    if node.otherwise is not None:
        yield " ELSE "
        yield from operand(node.otherwise)
    yield " END"


@prints(QuantifierBinding)
def _binding(node: QuantifierBinding) -> Iterator[Piece]:
    yield f"{identifier(node.name)} IN "
    yield from operand(node.source)


@prints(QuantifiedExpression)
def _quantified(node: QuantifiedExpression) -> Iterator[Piece]:
    """With END, lest a CASE around it loses its own."""
    yield f"{node.kind.upper()} "
    yield from list_pieces(node.bindings)
    yield " SATISFIES "
    yield from operand(node.condition)
    yield " END"


@prints(Array)
def _array(node: Array) -> Iterator[Piece]:
    yield "["
    yield from list_pieces(node.items)
    yield "]"


@prints(Bag)
def _bag(node: Bag) -> Iterator[Piece]:
    yield "{{ "
    yield from list_pieces(node.items)
    yield " }}"


@prints(ObjectPair)
def _pair(node: ObjectPair) -> Iterator[Piece]:
    yield from operand(node.name)
    yield ": "
    yield from operand(node.value)


@prints(Object)
def _object(node: Object) -> Iterator[Piece]:
    """With a space after the brace, lest two of them make a bag."""
    yield "{ "
    yield from list_pieces(node.pairs)
    yield " }"


@prints(Call)
def _call(node: Call) -> Iterator[Piece]:
    *dataverse, last = node.function.parts
    library = [] if node.library is None else [node.library]
    before = [identifier(part) for part in [*dataverse, *library]]
    between = "#" if library else "." if before else ""
    yield f"{'.'.join(before)}{between}{identifier(last)}("
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


@prints(Window)
def _window(node: Window) -> Iterator[Piece]:
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


def order_by_pieces(items: tuple[OrderItem, ...], *, before: str = " ") -> Iterator[Piece]:
    """ORDER BY, if there is something to order by."""
    if items:
        yield f"{before}ORDER BY "
        yield from list_pieces(items)


@prints(OrderItem)
def _order_item(node: OrderItem) -> Iterator[Piece]:
    yield from operand(node.value)
    yield " DESC" if node.descending else ""
    yield f" NULLS {node.nulls.upper()}" if node.nulls else ""


@prints(Frame)
def _frame(node: Frame) -> Iterator[Piece]:
    yield f" {node.mode.upper()} "
    if node.end is None:
        yield node.start
    else:
        yield "BETWEEN "
        yield node.start
        yield " AND "
        yield node.end
    yield f" EXCLUDE {node.exclude.upper()}" if node.exclude else ""


@prints(FrameEdge)
def _bound(node: FrameEdge) -> Iterator[Piece]:
    if node.side == "current row":
        yield "CURRENT ROW"
        return
    if node.value is None:
        yield "UNBOUNDED"
    else:
        yield from operand(node.value)
    yield f" {node.side.upper()}"


@prints(GroupVariable)
def _group_variable(node: GroupVariable) -> Iterator[Piece]:
    yield identifier(node.name)
    if node.fields is not None:
        yield " ("
        yield from list_pieces(node.fields)
        yield ")"


@prints(NamedField)
def _named_field(node: NamedField) -> Iterator[Piece]:
    yield f"{identifier(node.variable)} AS {identifier(node.name)}"
