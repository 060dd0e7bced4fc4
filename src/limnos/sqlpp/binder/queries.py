"""Binds queries: the scope of each clause, what GROUP BY leaves visible, and the names in ORDER BY.

May import the tree, plans, scopes and the binder of expressions. Must not know rows.

After GROUP BY, or if an aggregate makes one group of all rows, only the keys, the variable of GROUP AS and outer
variables are visible. An expression that equals a key stands for it. An aggregate's argument sees what was visible
before. HAVING and ORDER BY may use aliases of SELECT, unless a variable has that name.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from limnos.sqlpp import plan, tree
from limnos.sqlpp.binder.expressions import ExpressionBinder, GroupBinding
from limnos.sqlpp.binder.scope import VariableScope
from limnos.sqlpp.errors import compilation
from limnos.sqlpp.functions import find, normalize_name
from limnos.sqlpp.plan.queries import Frame, FrameBound, SourceKind
from limnos.sqlpp.tree_walk import children, outline

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from limnos.sqlpp.errors import TextPosition

NamedSlots = tuple[tuple[str, int], ...]
SETS_MAX = 256
"""Most grouping sets of one GROUP BY."""


class BoundRows:
    """The variables that a block's FROM and LET have bound, and the scope with them."""

    def __init__(self, scope: VariableScope) -> None:
        self.scope = scope
        self.variables: list[tuple[str, int]] = []
        self.others: list[tuple[str, int]] = []

    def bind(self, more: Mapping[str, int], *, iterates: str | None = None) -> None:
        """Add variables. `iterates` names the one that FROM iterates over."""
        for name, slot in more.items():
            (self.variables if name == iterates else self.others).append((name, slot))
        self.scope = VariableScope(self.scope, more, fields_of=tuple(self.variables))

    @property
    def everything(self) -> NamedSlots:
        """All variables of the block."""
        return (*self.variables, *self.others)


class QueryBinder(ExpressionBinder):
    """Binds the queries of one statement."""

    def query(self, node: tree.QueryExpression, scope: VariableScope) -> plan.Query:
        """Bind a query: WITH, the arms of UNION, then ORDER BY and limits."""
        lets, inside = self.lets(node.lets, VariableScope(scope, fields_of=None))
        whole = bool(node.arms)
        distinct = node.block.select.distinct
        order_inside = not whole and not distinct
        block, order = self.block(node.block, inside, order=node.order if order_inside else ())
        arms: list[plan.Block | plan.Query] = [block]
        arms += [self.arm(arm, inside) for arm in node.arms]
        output = None
        if node.order and not order_inside:
            output = self.slots.new()
            order = self.order_of_output(node.order, inside, slot=output)
        limit, offset = self.maybe(node.limit, inside), self.maybe(node.offset, inside)
        return plan.Query(node.at, lets, tuple(arms), order, output, limit, offset)

    def arm(self, node: tree.SetArm, scope: VariableScope) -> plan.Block | plan.Query:
        """Bind an arm of a set operation. As in AsterixDB, only UNION ALL is supported."""
        if node.operator != "union" or not node.all:
            word = node.operator.upper() + ("" if node.all else " without ALL")
            raise compilation(f"Operation {word} is not supported: UNION ALL is", node.at)
        if isinstance(node.input, tree.QueryExpression):
            return self.query(node.input, scope)
        return self.block(node.input, scope, order=())[0]

    def order_of_output(
        self, items: tuple[tree.OrderItem, ...], scope: VariableScope, *, slot: int
    ) -> tuple[plan.Order, ...]:
        """Bind ORDER BY after UNION or DISTINCT, where an identifier is a field of the result."""
        return self.orders(items, VariableScope(scope, fields_of=(("$", slot),)))

    def lets(self, nodes: tuple[tree.Let, ...], scope: VariableScope) -> tuple[tuple[plan.Let, ...], VariableScope]:
        """Bind LET or WITH; each sees those before it."""
        lets = []
        for node in nodes:
            value = self.expression(node.value, scope.as_source())
            slot = self.slots.new()
            lets.append(plan.Let(node.at, slot, value))
            scope = scope.with_({node.name: slot})
        return tuple(lets), scope

    # Blocks.

    def block(
        self, node: tree.Block, scope: VariableScope, *, order: tuple[tree.OrderItem, ...]
    ) -> tuple[plan.Block, tuple[plan.Order, ...]]:
        """Bind one block, and the ORDER BY of its query if that sees the block's rows."""
        entry = self.group, self.windows
        self.group, self.windows = None, None
        try:
            return self._block(node, scope, order=order)
        finally:
            self.group, self.windows = entry

    def _block(
        self, node: tree.Block, scope: VariableScope, *, order: tuple[tree.OrderItem, ...]
    ) -> tuple[plan.Block, tuple[plan.Order, ...]]:
        rows = BoundRows(VariableScope(scope, fields_of=()))
        sources = tuple(source for term in node.terms for source in self.term(term, rows))
        lets = self.block_lets(node.lets, rows)
        where = self.maybe(node.where, rows.scope)
        group, group_lets, seen = self.grouping(node, rows, outer=scope, order=order)
        self.windows = []
        aliases = self.aliases(node.select)
        having = self.maybe(self.with_aliases(node.having, aliases, scope=seen), seen)
        select = self.select(node.select, rows, group=group, scope=seen)
        ordered = self.orders(tuple(self.order_item(item, aliases, scope=seen) for item in order), seen)
        windows, self.windows = tuple(self.windows), None
        return plan.Block(node.at, sources, lets, where, group, group_lets, having, windows, select), ordered

    def block_lets(self, nodes: tuple[tree.Let, ...], rows: BoundRows) -> tuple[plan.Let, ...]:
        """Bind LET of a block. Its variables are no rows, so a bare identifier is never a field of them."""
        lets = []
        for node in nodes:
            value = self.expression(node.value, rows.scope)
            slot = self.slots.new()
            lets.append(plan.Let(node.at, slot, value))
            rows.bind({node.name: slot})
        return tuple(lets)

    def term(self, node: tree.Term, rows: BoundRows) -> Iterator[plan.ForEach]:
        """Bind a term of FROM.

        It sees the terms before it. The source of a JOIN does not see the term that it is joined to, but the condition
        does.
        """
        before = rows.scope
        left: list[int] = []
        yield self.source_of(node.at, "scan", node=node, rows=rows, left=left, sees=before)
        for link in node.links:
            if isinstance(link, tree.Unnest):
                kind: SourceKind = "outer unnest" if link.outer else "unnest"
                yield self.source_of(link.at, kind, node=link, rows=rows, left=left, sees=rows.scope)
            else:
                yield self.source_of(link.at, link.kind, node=link, rows=rows, left=left, sees=before)

    def source_of(
        self,
        at: TextPosition,
        kind: SourceKind,
        *,
        node: tree.Term | tree.Join | tree.Unnest,
        rows: BoundRows,
        left: list[int],
        sees: VariableScope,
    ) -> plan.ForEach:
        """Bind a source of rows and its variables."""
        value = self.expression(node.source, sees.as_source())
        slot = self.slots.new()
        named = {node.variable: slot}
        if node.position is not None:
            named[node.position] = self.slots.new()
        if any(name in dict(rows.everything) for name in named) or len(named) < 1 + (node.position is not None):
            raise compilation(f"Duplicate alias definitions: {node.variable}", at)
        rows.bind(named, iterates=node.variable)
        condition = self.maybe(node.condition, rows.scope) if isinstance(node, tree.Join) else None
        position = named.get(node.position) if node.position is not None else None
        others = tuple(left)
        left.extend(named.values())
        return plan.ForEach(at, kind, slot, position, value, condition, others)

    # Groups.

    def grouping(
        self, node: tree.Block, rows: BoundRows, *, outer: VariableScope, order: tuple[tree.OrderItem, ...]
    ) -> tuple[plan.Group | None, tuple[plan.Let, ...], VariableScope]:
        """Bind GROUP BY with its LET, and return the scope after it. Sets `group` for the aggregates."""
        if node.group is None:
            if not self.aggregates(node, order):
                return None, (), rows.scope
            self.group = GroupBinding([], rows.scope)
            return plan.Group(node.at, (), ((),), None, ()), (), VariableScope(outer, fields_of=())
        keys, named = self.keys(node.group, rows)
        sets = self.sets(node.group, [key[0] for key in keys])
        after = dict(named)
        slot: int | None = None
        members: NamedSlots = ()
        if node.group.variable is not None:
            slot = self.slots.new()
            members = self.members(node.group.variable, rows)
            after[node.group.variable.name] = slot
        self.group = GroupBinding(keys, rows.scope)
        seen = VariableScope(outer, after, fields_of=())
        bound = tuple((key_slot, value) for (_, key_slot, _), value in zip(keys, self.key_values, strict=True))
        group = plan.Group(node.group.at, bound, sets, slot, members)
        lets = []
        for let in node.group_lets:
            value = self.expression(let.value, seen)
            let_slot = self.slots.new()
            lets.append(plan.Let(let.at, let_slot, value))
            seen = seen.with_({let.name: let_slot})
        return group, tuple(lets), seen

    def keys(self, node: tree.GroupBy, rows: BoundRows) -> tuple[list[tuple[list[object], int, str]], dict[str, int]]:
        """Bind the keys, each once even if several sets name it, and return their variables."""
        keys: list[tuple[list[object], int, str]] = []
        named: dict[str, int] = {}
        self.key_values: list[plan.Expression] = []
        for key in _group_keys(node.elements):
            shape = outline(key.value)
            slot = next((known for other, known, _ in keys if other == shape), None)
            if slot is None:
                slot = self.slots.new()
                keys.append((shape, slot, key.variable or "$"))
                self.key_values.append(self.expression(key.value, rows.scope))
            if key.variable is not None and named.setdefault(key.variable, slot) != slot:
                raise compilation(f"Duplicate alias definitions: {key.variable}", key.at)
        return keys, named

    def sets(self, node: tree.GroupBy, shapes: list[list[object]]) -> tuple[tuple[int, ...], ...]:
        """The grouping sets, as numbers of keys: each element's sets combined with those of every other element."""
        results: list[tuple[int, ...]] = [()]
        for element in node.elements:
            one = _sets_of(element, shapes)
            results = [tuple(dict.fromkeys((*left, *right))) for left in results for right in one]
            if len(results) > SETS_MAX:
                raise compilation(f"GROUP BY comes to more than {SETS_MAX} grouping sets", element.at)
        return tuple(results)

    def members(self, node: tree.GroupVariable, rows: BoundRows) -> NamedSlots:
        """The fields of GROUP AS's items: the variables that it names, or all of the block."""
        bound = dict(rows.everything)
        if node.fields is None:
            return tuple(bound.items())
        missing = next((field for field in node.fields if field.variable not in bound), None)
        if missing is not None:
            rows.scope.implied(missing.variable, missing.at)
            raise compilation(f"GROUP AS names {missing.variable}, which is no variable here", missing.at)
        return tuple((field.name, bound[field.variable]) for field in node.fields)

    def aggregates(self, node: tree.Block, order: tuple[tree.OrderItem, ...]) -> bool:
        """Whether SELECT, HAVING or ORDER BY has an aggregate of this block, which makes all rows one group."""
        parts: list[tree.SyntaxNode] = [node.select, *order]
        if node.having is not None:
            parts.append(node.having)
        return any(self.has_aggregate(part) for part in parts)

    def has_aggregate(self, node: tree.SyntaxNode) -> bool:
        """Whether a node contains an aggregate, outside of subqueries and windows."""
        waiting = [node]
        while waiting:
            one = waiting.pop()
            if isinstance(one, tree.QueryExpression):
                continue
            if isinstance(one, tree.Call) and one.window is None and self.is_aggregate(one):
                return True
            waiting.extend(children(one))
        return False

    def is_aggregate(self, node: tree.Call) -> bool:
        """Whether a call is an aggregate. A user-defined function of that name takes precedence."""
        entry = find(node.function.last) if len(node.function.parts) == 1 else None
        if entry is None or entry.kind != "aggregate":
            return False
        return node.star or self.written(node.function, len(node.arguments)) is None

    # SELECT and ORDER BY.

    def select(
        self, node: tree.Select, rows: BoundRows, *, group: plan.Group | None, scope: VariableScope
    ) -> plan.Select:
        """Bind SELECT. Values without a name are numbered: `$1`, `$2`."""
        if node.value is not None:
            return plan.Select(node.at, node.distinct, self.expression(node.value, scope), (), ())
        projections: list[plan.Projection] = []
        unnamed = 0
        for projection in node.projections:
            if projection.value is None:
                projections += self.star(projection.at, rows, group=group, scope=scope)
                continue
            value = self.expression(projection.value, scope)
            name = None if projection.every else projection.name
            if name is None and not projection.every:
                unnamed += 1
                name = f"${unnamed}"
            projections.append(plan.Projection(projection.at, name, value))
        names = [projection.name for projection in projections if projection.name is not None]
        double = next((name for at, name in enumerate(names) if name in names[:at]), None)
        if double is not None:
            raise compilation(f"Duplicate field name {double!r} in SELECT", node.at)
        return plan.Select(node.at, node.distinct, None, tuple(projections), node.exclude)

    def star(
        self, at: TextPosition, rows: BoundRows, *, group: plan.Group | None, scope: VariableScope
    ) -> Iterator[plan.Projection]:
        """Bind `*`: a field for each variable of FROM, or after GROUP BY for each visible one."""
        named = rows.variables if group is None else sorted(scope.variables.items(), key=lambda one: one[1])
        if not named:
            raise compilation("SELECT * needs a FROM", at)
        for name, slot in named:
            yield plan.Projection(at, name, plan.Local(at, slot, name))

    def aliases(self, node: tree.Select) -> dict[str, tree.Expression]:
        """The expressions that SELECT names."""
        return {one.name: one.value for one in node.projections if one.name and one.value is not None and not one.every}

    def order_item(
        self, item: tree.OrderItem, aliases: Mapping[str, tree.Expression], *, scope: VariableScope
    ) -> tree.OrderItem:
        """An item of ORDER BY with aliases replaced."""
        value = self.with_aliases(item.value, aliases, scope=scope)
        return tree.OrderItem(item.at, value or item.value, item.descending, item.nulls)

    def with_aliases(
        self, node: tree.Expression | None, aliases: Mapping[str, tree.Expression], *, scope: VariableScope
    ) -> tree.Expression | None:
        """An expression with SELECT's aliases replaced by their expressions."""
        if node is None or not aliases:
            return node
        return replace_identifiers(node, {name: value for name, value in aliases.items() if scope.find(name) is None})

    def orders(self, items: tuple[tree.OrderItem, ...], scope: VariableScope) -> tuple[plan.Order, ...]:
        """Bind ORDER BY."""
        return tuple(
            plan.Order(
                item.at,
                self.expression(item.value, scope),
                item.descending,
                None if item.nulls is None else item.nulls == "first",
            )
            for item in items
        )

    # Windows.

    def window(self, node: tree.Call, scope: VariableScope) -> plan.Expression:
        """Bind a call with OVER as a variable that is computed before SELECT."""
        window = node.window
        count = 1 if node.star else len(node.arguments)
        entry = find(node.function.last) if len(node.function.parts) == 1 else None
        if entry is None or window is None or entry.kind == "scalar" or not (node.star or entry.takes(count)):
            raise self.no_function(node, count)
        if self.windows is None:
            raise compilation(
                f"Function {node.function.last} with OVER can stand in SELECT and ORDER BY alone", node.at
            )
        if window.variable is not None:
            raise compilation("A variable of a window is not supported", window.at)
        collected, self.windows = self.windows, None
        try:
            call = plan.WindowCall(
                node.at,
                self.slots.new(),
                entry,
                self.all(node.arguments, scope),
                node.distinct,
                self.maybe(node.filter, scope),
                self.all(window.partition, scope),
                self.orders(window.order, scope),
                self.frame(window.frame, scope),
                window.from_end == "last",
                window.nulls == "ignore",
            )
        finally:
            self.windows = collected
        self.windows.append(call)
        return plan.Local(node.at, call.slot, normalize_name(node.function.last))

    def frame(self, node: tree.Frame | None, scope: VariableScope) -> Frame | None:
        """Bind a window's frame."""
        if node is None:
            return None
        start = FrameBound(node.start.at, node.start.side, self.maybe(node.start.value, scope))
        end = start if node.end is None else FrameBound(node.end.at, node.end.side, self.maybe(node.end.value, scope))
        if node.end is None:
            end = FrameBound(node.at, "current row", None)
        return Frame(node.at, node.mode, start, end, node.exclude or "no others")


def _group_keys(elements: tuple[tree.Grouping, ...]) -> Iterator[tree.GroupKey]:
    for element in elements:
        match element:
            case tree.GroupSet(keys=keys):
                yield from keys
            case tree.Rollup(sets=sets):
                yield from _group_keys(sets)
            case tree.GroupingSets(elements=inner):
                yield from _group_keys(inner)


def _sets_of(element: tree.Grouping, shapes: list[list[object]]) -> list[tuple[int, ...]]:
    """The sets of one grouping element, as numbers of keys."""
    if isinstance(element, tree.GroupSet):
        return [tuple(shapes.index(outline(key.value)) for key in element.keys)]
    if isinstance(element, tree.GroupingSets):
        return [one for inner in element.elements for one in _sets_of(inner, shapes)]
    parts = [_sets_of(one, shapes)[0] for one in element.sets]
    if not element.cube:
        return [_flat(parts[:count]) for count in range(len(parts), -1, -1)]
    if len(parts) > SETS_MAX.bit_length():
        raise compilation(f"GROUP BY comes to more than {SETS_MAX} grouping sets", element.at)
    every = range((1 << len(parts)) - 1, -1, -1)
    return [_flat([part for at, part in enumerate(parts) if mask >> (len(parts) - 1 - at) & 1]) for mask in every]


def _flat(parts: list[tuple[int, ...]]) -> tuple[int, ...]:
    return tuple(dict.fromkeys(number for part in parts for number in part))


def replace_identifiers(node: tree.Expression, aliases: Mapping[str, tree.Expression]) -> tree.Expression:
    """Return a tree whose identifiers are replaced by the expressions of `aliases`.

    Subqueries have a scope of their own and stay unchanged. SOME and EVERY are rewritten too, with the uses of the
    variables that they bind.
    """
    if isinstance(node, tree.Variable):
        return aliases.get(node.name, node)
    return _rebuild_node(node, aliases) if aliases and not isinstance(node, tree.QueryExpression) else node  # type: ignore[return-value]


def _rebuild_node(node: tree.SyntaxNode, aliases: Mapping[str, tree.Expression]) -> tree.SyntaxNode:
    if isinstance(node, tree.Variable):
        return aliases.get(node.name, node)
    if isinstance(node, tree.QueryExpression):
        return node
    values = []
    for name in node.__struct_fields__:
        value = getattr(node, name)
        if isinstance(value, tree.SyntaxNode):
            value = _rebuild_node(value, aliases)
        elif isinstance(value, tuple) and any(isinstance(item, tree.SyntaxNode) for item in value):
            value = tuple(_rebuild_node(item, aliases) if isinstance(item, tree.SyntaxNode) else item for item in value)
        values.append(value)
    return type(node)(*values)
