# SPDX-License-Identifier: Apache-2.0
"""Update queries: rewrites UPDATE to a query that returns the changed objects.

Must not know datasets beyond the paths of a key. Each SET or array step applies to the result of the previous one.
Array positions begin at 0; negative positions count from the end.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, cast

import msgspec

from limnos.names.path import Levels
from limnos.names.sqlpp import identifier
from limnos.rooms.sqlpp.language import parse_body, tree
from limnos.rooms.sqlpp.language.errors import compilation

STEPS_MAX: Final = 100
"""The maximum total number of fields in the paths of one UPDATE: each step adds a nesting level to the query."""
MOVES_MAX: Final = STEPS_MAX // 4
"""The maximum total number of fields for which the order of fields changes, since that adds levels, too."""
_KEPT: Final = "$old"
_POSITION: Final = "$position"
_ITEM: Final = "$item"
_PARENT: Final = "$parent"


def update_query(
    statement: tree.Update, dataset: Levels, *, keys: Iterable[tuple[str, ...]], moves: bool = False
) -> tree.QueryExpression:
    """Return the query for the changed objects of a dataset.

    With `moves` and at most `MOVES_MAX` fields, changed fields come before the others, those of the last SET first.
    Else they keep their positions.

    Raises SqlppError for a change of a key, for paths of more than `STEPS_MAX` fields, and for a path that is nested
    too deeply.
    """
    count = _fields_in(statement.steps)
    moves = moves and count <= MOVES_MAX
    if count > STEPS_MAX:
        raise compilation(f"The paths of UPDATE have more than {STEPS_MAX} fields", statement.steps[0].at)
    keys = tuple(keys)
    for step in statement.steps:
        path = step.path[1:]
        for key in keys if path else ():
            if key[: len(path)] == path or path[: len(key)] == key:
                raise compilation(f"UPDATE can't change {'.'.join(key)}, which is part of the key", step.at)
    variable = identifier(statement.variable)
    query = _query(f"from {'.'.join(map(identifier, dataset))} as {variable} select value {variable}")
    query = msgspec.structs.replace(query, block=msgspec.structs.replace(query.block, where=statement.where))
    select = f"from [] as {variable} select value 0"
    for group in _groups(statement.steps):
        for step in group:
            new_expression = _apply_step(variable, step, moves=moves)
            if len(step.path) == 1:
                new_expression = _same_key(variable, new_expression, keys=keys)
            query = _select(select, source=query, value=new_expression)
        if moves and len(group) > 1 and all(len(step.path) > 1 for step in group):
            query = _select(select, source=query, value=_order_steps(variable, group))
    return query


def _groups(steps: tuple[tree.UpdateStep, ...]) -> list[list[tree.UpdateStep]]:
    """Split steps into groups: the assignments of one SET with the array steps after it."""
    groups: list[list[tree.UpdateStep]] = []
    for step in steps:
        if groups and (not isinstance(step, tree.Assignment) or step.follows):
            groups[-1].append(step)
        else:
            groups.append([step])
    return groups


def _order_steps(variable: str, group: list[tree.UpdateStep]) -> tree.Expression:
    """Return the expression for an object in which the fields that a group of steps changed are in its order."""
    paths: dict[str, Any] = {}
    for step in group:
        fields = paths
        for name in step.path[1:]:
            fields = fields.setdefault(name, {})
    inserted = {step.path[1] for step in group if isinstance(step, tree.ArrayInsert)}
    names = f"object_names({variable})"
    moved = {
        name: (
            f"case when array_position({names}, {json.dumps(name)}) < {len(paths)} then {variable}.{identifier(name)}"
            " else missing end"
        )
        for name in inserted
    }
    return parse_body(f"object_merge({_first_fields(variable, paths, texts=moved)}, {variable})")


def _first_fields(base: str, paths: Mapping[str, Any], *, texts: Mapping[str, str]) -> str:
    """Return the text of an object of fields at paths; `texts` has that of other fields."""
    fields = []
    for name, inner in paths.items():
        path = f"{base}.{identifier(name)}"
        if inner:
            path = f"case when is_object({path}) then {_first_fields(path, inner, texts={})} else {path} end"
        fields.append(f"{json.dumps(name)}: {texts.get(name, path)}")
    return "{" + ", ".join(fields) + "}"


def _fields_in(steps: tuple[tree.UpdateStep, ...]) -> int:
    inner = sum(_fields_in(step.steps) for step in steps if isinstance(step, tree.ArrayUpdate))
    return inner + sum(max(len(step.path) - 1, 1) for step in steps)


def _query(text: str) -> tree.QueryExpression:
    query = parse_body(text)
    if not isinstance(query, tree.QueryExpression):
        raise TypeError("a query is a query")
    return query


def _select(text: str, *, source: tree.Expression, value: tree.Expression) -> tree.QueryExpression:
    """Parse a query template and replace its FROM source and its SELECT value."""
    query = _query(text)
    term = msgspec.structs.replace(query.block.terms[0], source=source)
    select = msgspec.structs.replace(query.block.select, value=value)
    return msgspec.structs.replace(query, block=msgspec.structs.replace(query.block, terms=(term,), select=select))


def _case(condition: tree.Expression, value: tree.Expression, *, otherwise: tree.Expression) -> tree.Case:
    case = cast("tree.Case", parse_body("case when true then 1 else 2 end"))
    branch = msgspec.structs.replace(case.branches[0], condition=condition, result=value)
    return msgspec.structs.replace(case, branches=(branch,), otherwise=otherwise)


def _same_key(variable: str, changed: tree.Expression, *, keys: tuple[tuple[str, ...], ...]) -> tree.Expression:
    """Return an expression for the replacement of a whole object; it is NULL if the new object has another key.

    NULL is not an object, so the statement then fails.
    """
    paths = [".".join(map(identifier, key)) for key in keys]
    condition = " and ".join(f"`{_KEPT}`.{path} = {variable}.{path}" for path in paths) or "true"
    item = cast(
        "tree.PathExpression", parse_body(f"(from [] as `{_KEPT}` where {condition} select value `{_KEPT}`)[0]")
    )
    query = cast("tree.QueryExpression", item.base)
    term = msgspec.structs.replace(query.block.terms[0], source=tree.Array(changed.at, (changed,)))
    query = msgspec.structs.replace(query, block=msgspec.structs.replace(query.block, terms=(term,)))
    call = cast("tree.Call", parse_body("if_missing(0, null)"))
    first = msgspec.structs.replace(item, base=query)
    return msgspec.structs.replace(call, arguments=(first, call.arguments[1]))


def _apply_step(variable: str, step: tree.UpdateStep, *, moves: bool, base: str = "") -> tree.Expression:
    """Return the expression for an object or item after a step. `base` is the text of the object that gets the new
    field.
    """
    path = step.path[1:]
    if isinstance(step, tree.Assignment):
        value = step.value
    else:
        array = ".".join((variable, *map(identifier, path)))
        value = (
            _update_items(step, array, moves=moves)
            if isinstance(step, tree.ArrayUpdate)
            else _ITEM_STEPS[type(step)](step, array)
        )
    if not path:
        return value
    if moves and isinstance(step, tree.ArrayInsert) and isinstance(value, tree.Case):  # a field that stays is not moved
        ((condition, whole),) = [(branch.condition, branch.result) for branch in value.branches]
        put = _put(base or variable, path, value=whole, moves=moves)
        return _case(condition, put, otherwise=parse_body(base or variable))
    return _put(base or variable, path, value=value, moves=moves)


def _put(base: str, path: tuple[str, ...], *, value: tree.Expression, moves: bool) -> tree.Expression:
    """Return the expression for an object with a new value at a path: MISSING removes the field.

    A parent of the field that is not an object becomes an object; a parent that is MISSING or NULL does so only for the
    literal MISSING, and is unchanged for other values. Each step repeats `base` once, so that the text grows linearly
    with the steps.
    """
    first, *rest = path
    is_removal = isinstance(value, tree.MissingLiteral)
    if rest:
        parent = f"`{_PARENT}`"
        stays = f"is_object({parent})" if is_removal else f"{parent} is unknown or is_object({parent})"
        value_text = f"case when {stays} then {parent} else {{}} end"
        inside = f"(from [0] as `{_ITEM}` let {parent} = {base}.{identifier(first)} select value {value_text})[0]"
        value = _put(inside, tuple(rest), value=value, moves=moves)
    name = json.dumps(first)
    if moves:
        return _concatenate(f"object_concat(object_remove({base}, {name}), {{{name}: 0}})", value)
    call = cast("tree.Call", parse_body(f"object_put({base}, {name}, 0)"))
    return msgspec.structs.replace(call, arguments=(*call.arguments[:2], value))


def _concatenate(text: str, value: tree.Expression) -> tree.Expression:
    """Parse a call whose second argument is an object with one field, and replace the field's value."""
    call = cast("tree.Call", parse_body(text))
    changed_object = cast("tree.Object", call.arguments[1])
    pair = msgspec.structs.replace(changed_object.pairs[0], value=value)
    return msgspec.structs.replace(
        call, arguments=(call.arguments[0], msgspec.structs.replace(changed_object, pairs=(pair,)))
    )


def _insert_items(step: tree.ArrayInsert, array: str) -> tree.Expression:
    """Return the expression for an array with inserted items; unchanged if the position is outside of the array."""
    at = -1 if step.position is None else step.position
    old_items = f"if_missing_or_null({array}, [])"
    length = f"array_length({old_items})"
    place = str(at) if at >= 0 else f"{length} + 1 - {-at}"
    item = f"`{_ITEM}`"
    before, after = (
        f"(from {old_items} as {item} at `{_POSITION}` where `{_POSITION}` {test} {place} select value {item})"
        for test in ("<=", ">")
    )
    call = cast("tree.Call", parse_body(f"array_concat({before}, 0, {after})"))
    items = cast("tree.Call", parse_body("to_array(0)"))
    items = msgspec.structs.replace(items, arguments=(step.items,))
    whole = msgspec.structs.replace(call, arguments=(call.arguments[0], items, call.arguments[2]))
    return _case(parse_body(f"{place} between 0 and {length}"), whole, otherwise=parse_body(array))


def _delete_items(step: tree.ArrayDelete, array: str) -> tree.Expression:
    item = identifier(step.variable or _ITEM)
    query = _query(f"from {array} as {item} at `{_POSITION}` {_let(step.position)} where false select value {item}")
    where = step.where and _from_end(step.where, step.position, array=array)
    if where is not None:
        test = cast("tree.UnaryOperation", parse_body("not if_missing_or_null(0, false)"))
        known_condition = msgspec.structs.replace(
            cast("tree.Call", test.operand), arguments=(where, tree.Boolean(step.at, False))
        )
        query = msgspec.structs.replace(
            query,
            block=msgspec.structs.replace(query.block, where=msgspec.structs.replace(test, operand=known_condition)),
        )
    return _case(parse_body(f"is_array({array})"), query, otherwise=parse_body(array))


def _update_items(step: tree.ArrayUpdate, array: str, *, moves: bool) -> tree.Expression:
    item = identifier(step.variable)
    value: tree.Expression = parse_body(item)
    for inner in step.steps:
        new_item = _apply_step(item, inner, moves=moves, base=f"if_missing_or_null(to_object({item}), {{}})")
        chained = _select(f"from [] as {item} select value 0", source=tree.Array(step.at, (value,)), value=new_item)
        value = msgspec.structs.replace(cast("tree.PathExpression", parse_body("a[0]")), base=chained)
    if step.where is not None:
        value = _case(_from_end(step.where, step.position, array=array), value, otherwise=parse_body(item))
    query = _query(f"from {array} as {item} at `{_POSITION}` {_let(step.position)} select value 0")
    select = msgspec.structs.replace(query.block.select, value=value)
    query = msgspec.structs.replace(query, block=msgspec.structs.replace(query.block, select=select))
    return _case(parse_body(f"is_array({array})"), query, otherwise=parse_body(array))


def _let(position: str | None) -> str:
    """Return a LET clause that converts the 1-based position of an AT variable to a 0-based one; "" without AT."""
    return "" if position is None else f"let {identifier(position)} = `{_POSITION}` - 1"


def _from_end(where: tree.Expression, position: str | None, *, array: str) -> tree.Expression:
    """Rewrite a condition so that negative numbers compared with the position count from the array's end."""

    def from_end(node: tree.Expression) -> tree.Expression:
        if isinstance(node, tree.UnaryOperation) and node.operator == "-" and isinstance(node.operand, tree.Integer):
            return parse_body(f"array_length({array}) - {node.operand.value}")
        if isinstance(node, tree.Array):
            return msgspec.structs.replace(node, items=tuple(map(from_end, node.items)))
        return node

    if not isinstance(where, tree.OperationChain) or position is None:
        return where
    operands = where.operands
    if any(isinstance(each, tree.Variable) and each.name == position for each in operands):
        return msgspec.structs.replace(where, operands=tuple(map(from_end, operands)))
    inner = tuple(_from_end(each, position, array=array) for each in operands)
    return msgspec.structs.replace(where, operands=inner)


_ITEM_STEPS: Final[Mapping[type[tree.UpdateStep], Callable[[Any, str], tree.Expression]]] = {
    tree.ArrayInsert: _insert_items,
    tree.ArrayDelete: _delete_items,
}
