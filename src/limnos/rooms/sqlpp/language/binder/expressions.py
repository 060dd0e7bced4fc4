# SPDX-License-Identifier: Apache-2.0
"""Binds expressions: resolves each identifier and each function call.

Must not know rows. A subclass binds queries. Views and SQL++ functions are inlined where they are used; a recursive one
is an error.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping

from limnos.names.display import render as display_name
from limnos.rooms.sqlpp.language import plan, tree
from limnos.rooms.sqlpp.language.binder import resources
from limnos.rooms.sqlpp.language.binder.group_bindings import find_key, grouping_bits
from limnos.rooms.sqlpp.language.binder.names import (
    BoundDataset,
    BoundSynonym,
    BoundView,
    Dataverse,
    NameResolver,
    UserFunction,
)
from limnos.rooms.sqlpp.language.binder.scope import GroupBinding, SlotCounter, VariableScope
from limnos.rooms.sqlpp.language.binder.similarity import SIMILAR, Similarity, similar
from limnos.rooms.sqlpp.language.errors import BudgetSpent, SqlppError, TextPosition, compilation, recursion
from limnos.rooms.sqlpp.language.functions import FUNCTIONS, Function, find, normalize_name, unknown_function
from limnos.rooms.sqlpp.language.functions.types import real_of
from limnos.rooms.sqlpp.language.values.model import MISSING, Float, Value

NO_DATASET = 1077
NO_DATAVERSE = 1063
NO_PARAMETER = 1086
ILLEGAL_FILTER = 1121
INLINED_MAX = 64
"""The maximum nesting depth of inlined views and functions."""
_COUNTED = {
    "if_inf": "if-inf",
    "ifinf": "if-inf",
    "if_nan": "if-nan",
    "ifnan": "if-nan",
    "if_nan_or_inf": "if-nan-or-inf",
    "ifnanorinf": "if-nan-or-inf",
    "bitand": "bitand",
    "bitor": "bitor",
    "bitxor": "bitxor",
}
"""Functions for which AsterixDB reports another error if the number of arguments is wrong."""
NODES_MAX = 1_000_000
"""The maximum number of expressions of a statement after views and functions are inlined."""


class ExpressionBinder(ABC):
    """Binds the expressions of one statement. Binding raises SqlppError, and BudgetSpent as `expression` does."""

    def __init__(
        self,
        names: NameResolver,
        *,
        dataverse: Dataverse,
        parameters: Mapping[str | int, Value],
        moment: Mapping[str, Value],
        declared: tuple[tree.DeclareFunction, ...] = (),
        similarity: Similarity = SIMILAR,
        nodes_max: int | None = None,
    ) -> None:
        self.names = names
        self.similarity = similarity
        self.dataverse = dataverse
        self.parameters = parameters
        self.moment = moment
        self.declared = {(one.name, None if one.parameters is None else len(one.parameters)): one for one in declared}
        self.slots = SlotCounter()
        self.object_slots: set[int] = set()  # of the variables that are objects of datasets
        self.inlined: tuple[tuple[str, Dataverse, str, int], ...] = ()
        self.nodes_left = NODES_MAX if nodes_max is None else nodes_max
        self.is_metered = nodes_max is not None
        self.group: GroupBinding | None = None
        self.windows: list[plan.WindowCall] | None = None
        self.rows: list[tuple[str, int]] | None = None
        """The variables of the current block; None outside of SELECT, LET and ORDER BY."""
        self.depth = 0
        """The number of blocks around the current expression."""
        self.unnamed_count = 0
        """The number of projections of SELECT that got a generated name."""
        self.read: dict[tuple[Dataverse, str], None] = {}

    @abstractmethod
    def query(self, node: tree.QueryExpression, scope: VariableScope) -> plan.Query:
        """Bind a query; a subclass implements it."""

    @abstractmethod
    def window(self, node: tree.Call, scope: VariableScope) -> plan.Expression:
        """Bind a call with an OVER clause; a subclass implements it."""

    def expression(self, node: tree.Expression, scope: VariableScope) -> plan.Expression:
        """Bind any expression. Raises SqlppError, and BudgetSpent for more than `nodes_max` expressions."""
        self.nodes_left -= 1
        if self.nodes_left < 0:
            if self.is_metered:
                raise BudgetSpent
            words = f"The statement, with its views and functions, has more than {NODES_MAX} expressions"
            raise compilation(words, node.at)
        if self.group is not None:
            key = find_key(self.group, node)
            self.nodes_left -= len(self.group.keys)
            if key is not None:
                return plan.Local(node.at, *key)
        handler = _HANDLERS.get(type(node))
        if handler is None:
            raise compilation(f"{type(node).__name__} can't be evaluated", node.at)
        return handler(self, node, scope)

    def all(self, nodes: tuple[tree.Expression, ...], scope: VariableScope) -> tuple[plan.Expression, ...]:
        """Bind several expressions."""
        return tuple(self.expression(node, scope) for node in nodes)

    def maybe(self, node: tree.Expression | None, scope: VariableScope) -> plan.Expression | None:
        """Bind an optional expression; None for None."""
        return None if node is None else self.expression(node, scope)

    # Identifiers.

    def variable(self, node: tree.Variable, scope: VariableScope) -> plan.Expression:
        """Bind an identifier that no path steps follow."""
        return self.identifier(node, (), scope=scope)[0]

    def identifier(
        self, node: tree.Variable, steps: tuple[tree.Step, ...], *, scope: VariableScope
    ) -> tuple[plan.Expression, tuple[tree.Step, ...]]:
        """Bind an identifier, together with the path steps that are parts of a qualified dataset name.

        Returns the expression and the remaining steps. Raises SqlppError for an unknown name.
        """
        alias = scope.alias(node.name)
        if alias is not None:
            return alias(), steps
        slot = scope.find(node.name)
        if slot is not None:
            return plan.Local(node.at, slot, node.name), steps
        if scope.sources:
            fields = []
            for step in steps:
                if not isinstance(step, tree.FieldStep):
                    break
                fields.append(step.name)
            try:
                return self.source((node.name, *fields), node.at), steps[len(fields) :]
            except SqlppError as error:
                if error.number not in (NO_DATASET, NO_DATAVERSE) or len(scope.fields_of or ()) != 1:
                    raise
        name, slot = scope.implied_variable(node.name, node.at)
        return plan.FieldOf(node.at, plan.Local(node.at, slot, name), node.name), steps

    def path(self, node: tree.PathExpression, scope: VariableScope) -> plan.Expression:
        """Bind a path: its base, then its field, index and slice steps."""
        if isinstance(node.base, tree.Variable):
            base, steps = self._longest_key(node, node.base, scope=scope)
        else:
            base, steps = self.expression(node.base, scope), node.steps
        return self.apply_steps(base, steps, scope=scope)

    def _longest_key(
        self, node: tree.PathExpression, first: tree.Variable, *, scope: VariableScope
    ) -> tuple[plan.Expression, tuple[tree.Step, ...]]:
        """Bind the longest prefix of a path that equals a GROUP BY key; if there is none, bind the identifier.

        Returns the expression and the remaining steps.
        """
        if self.group is not None:
            for count in range(len(node.steps) - 1, -1, -1):
                head = tree.PathExpression(node.at, first, node.steps[:count]) if count else first
                key = find_key(self.group, head)
                if key is not None:
                    return plan.Local(node.at, *key), node.steps[count:]
        for group in scope.groups_around(first.name):
            for count in range(len(node.steps), 0, -1):
                key = find_key(group, tree.PathExpression(node.at, first, node.steps[:count]))
                if key is not None:
                    return plan.Local(node.at, *key), node.steps[count:]
        return self.identifier(first, node.steps, scope=scope)

    def apply_steps(
        self, base: plan.Expression, steps: tuple[tree.Step, ...], *, scope: VariableScope
    ) -> plan.Expression:
        """Apply the steps of a path to a bound value."""
        for step in steps:
            match step:
                case tree.FieldStep(name=name):
                    base = plan.FieldOf(step.at, base, name)
                case tree.ElementStep(index=index):
                    base = plan.ElementOf(step.at, base, self.expression(index, scope))
                case tree.SliceStep(start=start, end=end):
                    first = plan.Constant(step.at, 0) if start is None else self.expression(start, scope)
                    base = plan.SliceOf(step.at, base, first, self.maybe(end, scope))
                case tree.ItemsStep():
                    base = plan.FunctionCall(step.at, FUNCTIONS["array_star"], (base,))
        return base

    # Datasets, views, synonyms.

    def source(self, parts: tuple[str, ...], at: TextPosition) -> plan.Expression:
        """Resolve a dataset, view or synonym name in FROM.

        `a.b.c` is always the name `c` in dataverse `a.b`, never a field access. Raises SqlppError for a missing name or
        dataverse, and for a cycle of synonyms.
        """
        dataverse = parts[:-1] or self.dataverse
        if len(parts) > 1 and not self.names.has_dataverse(dataverse):
            raise SqlppError(NO_DATAVERSE, f"Cannot find dataverse with name {display_name(dataverse)}", at)
        result = self.names.resolve(dataverse, parts[-1])
        followed = {(dataverse, parts[-1])}
        while isinstance(result, BoundSynonym):
            target = (result.dataverse, result.name)
            if target in followed:
                raise compilation(f"Synonym {display_name((*dataverse, parts[-1]))} refers to itself", at)
            followed.add(target)
            result = self.names.resolve(*target)
        if isinstance(result, BoundDataset):
            self.read[(result.dataverse, result.name)] = None
            return plan.Scan(at, result.dataverse, result.name)
        if isinstance(result, BoundView):
            return self.view(result, at)
        words = (
            f"Cannot find dataset {display_name(parts[-1:])} in dataverse {display_name(dataverse)} nor an alias with"
            f" name {display_name(parts)}"
        )
        raise SqlppError(NO_DATASET, words, at)

    def view(self, view: BoundView, at: TextPosition) -> plan.Expression:
        """Bind a view's body, in its own dataverse."""
        return self._inlined_body(
            ("view", view.dataverse, view.name, 0), view.body, scope=VariableScope(None, sources=True), at=at
        )

    def _inlined_body(
        self, what: tuple[str, Dataverse, str, int], body: tree.Expression, *, scope: VariableScope, at: TextPosition
    ) -> plan.Expression:
        """Bind an inlined view or function body outside of the surrounding scope. Raises SqlppError if recursive."""
        kind, dataverse, name, _ = what
        if what in self.inlined:
            raise recursion(f"the {kind} {display_name((*dataverse, name))} uses itself", at)
        if len(self.inlined) >= INLINED_MAX:
            raise compilation(f"Views and functions are nested more than {INLINED_MAX} deep", at)
        entry = self.dataverse, self.inlined, self.group, self.windows, self.unnamed_count
        self.dataverse, self.inlined, self.group, self.windows = dataverse, (*self.inlined, what), None, None
        self.unnamed_count = 0
        try:
            return self.expression(body, scope)
        finally:
            self.dataverse, self.inlined, self.group, self.windows, self.unnamed_count = entry

    # Calls.

    def call(self, node: tree.Call, scope: VariableScope) -> plan.Expression:
        """Bind a call: of a function of the request, of a dataverse, or built in. Raises SqlppError if none matches."""
        if node.library is not None:
            raise compilation("Functions of libraries can't be called", node.at)
        if node.window is not None:
            return self.window(node, scope)
        count = 1 if node.star else len(node.arguments)
        name = node.function.last
        if not node.star:
            user_function = self.find_user_function(node.function, count)
            if user_function is not None:
                self._plain_only(node)
                return self.inline(user_function, node, scope=scope)
        alone = len(node.function.parts) == 1
        if normalize_name(name) == "grouping" and self.group is not None and self.group.number is not None:
            return grouping_bits(node, self.group, bind=self.expression)
        if alone and normalize_name(name) in resources.FUNCTIONS:
            dataverse, dataset = resources.source_of(self.names, node, function=normalize_name(name))
            self.read[dataverse, dataset] = None
            return plan.Scan(node.at, dataverse, dataset)
        if alone and not node.arguments and not node.star and normalize_name(name) in self.moment:
            return plan.Constant(node.at, self.moment[normalize_name(name)])
        entry = self.built_in(node.function)
        if entry is None or not entry.takes(count) or (node.star and not entry.counts_rows):
            raise self.no_function(node, count)
        if entry.kind == "window":
            raise compilation(f"Function {name} needs OVER", node.at)
        if entry.kind == "aggregate":
            return self.aggregate(node, scope)
        arguments = self.all(node.arguments, scope)
        if node.distinct and entry.family == "aggregates" and node.filter is None:
            return plan.FunctionCall(node.at, entry, self._distinct_items(node.at, arguments))
        self._plain_only(node)
        return plan.FunctionCall(node.at, entry, arguments)

    def _distinct_items(self, at: TextPosition, arguments: tuple[plan.Expression, ...]) -> tuple[plan.Expression, ...]:
        """Return the arguments of an array aggregate with DISTINCT, whose array has duplicates removed."""
        return tuple(plan.FunctionCall(at, FUNCTIONS["array_distinct"], (one,)) for one in arguments)

    def built_in(self, name: tree.DottedName) -> Function | None:
        """Return the built-in function of a name. Like a user-defined one, it may be called through any dataverse."""
        entry = find(name.last)
        is_known = entry is not None and (not name.dataverse or self.names.has_dataverse(name.dataverse))
        return entry if is_known else None

    def no_function(self, node: tree.Call, count: int) -> SqlppError:
        """Return the error for a call of an unknown function or dataverse, or with a wrong number of arguments."""
        dataverse = node.function.dataverse
        if dataverse and not self.names.has_dataverse(dataverse):
            return SqlppError(NO_DATAVERSE, f"Cannot find dataverse with name {display_name(dataverse)}", node.at)
        if normalize_name(node.function.last) in _COUNTED:
            words = f"Invalid number of arguments for function {_COUNTED[normalize_name(node.function.last)]}"
            return compilation(words, node.at)
        return unknown_function(display_name(node.function.parts), count, place=node.at)

    def _plain_only(self, node: tree.Call) -> None:
        if node.distinct and node.filter is None:
            raise compilation(f"DISTINCT is for aggregate functions, and {node.function.last} is not one", node.at)
        if node.filter is not None:
            raise SqlppError(ILLEGAL_FILTER, "Illegal use of aggregate FILTER clause", node.at)

    def find_user_function(self, name: tree.DottedName, count: int) -> UserFunction | tree.DeclareFunction | None:
        """Return the user-defined function in a call; None if there is none.

        A function that the request declares belongs to the active dataverse.
        """
        if name.dataverse in ((), self.dataverse):
            declared = self.declared.get((name.last, count)) or self.declared.get((name.last, None))
            if declared is not None:
                return declared
        return self.names.function(name.dataverse or self.dataverse, name.last, arity=count)

    def inline(
        self, function: UserFunction | tree.DeclareFunction, node: tree.Call, *, scope: VariableScope
    ) -> plan.Expression:
        """Inline a function's body into a call, with the arguments bound to variables."""
        arguments = self.all(node.arguments, scope)
        if function.parameters is None:
            slots_by_name: dict[str, int] = {"args": self.slots.new()}
            lets: tuple[tuple[int, plan.Expression], ...] = ((slots_by_name["args"], plan.ArrayOf(node.at, arguments)),)
        else:
            slots_by_name = {name: self.slots.new() for name in function.parameters}
            lets = tuple(zip(slots_by_name.values(), arguments, strict=True))
        inside = VariableScope(VariableScope(None, sources=True), slots_by_name, sources=True)
        dataverse = self.dataverse if isinstance(function, tree.DeclareFunction) else function.dataverse
        what = ("function", dataverse, function.name, len(arguments))
        return plan.LetIn(node.at, lets, self._inlined_body(what, function.body, scope=inside, at=node.at))

    def aggregate(self, node: tree.Call, scope: VariableScope) -> plan.Expression:
        """Bind an aggregate over the rows of the current group. Raises SqlppError outside of a group."""
        entry = self.built_in(node.function)
        if self.group is None or entry is None:
            name = normalize_name(node.function.last)
            raise compilation(
                f"{name} is a SQL-92 aggregate function. The SQL++ core aggregate function array_{name} could"
                f" potentially express the intent. {name} itself stands in SELECT, HAVING or ORDER BY of a query",
                node.at,
            )
        group, inside = self.group, self.group.inside
        self.group, windows, self.windows = None, self.windows, None
        try:
            argument = None if node.star else self.expression(node.arguments[0], inside)
            expression = self.maybe(node.filter, inside)
        finally:
            self.group, self.windows = group, windows
        return plan.Aggregate(at=node.at, function=entry, argument=argument, distinct=node.distinct, filter=expression)

    # Other expressions.

    def bind_parameter(self, node: tree.Parameter, _scope: VariableScope) -> plan.Expression:
        """Bind a parameter of the request to its value. Raises SqlppError if it has none."""
        if node.name not in self.parameters:
            spelled = f"${node.name}"
            raise SqlppError(NO_PARAMETER, f"No value for parameter: {spelled}", node.at)
        return plan.Constant(node.at, self.parameters[node.name])

    def operation(self, node: tree.OperationChain, scope: VariableScope) -> plan.Expression:
        """Bind a chain of operators of the same precedence."""
        if "~=" in node.operators:
            return similar(node, self.all(node.operands, scope), similarity=self.similarity)
        return plan.Operate(node.at, node.operators, self.all(node.operands, scope))

    def unary(self, node: tree.UnaryOperation, scope: VariableScope) -> plan.Expression:
        """Bind a prefix operator."""
        operand = self.expression(node.operand, scope)
        if node.operator == "not":
            return plan.Negated(node.at, operand)
        if node.operator == "exists":
            return plan.Exists(node.at, operand)
        return plan.SignOf(node.at, node.operator == "-", operand)

    def quantified(self, node: tree.QuantifiedExpression, scope: VariableScope) -> plan.Expression:
        """Bind SOME or EVERY. Each source may use the variables before it.

        A bare identifier of the condition is a field of the variable, if there is only one.
        """
        bindings = []
        named_slots: list[tuple[str, int]] = []
        for binding in node.bindings:
            source = self.expression(binding.source, scope.as_source(implies_fields=True))
            slot = self.slots.new()
            bindings.append((slot, source))
            named_slots.append((binding.name, slot))
            scope = VariableScope(scope, {binding.name: slot}, fields_of=tuple(named_slots))
        return plan.Quantified(node.at, node.kind, tuple(bindings), self.expression(node.condition, scope))

    def between(self, node: tree.BetweenExpression, scope: VariableScope) -> plan.Expression:
        """Bind `value [NOT] BETWEEN low AND high`."""
        value, low, high = self.all((node.value, node.low, node.high), scope)
        return plan.Between(at=node.at, negated=node.negated, value=value, low=low, high=high)

    def is_test(self, node: tree.IsExpression, scope: VariableScope) -> plan.Expression:
        """Bind IS NULL, IS MISSING, IS UNKNOWN and their negations."""
        return plan.IsTest(node.at, node.negated, self.expression(node.value, scope), node.test)

    def case(self, node: tree.Case, scope: VariableScope) -> plan.Expression:
        """Bind a CASE expression, with or without a subject."""
        branches = tuple(
            (self.expression(branch.condition, scope), self.expression(branch.result, scope))
            for branch in node.branches
        )
        return plan.CaseOf(node.at, self.maybe(node.subject, scope), branches, self.maybe(node.otherwise, scope))

    def array(self, node: tree.Array, scope: VariableScope) -> plan.Expression:
        """Bind an array constructor."""
        return plan.ArrayOf(node.at, self.all(node.items, scope))

    def bag(self, node: tree.Bag, scope: VariableScope) -> plan.Expression:
        """Bind a multiset constructor."""
        return plan.BagOf(node.at, self.all(node.items, scope))

    def object(self, node: tree.Object, scope: VariableScope) -> plan.Expression:
        """Bind an object constructor."""
        pairs = tuple((self.expression(pair.name, scope), self.expression(pair.value, scope)) for pair in node.pairs)
        return plan.ObjectOf(node.at, pairs)

    def subquery(self, node: tree.QueryExpression, scope: VariableScope) -> plan.Expression:
        """Bind a query as a value. The surrounding variables are visible in it; its rows and groups are separate."""
        entry = self.group, self.windows
        self.group, self.windows = None, None
        try:
            return plan.Subquery(node.at, self.query(node, scope))
        finally:
            self.group, self.windows = entry


def _decimal(text: str) -> Value:
    if text[-1] in "fF":
        return Float(float(text[:-1]))
    real = real_of(text.rstrip("dD"))
    return None if real is None else real


_HANDLERS: dict[type, Callable[..., plan.Expression]] = {
    tree.MissingLiteral: lambda _, node, __: plan.Constant(node.at, MISSING),
    tree.Null: lambda _, node, __: plan.Constant(node.at, None),
    tree.Boolean: lambda _, node, __: plan.Constant(node.at, node.value),
    tree.Integer: lambda _, node, __: plan.Constant(node.at, node.value),
    tree.Decimal: lambda _, node, __: plan.Constant(node.at, _decimal(node.text)),
    tree.String: lambda _, node, __: plan.Constant(node.at, node.value),
    tree.Parameter: ExpressionBinder.bind_parameter,
    tree.Variable: ExpressionBinder.variable,
    tree.PathExpression: ExpressionBinder.path,
    tree.Call: ExpressionBinder.call,
    tree.UnaryOperation: ExpressionBinder.unary,
    tree.OperationChain: ExpressionBinder.operation,
    tree.BetweenExpression: ExpressionBinder.between,
    tree.IsExpression: ExpressionBinder.is_test,
    tree.Case: ExpressionBinder.case,
    tree.QuantifiedExpression: ExpressionBinder.quantified,
    tree.Array: ExpressionBinder.array,
    tree.Bag: ExpressionBinder.bag,
    tree.Object: ExpressionBinder.object,
    tree.QueryExpression: ExpressionBinder.subquery,
}
