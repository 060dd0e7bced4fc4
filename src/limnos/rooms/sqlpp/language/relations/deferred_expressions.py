# SPDX-License-Identifier: Apache-2.0
"""Deferred expressions: untranslatable expressions in results, which the evaluator computes row by row afterwards.

Must not know clauses. An expression is evaluated from the values of its variables, of which only the used fields are
fetched. Aggregates of a group are fetched as values. Datasets cannot be read at that stage, so a subquery over a
dataset cannot be deferred.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from msgspec import structs

from limnos.rooms.sqlpp.language import plan
from limnos.rooms.sqlpp.language.evaluator.budget import Budget
from limnos.rooms.sqlpp.language.evaluator.expressions import compile_expression
from limnos.rooms.sqlpp.language.evaluator.queries import working_of
from limnos.rooms.sqlpp.language.relations.shapes import FinishedShape, RecordShape, Shape, UntranslatableExpression
from limnos.rooms.sqlpp.language.relations.translator import BlockTranslator
from limnos.rooms.sqlpp.language.values.model import MISSING, Value


def defer_to_evaluator(
    node: plan.Expression, carrier: BlockTranslator, *, reason: UntranslatableExpression
) -> FinishedShape:
    """Return the shape of a deferred expression. Re-raises `reason` if the evaluator cannot compute it from a row."""
    aggregates = [one for one in _walk(node) if id(one) in carrier.aggregates]
    slots_by_id = {id(one): at for at, one in enumerate(aggregates, 1 + max(_slots(node), default=0))}
    new_node = _put(node, slots_by_id)
    if not isinstance(new_node, plan.Expression):
        raise TypeError("an expression stays one")
    own, known = _slots_filled_by(new_node), carrier.known
    entries = {
        slot: names for slot, names in _uses(new_node).items() if slot not in own and slot not in slots_by_id.values()
    }
    exists = entries.keys() <= known.shapes.keys() and known.later.keys().isdisjoint(entries)
    if not exists or any(isinstance(one, plan.Scan) for one in _walk(new_node)):
        raise reason
    inputs = (_prune_shape(known.shapes[slot], names) for slot, names in entries.items())
    results = (carrier.aggregates[number] for number in slots_by_id)
    return FinishedShape(
        inputs=(*inputs, *results), expression=new_node, slots=(*entries, *slots_by_id.values()), reason=str(reason)
    )


def function_of(finished: FinishedShape) -> Callable[[Sequence[Value]], Value]:
    """Compile a deferred expression to a function of its input values."""
    slots = finished.slots
    size = 1 + max(_slots(finished.expression), default=0)
    run = compile_expression(finished.expression, working_of(_no_items, budget=Budget(), slots=size))

    def work(values: Sequence[Value]) -> Value:
        row: list[Value] = [MISSING] * (size + 1)
        for slot, value in zip(slots, values, strict=True):
            row[slot] = value
        return run(row)

    return work


def _no_items(_dataverse: tuple[str, ...], _name: str) -> tuple[Value, ...]:
    return ()


def _prune_shape(shape: Shape, names: frozenset[str] | None) -> Shape:
    """Reduce a variable's shape to the fields that an expression uses; None for all."""
    if not isinstance(shape, RecordShape) or names is None:
        return shape
    fields = tuple((name, field) for name, field in shape.fields if name in names)
    if len(fields) == len(names) or shape.open is None:
        return RecordShape(fields=fields, is_present=shape.is_present, missing=shape.missing)
    return structs.replace(shape, fields=fields)


def _uses(node: plan.Expression) -> dict[int, frozenset[str] | None]:
    """Return the slots that an expression uses, each with the fields used; None if the whole variable is used."""
    fields: dict[int, set[str]] = {}
    whole: set[int] = set()
    waiting: list[object] = [node]
    while waiting:
        one = waiting.pop()
        if isinstance(one, plan.FieldOf) and isinstance(one.base, plan.Local):
            fields.setdefault(one.base.slot, set()).add(one.name)
        elif isinstance(one, plan.Local):
            whole.add(one.slot)
        else:
            waiting.extend(_parts(one))
    return {slot: None if slot in whole else frozenset(fields[slot]) for slot in fields.keys() | whole}


def _slots(node: plan.Expression) -> Iterator[int]:
    """Yield the slots that an expression reads or assigns."""
    yield from _uses(node)
    yield from _slots_filled_by(node)


def _slots_filled_by(node: plan.Expression) -> frozenset[int]:
    """Return the slots that an expression itself assigns."""
    return frozenset(slot for one in _walk(node) for slot in _filled_slots(one))


def _filled_slots(node: plan.PlanNode) -> Iterator[int]:
    match node:
        case plan.Let(slot=slot) | plan.WindowCall(slot=slot):
            yield slot
        case plan.ForEach(slot=slot, position=position):
            yield slot
            yield from () if position is None else (position,)
        case plan.Quantified(bindings=pairs) | plan.LetIn(lets=pairs):
            yield from (slot for slot, _ in pairs)
        case plan.Group(keys=keys, slot=group, number=number):
            yield from () if number is None else (number,)
            yield from (slot for slot, _ in keys)
            yield from () if group is None else (group,)
        case plan.Query(output=output) if output is not None:
            yield output


def _walk(node: object) -> Iterator[plan.PlanNode]:
    waiting = [node]
    while waiting:
        one = waiting.pop()
        if isinstance(one, plan.PlanNode):
            yield one
        waiting.extend(_parts(one))


def _parts(item: object) -> Iterator[object]:
    """Yield the children of a plan node or of a tuple; a constant has none."""
    if type(item) is tuple:
        yield from item
    elif isinstance(item, plan.PlanNode) and not isinstance(item, plan.Constant):
        yield from (getattr(item, name) for name in item.__struct_fields__[1:])


def _put(content: object, places: dict[int, int]) -> object:
    """Return a plan with aggregates replaced by variables. `places` maps the id of an aggregate to its slot."""
    if id(content) in places and isinstance(content, plan.PlanNode):
        return plan.Local(content.at, places[id(content)], "aggregate")
    if not places or isinstance(content, plan.Constant):
        return content
    if isinstance(content, plan.PlanNode):
        return structs.replace(
            content, **{name: _put(getattr(content, name), places) for name in content.__struct_fields__[1:]}
        )
    return tuple(_put(item, places) for item in content) if type(content) is tuple else content
