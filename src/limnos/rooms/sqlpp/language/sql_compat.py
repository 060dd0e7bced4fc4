# SPDX-License-Identifier: Apache-2.0
"""Rewrites queries of requests with `sql-compat`, so that their SQL++ semantics are those of standard SQL.

Must not know names of objects. As in AsterixDB, the value of a scalar subquery is its only value, a subquery after IN
is a list of values, `SELECT *` returns the fields of its only variable, UNION ALL matches fields by position, and the
side of an outer join without a match is NULL. Unsupported subqueries raise SqlppError.
"""

from __future__ import annotations

from typing import Final, TypeVar, cast

import msgspec

from limnos.rooms.sqlpp.language import tree
from limnos.rooms.sqlpp.language.errors import SqlppError, TextPosition, too_deep
from limnos.rooms.sqlpp.language.parser import parse_body
from limnos.rooms.sqlpp.language.tree.base import SyntaxNode

AMBIGUOUS_STAR, COERCION, UNION = 1168, 1169, 1171
COMPARISONS: Final = frozenset(
    {"=", "==", "!=", "<>", "<", "<=", ">", ">=", "is distinct from", "is not distinct from"}
)
_PLAIN: Final = frozenset(
    {
        (tree.Term, "source"),
        (tree.Join, "source"),
        (tree.Unnest, "source"),
        (tree.QuantifierBinding, "source"),
        (tree.Call, "arguments"),
        (tree.Array, "items"),
        (tree.Bag, "items"),
        (tree.ObjectPair, "value"),
        (tree.Let, "value"),
        (tree.SetArm, "input"),
        (tree.PathExpression, "base"),
    }
)
"""The positions in which a subquery remains a collection."""
_ROW: Final = "$row"
_ROWS: Final = "$rows"
N = TypeVar("N", bound=SyntaxNode)


def as_sql(body: tree.Expression) -> tree.Expression:
    """Rewrite a query so that its SQL++ semantics are those of standard SQL. Raises SqlppError for an unsupported
    query.
    """
    try:
        return cast("tree.Expression", _rewritten(body))
    except RecursionError:
        raise too_deep() from None


def _rewritten(node: SyntaxNode) -> SyntaxNode:
    """Rewrite a node and its descendants. A query remains a collection, as in FROM or EXISTS."""
    if isinstance(node, tree.QueryExpression):
        return _query(node)
    if isinstance(node, tree.OperationChain) and len(node.operators) == 1:
        operator = node.operators[0]
        if operator in ("in", "not in"):
            return _membership(node)
        if operator in COMPARISONS:
            return _comparison(node)
    if isinstance(node, tree.UnaryOperation) and node.operator == "exists":
        return msgspec.structs.replace(node, operand=_rewritten(node.operand))
    if isinstance(node, tree.Block):
        node = _nulls_for_missing_rows(node)
    new_fields = {name: _field(node, name) for name in node.__struct_fields__}
    return msgspec.structs.replace(node, **new_fields)


def _field(node: SyntaxNode, name: str) -> object:
    value = getattr(node, name)
    is_plain = (type(node), name) in _PLAIN
    if isinstance(value, SyntaxNode):
        return _rewritten(value) if is_plain else _value(value)
    if isinstance(value, tuple) and any(isinstance(item, SyntaxNode) for item in value):
        change = _rewritten if is_plain else _value
        return tuple(change(item) if isinstance(item, SyntaxNode) else item for item in value)
    return value


def _value(node: SyntaxNode) -> SyntaxNode:
    """Rewrite a node that is used as a scalar value: a subquery becomes its one value."""
    if isinstance(node, tree.QueryExpression) and _is_select(node):
        return _single(_values(node, count=None))
    return _rewritten(node)


# Subqueries.


def _blocks(query: tree.QueryExpression) -> list[tree.Block]:
    """Return the blocks of a query. Raises SqlppError if an operand of UNION ALL is a query with ORDER BY or LIMIT."""
    blocks = [query.block]
    for arm in query.arms:
        if not isinstance(arm.input, tree.Block):
            raise SqlppError(COERCION, "Unable to do subquery coercion. ", arm.input.at)
        blocks.append(arm.input)
    return blocks


def _is_select(query: tree.QueryExpression) -> bool:
    """Return whether a query has SELECT, not SELECT VALUE. Raises SqlppError if its blocks have both."""
    kinds = {block.select.value is None for block in _blocks(query)}
    if len(kinds) > 1:
        raise _coercion_error(COERCION, "Both SELECT and SELECT VALUE are present", at=query.arms[0].at)
    return True in kinds


def _values(query: tree.QueryExpression, *, count: int | None) -> tree.QueryExpression:
    """Rewrite a subquery to return the value of its only field, or with `count` an array of its `count` fields.

    Raises SqlppError for another number of fields.
    """
    for block in _blocks(query):
        if any(one.value is None or one.every for one in block.select.projections):
            raise _coercion_error(COERCION, "Unsupported projection kind", at=block.select.at)
    select = query.block.select
    if len(select.projections) != (count or 1):
        raise _coercion_error(COERCION, "Subquery returns more than one field", at=select.at)
    names = [one.name or f"${number}" for number, one in enumerate(select.projections, start=1)]
    query = _with_names(query, names)
    row = tree.Variable(select.at, _ROW)
    fields = [tree.PathExpression(select.at, row, (tree.FieldStep(select.at, name),)) for name in names]
    value = fields[0] if count is None else tree.Array(select.at, tuple(fields))
    return _from(cast("tree.QueryExpression", _rewritten(query)), _ROW, value=value)


def _from(source: tree.Expression, variable: str, *, value: tree.Expression) -> tree.QueryExpression:
    """Build the query `from source as variable select value …`."""
    query = cast("tree.QueryExpression", parse_body(f"from [] as `{variable}` select value 0"))
    term = msgspec.structs.replace(query.block.terms[0], source=source)
    select = msgspec.structs.replace(query.block.select, value=value)
    return msgspec.structs.replace(query, block=msgspec.structs.replace(query.block, terms=(term,), select=select))


def _single(query: tree.QueryExpression) -> tree.Expression:
    """Build the expression for a query's only value; MISSING if it has none or several."""
    rows = f"`{_ROWS}`"
    value = parse_body(f"case when array_length({rows}) = 1 then {rows}[0] else missing end")
    path = cast("tree.PathExpression", parse_body("x[0]"))
    return msgspec.structs.replace(path, base=_from(tree.Array(query.at, (query,)), _ROWS, value=value))


def _with_names(query: tree.QueryExpression, names: list[str]) -> tree.QueryExpression:
    """Rename the fields of all blocks of a query to these names, by position.

    Raises SqlppError if a block has another number of fields.
    """

    def with_names(block: tree.Block) -> tree.Block:
        pairs = zip(block.select.projections, names, strict=True)
        projections = tuple(msgspec.structs.replace(one, name=name) for one, name in pairs)
        return msgspec.structs.replace(block, select=msgspec.structs.replace(block.select, projections=projections))

    if any(len(block.select.projections) != len(names) for block in _blocks(query)):
        raise _coercion_error(UNION, "Unequal number of input fields", at=query.arms[0].at)
    arms = tuple(msgspec.structs.replace(arm, input=with_names(cast("tree.Block", arm.input))) for arm in query.arms)
    return msgspec.structs.replace(query, block=with_names(query.block), arms=arms)


# Operators.


def _membership(node: tree.OperationChain) -> SyntaxNode:
    """Rewrite IN: a subquery on the right is a list of values, and another single value is a list of one."""
    left, right = node.operands
    if isinstance(right, tree.QueryExpression):
        right = _rows_like(left, right) if _is_select(right) else cast("tree.Expression", _rewritten(right))
    elif not isinstance(right, (tree.Array, tree.Bag)):
        wrapped = cast("tree.Call", parse_body("to_array(0)"))
        right = msgspec.structs.replace(wrapped, arguments=(cast("tree.Expression", _rewritten(right)),))
    else:
        right = cast("tree.Expression", _rewritten(right))
    return msgspec.structs.replace(node, operands=(cast("tree.Expression", _value(left)), right))


def _comparison(node: tree.OperationChain) -> SyntaxNode:
    """Rewrite a comparison: a subquery compared with a row `(a, b)` becomes a row with the same count of fields."""
    left, right = node.operands
    sides = [_side(left, beside=right), _side(right, beside=left)]
    return msgspec.structs.replace(node, operands=tuple(sides))


def _side(node: tree.Expression, *, beside: tree.Expression) -> tree.Expression:
    if not isinstance(node, tree.QueryExpression) or not _is_select(node):
        return cast("tree.Expression", _rewritten(node))
    return _single(_rows_like(beside, node))


def _rows_like(row: tree.Expression, query: tree.QueryExpression) -> tree.QueryExpression:
    """Rewrite a subquery so that its results have the form of another operand: values, arrays or multisets."""
    rows = _values(query, count=_row_length(row))
    if not isinstance(row, tree.Bag):
        return rows
    select = rows.block.select
    bag = tree.Bag(select.at, cast("tree.Array", select.value).items)
    block = msgspec.structs.replace(rows.block, select=msgspec.structs.replace(select, value=bag))
    return msgspec.structs.replace(rows, block=block)


def _row_length(node: tree.Expression) -> int | None:
    return len(node.items) if isinstance(node, (tree.Array, tree.Bag)) else None


# Blocks.


def _query(query: tree.QueryExpression) -> tree.QueryExpression:
    """Rewrite a query: UNION ALL matches fields by position, and `SELECT *` returns fields."""
    if query.arms and all(isinstance(arm.input, tree.Block) for arm in query.arms):
        query = _union(query)
    new_fields = {name: _field(query, name) for name in query.__struct_fields__ if name not in ("block", "arms")}
    block = cast("tree.Block", _rewritten(_with_fields(query.block)))
    arms = []
    for arm in query.arms:
        source = _with_fields(arm.input) if isinstance(arm.input, tree.Block) else arm.input
        arms.append(msgspec.structs.replace(arm, input=_rewritten(source)))
    return msgspec.structs.replace(query, **{**new_fields, "block": block, "arms": tuple(arms)})


def _union(query: tree.QueryExpression) -> tree.QueryExpression:
    blocks = _blocks(query)
    if len({block.select.value is None for block in blocks}) > 1:
        raise _coercion_error(UNION, "Both SELECT and SELECT VALUE are present", at=query.arms[0].at)
    if query.block.select.value is not None:
        return query
    for block in blocks:
        if any(one.value is None or one.every for one in block.select.projections):
            raise _coercion_error(UNION, "Unsupported projection kind", at=block.select.at)
    names = [one.name or f"${number}" for number, one in enumerate(query.block.select.projections, start=1)]
    return _with_names(query, names)


def _with_fields(block: tree.Block) -> tree.Block:
    """Rewrite `SELECT *` to the fields of the block's one variable. Raises SqlppError if there are several."""
    projections = block.select.projections
    if len(projections) != 1 or projections[0].value is not None:
        return block
    if len(block.terms) != 1 or block.terms[0].links or block.lets or block.group is not None:
        raise SqlppError(AMBIGUOUS_STAR, "Ambiguous projection in SELECT clause", block.select.at)
    variable = tree.Variable(projections[0].at, block.terms[0].variable)
    fields = msgspec.structs.replace(projections[0], value=variable, every=True)
    return msgspec.structs.replace(block, select=msgspec.structs.replace(block.select, projections=(fields,)))


def _nulls_for_missing_rows(block: tree.Block) -> tree.Block:
    """Rewrite a block so that a variable of an outer join or outer unnest is NULL, not MISSING, in rows without a
    match.
    """
    lets: list[tree.Let] = []
    terms = []
    for term in block.terms:
        names: dict[str, str] = {}
        links: list[tree.Join | tree.Unnest] = []
        rights = [at for at, link in enumerate(term.links) if isinstance(link, tree.Join) and link.kind == "right"]
        left_of_right = rights[-1] if rights else -1
        if rights:
            lets.append(_outer_let(term.variable, names, at=term.at))
        for at, each in enumerate(term.links):
            link = each
            if isinstance(link, tree.Unnest):  # the source of a join does not see the variables before it
                link = msgspec.structs.replace(link, source=_rename_variables(link.source, names))
            is_outer = link.outer if isinstance(link, tree.Unnest) else link.kind == "left"
            if is_outer or at < left_of_right:
                position = link.position
                if isinstance(link, tree.Unnest) and link.outer:
                    position = f"$outer {position}" if position else f"$at {link.variable}"
                    lets.append(_outer_let(link.variable, names, at=link.at, test=position))
                    if link.position:
                        lets.append(_outer_let(link.position, names, at=link.at))
                else:
                    lets.append(_outer_let(link.variable, names, at=link.at))
                link = msgspec.structs.replace(link, variable=names[link.variable], position=position)
            if isinstance(link, tree.Join) and link.condition is not None:
                link = msgspec.structs.replace(link, condition=_rename_variables(link.condition, names))
            links.append(link)
        first = names.get(term.variable, term.variable)
        terms.append(msgspec.structs.replace(term, variable=first, links=tuple(links)))
    return msgspec.structs.replace(block, terms=tuple(terms), lets=(*lets, *block.lets)) if lets else block


def _outer_let(variable: str, names: dict[str, str], *, at: TextPosition, test: str | None = None) -> tree.Let:
    """Build the LET that makes a variable NULL if `test`, by default the renamed variable, is MISSING.

    Adds the new name of the variable to `names`.
    """
    names[variable] = f"$outer {variable}"
    row = names[variable]
    return tree.Let(at, variable, parse_body(f"case when `{test or row}` is missing then null else `{row}` end"))


def _rename_variables(node: N, names: dict[str, str]) -> N:
    """Rename the variables in a node."""
    if isinstance(node, tree.Variable):
        return cast("N", msgspec.structs.replace(node, name=names.get(node.name, node.name)))

    def change(value: object) -> object:
        if isinstance(value, SyntaxNode):
            return _rename_variables(value, names)
        return tuple(map(change, value)) if isinstance(value, tuple) else value

    if not names or isinstance(node, TextPosition):
        return node
    new_fields = {name: change(getattr(node, name)) for name in node.__struct_fields__ if name != "at"}
    return msgspec.structs.replace(node, **new_fields)


def _coercion_error(number: int, why: str, *, at: TextPosition) -> SqlppError:
    words = "Unable to do subquery coercion" if number == COERCION else "Unable to process UNION clause"
    return SqlppError(number, f"{words}. {why}", at)
