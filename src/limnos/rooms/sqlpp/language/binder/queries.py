# SPDX-License-Identifier: Apache-2.0
"""Binds queries: the scope of each clause, the visible names after GROUP BY, and the names in ORDER BY.

Must not know rows.

After GROUP BY, or if an aggregate implies one group of all rows, only the keys, the variable of GROUP AS and outer
variables are visible. An expression that equals a key is a reference to the key, in nested queries, too. An aggregate's
argument uses the scope before the grouping. ORDER BY may use aliases of SELECT, unless a variable has that name; HAVING
may not. Window functions are evaluated before the LET, WHERE, SELECT or ORDER BY that uses them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from itertools import count

from limnos.rooms.sqlpp.language import plan, tree
from limnos.rooms.sqlpp.language.binder.group_bindings import key_outline
from limnos.rooms.sqlpp.language.binder.grouping_sets import group_keys, sets_of
from limnos.rooms.sqlpp.language.binder.scope import GroupBinding, VariableScope
from limnos.rooms.sqlpp.language.binder.sources import require_collection
from limnos.rooms.sqlpp.language.binder.windows import WindowBinder
from limnos.rooms.sqlpp.language.errors import SqlppError, TextPosition, compilation
from limnos.rooms.sqlpp.language.functions import normalize_name
from limnos.rooms.sqlpp.language.plan.queries import SourceKind
from limnos.rooms.sqlpp.language.tree_walk import children

DUPLICATE_FIELD, ILLEGAL_IDENTIFIER = 13, 1103
StepsBeforeSelect = tuple[plan.Let | plan.WindowCall, ...]


class BoundRows:
    """The variables that FROM and LET of a block have bound so far, and the scope with them."""

    def __init__(self, scope: VariableScope) -> None:
        self.scope = scope
        self.variables: list[tuple[str, int]] = []
        self.everything: list[tuple[str, int]] = []
        """All variables of the block, in the order of their definitions."""
        self.grouped: list[tuple[str | None, int]] = []
        """The fields of `*` after GROUP BY: the keys, the group, and the variables of its LET."""

    def bind(self, more: Mapping[str, int], *, iterates: str | None = None) -> None:
        """Add variables. `iterates` is the name of the variable that FROM iterates over, if one of them is."""
        for name, slot in more.items():
            self.everything.append((name, slot))
            if name == iterates:
                self.variables.append((name, slot))
        self.scope = VariableScope(self.scope, more, fields_of=tuple(self.variables))


class QueryBinder(WindowBinder):
    """Binds the queries of one statement."""

    def query(self, node: tree.QueryExpression, scope: VariableScope) -> plan.Query:
        """Bind a query: WITH, the arms of UNION, then ORDER BY and limits."""
        _check_aliases(node.block.terms)  # before WITH, whose names may be unknown
        lets, inside = self.lets(node.lets, VariableScope(scope, fields_of=None))
        order_inside = not node.arms
        block, order = self.block(node.block, inside, order=node.order if order_inside else ())
        arms: list[plan.Block | plan.Query] = [block]
        arms += [self.arm(arm, inside) for arm in node.arms]
        output = None
        if node.order and not order_inside:
            output = self.slots.new()
            order = self.order_of_output(node.order, inside, slot=output)
        limit, offset = self.maybe(node.limit, inside), self.maybe(node.offset, inside)
        return plan.Query(
            at=node.at, lets=lets, arms=tuple(arms), order=order, output=output, limit=limit, offset=offset
        )

    def arm(self, node: tree.SetArm, scope: VariableScope) -> plan.Block | plan.Query:
        """Bind an arm of a set operation. Raises SqlppError for other operations than UNION ALL, as AsterixDB."""
        if node.operator != "union" or not node.all:
            word = node.operator.upper() + (" with set semantics" if node.operator == "union" else "")
            raise compilation(f"Operation {word} is not supported.", node.at)
        if isinstance(node.input, tree.QueryExpression):
            return self.query(node.input, scope)
        _check_aliases(node.input.terms)
        return self.block(node.input, scope, order=())[0]

    def order_of_output(
        self, items: tuple[tree.OrderItem, ...], scope: VariableScope, *, slot: int
    ) -> tuple[plan.Order, ...]:
        """Bind ORDER BY after UNION ALL, where an identifier is a field of the result in `slot`."""
        return self.orders(items, VariableScope(scope, fields_of=(("$", slot),)))

    def lets(self, nodes: tuple[tree.Let, ...], scope: VariableScope) -> tuple[tuple[plan.Let, ...], VariableScope]:
        """Bind LET or WITH. Each variable may use the ones before it, and hides an earlier one of the same name."""
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
        """Bind one block, and the ORDER BY of its query if that uses the block's rows."""
        outer = self.group, self.windows, self.rows
        self.group, self.windows, self.rows = None, None, None
        self.depth += 1
        try:
            return self._block(node, scope, order=order)
        finally:
            self.depth -= 1
            self.group, self.windows, self.rows = outer

    def _block(
        self, node: tree.Block, scope: VariableScope, *, order: tuple[tree.OrderItem, ...]
    ) -> tuple[plan.Block, tuple[plan.Order, ...]]:
        names = self.names_of(node.select)
        rows = BoundRows(VariableScope(scope, fields_of=()))
        sources = tuple(source for term in node.terms for source in self.term(term, rows))
        self.rows = rows.everything
        lets = self.block_lets(node.lets, rows)
        self.windows = []
        where = self.maybe(node.where, rows.scope)
        lets, self.windows = (*lets, *self.windows), None
        group, group_lets, group_scope = self.grouping(node, rows, outer=scope, order=order)
        shared: list[plan.Let] = []
        aliased_scope = VariableScope(
            group_scope, fields_of=group_scope.fields_of, aliases=self.aliases(node.select, group_scope, shared=shared)
        )
        having = self.maybe(node.having, group_scope)
        self.windows = []
        select = self.select(node.select, rows, names=names, group=group, scope=group_scope)
        ordered = self.orders(order, aliased_scope)
        windows, self.windows = tuple(self.windows), None
        steps = (*group_lets, *shared)
        return plan.Block(
            at=node.at,
            sources=sources,
            lets=lets,
            where=where,
            group=group,
            group_lets=steps,
            having=having,
            windows=windows,
            select=select,
        ), ordered

    def block_lets(self, nodes: tuple[tree.Let, ...], rows: BoundRows) -> StepsBeforeSelect:
        """Bind LET of a block. FROM does not iterate over its variables, so a bare identifier is never a field of
        them.
        """
        lets: list[plan.Let | plan.WindowCall] = []
        for node in nodes:
            steps = self.let(node, rows.scope)
            lets += steps
            rows.bind({node.name: steps[-1].slot})
        return tuple(lets)

    def let(self, node: tree.Let, scope: VariableScope) -> StepsBeforeSelect:
        """Bind one variable of LET, with the window functions that its value uses before it."""
        self.windows = []
        value = self.expression(node.value, scope)
        windows, self.windows = self.windows, None
        return (*windows, plan.Let(node.at, self.slots.new(), value))

    def term(self, node: tree.Term, rows: BoundRows) -> Iterator[plan.ForEach]:
        """Bind a term of FROM.

        It may use the terms before it. The source of a JOIN may not use the term that it is joined to, but the
        condition may. AT counts from 1 in the first term and in a JOIN. It counts from 0 in a later term and in UNNEST,
        which are evaluated for each row, and over the numbers of range() (docs/reference/sqlpp-decisions.md).
        """
        former_scope = rows.scope
        left: list[int] = []
        first = 0 if rows.everything or _is_range(node.source) else 1
        yield self.source_of(node.at, "scan", node=node, rows=rows, left=left, sees=former_scope, first=first)
        for link in node.links:
            if isinstance(link, tree.Unnest):
                kind: SourceKind = "outer unnest" if link.outer else "unnest"
                yield self.source_of(link.at, kind, node=link, rows=rows, left=left, sees=rows.scope, first=0)
            else:
                yield self.source_of(link.at, link.kind, node=link, rows=rows, left=left, sees=former_scope, first=1)

    def source_of(
        self,
        at: TextPosition,
        kind: SourceKind,
        *,
        node: tree.Term | tree.Join | tree.Unnest,
        rows: BoundRows,
        left: list[int],
        sees: VariableScope,
        first: int,
    ) -> plan.ForEach:
        """Bind a source of FROM in scope `sees`; AT counts from `first`. Raises SqlppError for a duplicate alias."""
        value = self.expression(node.source, sees.as_source())
        require_collection(value, self.object_slots)
        slot = self.slots.new()
        if isinstance(value, plan.Scan):
            self.object_slots.add(slot)
        slots_by_name = {node.variable: slot}
        if node.position is not None:
            slots_by_name[node.position] = self.slots.new()
        if any(name in dict(rows.everything) for name in slots_by_name) or len(slots_by_name) < 1 + (
            node.position is not None
        ):
            raise compilation(f"Duplicate alias definitions: {node.variable}", at)
        rows.bind(slots_by_name, iterates=node.variable)
        condition = self.maybe(node.condition, rows.scope) if isinstance(node, tree.Join) else None
        position = slots_by_name.get(node.position) if node.position is not None else None
        others = tuple(left)
        left.extend(slots_by_name.values())
        return plan.ForEach(
            at=at,
            kind=kind,
            slot=slot,
            position=position,
            source=value,
            condition=condition,
            others=others,
            first=first,
        )

    # Groups.

    def grouping(
        self, node: tree.Block, rows: BoundRows, *, outer: VariableScope, order: tuple[tree.OrderItem, ...]
    ) -> tuple[plan.Group | None, StepsBeforeSelect, VariableScope]:
        """Bind GROUP BY with its LET, and return the scope after it. Sets `self.group`, which binds the aggregates."""
        if node.group is None:
            if not self.aggregates(node, order):
                return None, (), rows.scope
            self.group = GroupBinding([], rows.scope)
            return (
                plan.Group(at=node.at, keys=(), sets=((),), slot=None, members=()),
                (),
                VariableScope(outer, fields_of=()),
            )
        keys, slots_by_name = self.keys(node.group, rows)
        sets = self.sets(node.group, [key[0] for key in keys])
        after = dict(slots_by_name)
        slot: int | None = None
        members: tuple[tuple[str, plan.Expression], ...] = ()
        every = any(projection.value is None for projection in node.select.projections)
        if node.group.variable is not None or every:
            slot = self.slots.new()
            members = self.members(node.group.variable, rows, at=node.group.at)
        if node.group.variable is not None and slot is not None:
            after[node.group.variable.name] = slot
        rows.grouped += after.items() if slot is None or slot in after.values() else [*after.items(), (None, slot)]
        number = self.slots.new()
        self.group = GroupBinding(keys, _group_scope(node.group.variable, rows), sets=sets, number=number)
        self.rows = list(after.items())
        group_scope = VariableScope(outer, after, fields_of=(), group=self.group)
        bound = tuple((key_slot, value) for (_, key_slot, _), value in zip(keys, self.key_values, strict=True))
        group = plan.Group(at=node.group.at, keys=bound, sets=sets, slot=slot, members=members, number=number)
        steps: list[plan.Let | plan.WindowCall] = []
        for let in node.group_lets:
            result = self.let(let, group_scope)
            steps += result
            group_scope = group_scope.with_({let.name: result[-1].slot})
            rows.grouped.append((let.name, result[-1].slot))
        return group, tuple(steps), group_scope

    def keys(self, node: tree.GroupBy, rows: BoundRows) -> tuple[list[tuple[list[object], int, str]], dict[str, int]]:
        """Bind each distinct grouping key, and return the keys (outline, slot, name) and the slots of the keys'
        variables. Raises SqlppError for a duplicate alias.
        """
        keys: list[tuple[list[object], int, str]] = []
        slots_by_name: dict[str, int] = {}
        self.key_values: list[plan.Expression] = []
        for key in group_keys(node.elements):
            shape = key_outline(key.value)
            slot = next((key_shape for other, key_shape, _ in keys if other == shape), None)
            if slot is None:
                slot = self.slots.new()
                keys.append((shape, slot, key.variable or "$"))
                self.key_values.append(self.expression(key.value, rows.scope))
            if (
                key.variable is not None
                and slots_by_name.setdefault(key.variable, slot) != slot
                and not _is_implied(key)
            ):
                raise compilation(f"Duplicate alias definitions: {key.variable}", key.at)
        return keys, slots_by_name

    def sets(self, node: tree.GroupBy, shapes: list[list[object]]) -> tuple[tuple[int, ...], ...]:
        """Return the grouping sets, as indexes of keys. Raises SqlppError if there are too many."""
        return sets_of(node.elements, shapes)

    def members(
        self, node: tree.GroupVariable | None, rows: BoundRows, *, at: TextPosition
    ) -> tuple[tuple[str, plan.Expression], ...]:
        """Return the fields of the objects in the GROUP AS array: those that its list names, or all variables without a
        list.
        """
        if node is None or node.fields is None:
            return tuple((name, plan.Local(at, slot, name)) for name, slot in rows.everything)
        return tuple(
            (field.name, self.expression(tree.Variable(field.at, field.variable), rows.scope)) for field in node.fields
        )

    def aggregates(self, node: tree.Block, order: tuple[tree.OrderItem, ...]) -> bool:
        """Return whether SELECT, HAVING or ORDER BY contains an aggregate of this block, which implies one group of all
        rows.
        """
        parts: list[tree.SyntaxNode] = [node.select, *order]
        if node.having is not None:
            parts.append(node.having)
        return any(self.has_aggregate(part) for part in parts)

    def has_aggregate(self, node: tree.SyntaxNode) -> bool:
        """Return whether a node contains an aggregate, outside of subqueries and windows."""
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
        """Return whether a call is an aggregate. A user-defined function of that name takes precedence."""
        entry = self.built_in(node.function)
        if entry is None or entry.kind != "aggregate":
            return False
        return node.star or self.find_user_function(node.function, len(node.arguments)) is None

    # SELECT and ORDER BY.

    def names_of(self, node: tree.Select) -> list[str | None]:
        """Return the names of SELECT's projections.

        Projections without a name get generated names, numbered through the statement, outer blocks first.
        """
        return [
            self.generate_name() if one.value is not None and not one.every and one.name is None else one.name
            for one in node.projections
        ]

    def generate_name(self) -> str:
        """Return the next generated name of a projection: `$1`, `$2`."""
        self.unnamed_count += 1
        return f"${self.unnamed_count}"

    def select(
        self,
        node: tree.Select,
        rows: BoundRows,
        *,
        names: list[str | None],
        group: plan.Group | None,
        scope: VariableScope,
    ) -> plan.Select:
        """Bind SELECT, whose projections have the names `names`. Raises SqlppError for a duplicate field name."""
        if node.value is not None:
            return plan.Select(
                at=node.at, distinct=node.distinct, value=self.expression(node.value, scope), projections=(), exclude=()
            )
        projections: list[plan.Projection] = []
        for projection, argument in zip(node.projections, names, strict=True):
            own_name = argument or next(label for at in count(1) if (label := f"${at}") not in names)
            for name, value in self.projection(projection, rows, name=own_name, group=group, scope=scope):
                projections.append(plan.Projection(projection.at, name, value))
        called = [projection.name for projection in projections if projection.name is not None]
        double = next((name for at, name in enumerate(called) if name in called[:at]), None)
        if double is not None:
            raise SqlppError(DUPLICATE_FIELD, f"Duplicate field name '{double}'", node.at)
        exclude = _exclude_paths(node, called)
        return plan.Select(
            at=node.at, distinct=node.distinct, value=None, projections=tuple(projections), exclude=exclude
        )

    def projection(
        self,
        node: tree.Projection,
        rows: BoundRows,
        *,
        name: str | None,
        group: plan.Group | None,
        scope: VariableScope,
    ) -> Iterator[tuple[str | None, plan.Expression]]:
        """Bind one projection. Yields its values with their names; the name of `value.*` is None.

        `*` has a field for each variable of FROM and LET, or after GROUP BY for each key, the group's variable, and
        each variable of its LET. The field of a group without a variable is named `name`. Raises SqlppError for `*`
        without FROM.
        """
        if node.value is not None:
            yield None if node.every else name, self.expression(node.value, scope)
            return
        default_projection = rows.everything if group is None else rows.grouped
        if not default_projection:
            raise compilation("SELECT * needs a FROM", node.at)
        for variable, slot in default_projection:
            yield variable or name, plan.Local(node.at, slot, variable or "group")

    def aliases(
        self, node: tree.Select, scope: VariableScope, *, shared: list[plan.Let]
    ) -> dict[str, Callable[[], plan.Expression]]:
        """Return a function for each alias of SELECT that binds the aliased expression in ORDER BY; variables take
        precedence.

        A nested query cannot contain aggregates of this block. So their values are added to `shared`, as LET before the
        query.
        """
        depth, group = self.depth, self.group
        slots: dict[str, int] = {}

        def binder(name: str, value: tree.Expression) -> Callable[[], plan.Expression]:
            def bind() -> plan.Expression:
                if self.depth == depth:
                    return self.expression(value, scope)
                if name not in slots:
                    entry = self.group, self.windows, self.depth
                    self.group, self.windows, self.depth = group, None, depth
                    try:
                        shared.append(plan.Let(value.at, self.slots.new(), self.expression(value, scope)))
                    finally:
                        self.group, self.windows, self.depth = entry
                    slots[name] = shared[-1].slot
                return plan.Local(value.at, slots[name], name)

            return bind

        return {name: binder(name, value) for name, value in _named_values(node) if scope.find(name) is None}


def _exclude_paths(node: tree.Select, names: list[str]) -> tuple[tuple[str, ...], ...]:
    """Return the paths of EXCLUDE. After `SELECT *` of a single variable, a path may omit the name of that variable."""
    is_star = len(node.projections) == 1 and node.projections[0].value is None
    if not is_star or len(names) != 1:
        return node.exclude
    return tuple(path if path[0] == names[0] else (names[0], *path) for path in node.exclude)


def _named_values(node: tree.Select) -> Iterator[tuple[str, tree.Expression]]:
    """Yield the aliases of SELECT with their expressions; for SELECT VALUE the fields of an object constructor."""
    if isinstance(node.value, tree.Object):
        for pair in node.value.pairs:
            if isinstance(pair.name, tree.String):
                yield pair.name.value, pair.value
    for one in node.projections:
        if one.name and one.value is not None and not one.every:
            yield one.name, one.value


def _group_scope(group: tree.GroupVariable | None, rows: BoundRows) -> VariableScope:
    """Return the scope of an aggregate's argument: the block's scope, without variables that GROUP AS does not list."""
    if group is None or group.fields is None:
        return rows.scope
    own_fields = {field.variable for field in group.fields}
    left_out = {
        name: partial(_refuse_identifier, name, group.at) for name, _ in rows.everything if name not in own_fields
    }
    return VariableScope(rows.scope, fields_of=rows.scope.fields_of, aliases=left_out)


def _refuse_identifier(name: str, at: TextPosition) -> plan.Expression:
    raise SqlppError(ILLEGAL_IDENTIFIER, f"Illegal use of identifier: {name}: GROUP AS leaves it out of its fields", at)


def _is_implied(key: tree.GroupKey) -> bool:
    """Return whether the name of a key is derived from its path.

    If several keys have the same derived name, the first key gets the name.
    """
    value = key.value
    last = value.steps[-1] if isinstance(value, tree.PathExpression) and value.steps else None
    return isinstance(last, tree.FieldStep) and last.name == key.variable


def _is_range(node: tree.Expression) -> bool:
    return isinstance(node, tree.Call) and normalize_name(node.function.last) == "range"


def _check_aliases(terms: tuple[tree.Term, ...]) -> None:
    """Check that the variables of FROM have distinct names. Raises SqlppError."""
    nodes = [node for term in terms for node in (term, *term.links)]
    names = ((name, node.at) for node in nodes for name in (node.variable, node.position) if name is not None)
    seen_aliases: set[str] = set()
    for name, at in names:
        if name in seen_aliases:
            raise compilation(f"Duplicate alias definitions: {name}", at)
        seen_aliases.add(name)
