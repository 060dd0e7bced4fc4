"""Where the columns of an analysed plan come from, read from the plan's JSON.

Job: pure tracing from the root to the leaves: which columns of which sources give each output column, and by which columns the
rows were filtered, joined or grouped. May import the standard library. It must not know of Spark's session nor what a source is:
whoever asks names the leaves.

Spark writes a plan as a list of nodes in pre-order with their numbers of children, and expressions inside of them in the same
way. Columns are known by their expression ids, which are the same from where they are made to where they are used.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

Json = dict[str, Any]
"""A node as Spark writes it: its fields differ by class."""

IDENTITY, TRANSFORMATION, AGGREGATION = "IDENTITY", "TRANSFORMATION", "AGGREGATION"
_STRENGTH = {IDENTITY: 0, TRANSFORMATION: 1, AGGREGATION: 2}
_CASTS = frozenset({"Cast", "UpCast", "AnsiCast"})
_DIRECTLY = frozenset({"Alias", "PromotePrecision", "KnownNotNull", "TempResolvedColumn"})
_CONDITIONS = {"condition": "FILTER", "groupingExpressions": "GROUP_BY", "order": "SORT", "keys": "GROUP_BY"}
"""Fields of plans whose columns decide about rows, and how."""


class ColumnOrigin(NamedTuple):
    """A column of a source that something comes from: `subtype` in OpenLineage's words, directly or not."""

    source: Hashable
    column: str
    subtype: str
    direct: bool


Origins = frozenset[ColumnOrigin]
ColumnEnvironment = dict[int, Origins]
"""By expression id: where a column comes from."""
NOWHERE: Origins = frozenset()


class PlanTree(NamedTuple):
    """A node with its children, of a plan or an expression."""

    node: Json
    children: tuple[PlanTree, ...]

    @property
    def kind(self) -> str:
        """The class's own name."""
        return str(self.node.get("class", "")).rpartition(".")[2]


class PlanTrace(NamedTuple):
    """What a plan reads, where each of its columns comes from, in their order, and what decides about its rows."""

    inputs: tuple[Hashable, ...]
    columns: tuple[Origins, ...]
    rows: Origins


def trace(plan: Sequence[Json], leaves: Mapping[int, Hashable]) -> PlanTrace:
    """Trace a plan; `leaves` names the source of a leaf by the expression id of its first column."""
    tracer = _Tracer(leaves)
    env, output = tracer.plan(tree_of(plan), {})
    columns = tuple([env.get(one, NOWHERE) for one in output])
    return PlanTrace(tuple(tracer.inputs), columns, frozenset(tracer.rows))


def tree_of(nodes: Sequence[Json]) -> PlanTree:
    """Build the tree of a list in pre-order."""
    iterator = iter(nodes)

    def build() -> PlanTree:
        node = next(iterator)
        return PlanTree(node, tuple([build() for _ in range(int(node.get("num-children", 0)))]))

    return build()


def _is_tree(value: object) -> bool:
    return isinstance(value, list) and bool(value) and isinstance(value[0], dict) and "num-children" in value[0]


def _trees(value: object) -> Iterator[PlanTree]:
    """Find the expressions in a field, however deep its lists are."""
    if _is_tree(value):
        yield tree_of(value)  # type: ignore[arg-type]
    elif isinstance(value, list):
        for each in value:
            yield from _trees(each)


def _id(node: Json) -> int | None:
    found = node.get("exprId")
    return int(found["id"]) if isinstance(found, dict) else None


def _ids(value: object) -> list[int]:
    """List the ids of named expressions, in their order."""
    return [one for tree in _trees(value) if (one := _id(tree.node)) is not None]


def _transformed_origins(origins: Iterable[ColumnOrigin], subtype: str) -> Origins:
    """Say that a column is made of others: what was aggregated once stays so."""
    return frozenset(
        [
            each._replace(subtype=subtype)
            if each.direct and _STRENGTH.get(each.subtype, 2) < _STRENGTH[subtype]
            else each
            for each in origins
        ]
    )


def _indirect(origins: Iterable[ColumnOrigin], subtype: str) -> Origins:
    return frozenset([each._replace(subtype=subtype, direct=False) for each in origins])


class _Tracer:
    """One walk through a plan. What decides about rows is gathered for the plan as a whole."""

    def __init__(self, leaves: Mapping[int, Hashable]) -> None:
        self.leaves = leaves
        self.inputs: dict[Hashable, None] = {}
        self.rows: set[ColumnOrigin] = set()
        self.shared: dict[int, list[Origins]] = {}
        """Columns of what WITH names, by its id."""

    def plan(self, tree: PlanTree, outer: ColumnEnvironment) -> tuple[ColumnEnvironment, list[int]]:
        """Trace a plan: where its columns, and those below it, come from, and which ones it gives."""
        if not tree.children:
            return self._leaf(tree, outer)
        if tree.kind == "WithCTE":
            return self._with(tree, outer)
        if tree.kind == "UnionLoop":
            return self._loop(tree, outer)
        parts = [self.plan(child, outer) for child in tree.children]
        env: ColumnEnvironment = {key: origins for part, _ in parts for key, origins in part.items()}
        output = self._combined(tree, env, outputs=[ids for _, ids in parts])
        return env, self._expressions(tree, env, outer=outer, output=output)

    def _loop(self, tree: PlanTree, outer: ColumnEnvironment) -> tuple[ColumnEnvironment, list[int]]:
        """Trace a recursive part of WITH: round and round until nothing is added."""
        anchor, recursion = tree.children
        env, output = self.plan(anchor, outer)
        found = [env.get(one, NOWHERE) for one in output]
        while True:
            self.shared[int(tree.node["id"])] = found
            again, output = self.plan(recursion, outer)
            more = [known | again.get(one, NOWHERE) for known, one in zip(found, output, strict=False)]
            if more == found:
                break
            found = more
        given = [int(each["id"]) for each in tree.node["outputAttrIds"]]
        return env | again | dict(zip(given, found, strict=False)), given

    def _leaf(self, tree: PlanTree, outer: ColumnEnvironment) -> tuple[ColumnEnvironment, list[int]]:
        attributes = [each.node for each in _trees(tree.node.get("output"))]
        ids = [_id(node) or 0 for node in attributes]
        shared = tree.node.get("cteId", tree.node.get("loopId"))
        if shared is not None:
            known = self.shared.get(int(shared), [])
            return dict(zip(ids, known, strict=False)), ids
        source = self.leaves.get(ids[0]) if ids else None
        env: ColumnEnvironment = {}
        if source is not None:
            self.inputs[source] = None
            env = {
                one: frozenset([ColumnOrigin(source, str(node["name"]), IDENTITY, True)])
                for one, node in zip(ids, attributes, strict=True)
            }
        else:
            ids = self._expressions(tree, env, outer=outer, output=ids)
        return env, ids

    def _with(self, tree: PlanTree, outer: ColumnEnvironment) -> tuple[ColumnEnvironment, list[int]]:
        for index in tree.node.get("cteDefs") or ():
            definition = tree.children[int(index)]
            env, output = self.plan(definition, outer)
            self.shared[int(definition.node["id"])] = [env.get(one, NOWHERE) for one in output]
        return self.plan(tree.children[int(tree.node["plan"])], outer)

    def _combined(self, tree: PlanTree, env: ColumnEnvironment, *, outputs: list[list[int]]) -> list[int]:
        """Return the columns that come up from the children; where rows of several are put together, their columns are, too."""
        kind = tree.kind
        if kind == "Union":
            for position, one in enumerate(outputs[0]):
                env[one] = frozenset().union(
                    *(env.get(other[position], NOWHERE) for other in outputs if position < len(other))
                )
            return outputs[0]
        if kind in {"Except", "Intersect"}:
            self.rows |= _indirect([each for one in outputs[1] for each in env.get(one, NOWHERE)], "FILTER")
            return outputs[0]
        if kind == "Distinct":
            self.rows |= _indirect([each for one in outputs[0] for each in env.get(one, NOWHERE)], "GROUP_BY")
        if kind == "Join" and any(word in str(tree.node.get("joinType")) for word in ("LeftSemi", "LeftAnti")):
            return outputs[0]
        return [one for ids in outputs for one in ids]

    def _expressions(
        self, tree: PlanTree, env: ColumnEnvironment, *, outer: ColumnEnvironment, output: list[int]
    ) -> list[int]:
        """Trace the expressions of a node into `env`; returns its columns."""
        node, kind = tree.node, tree.kind
        made: dict[str, list[Origins]] = {}
        for name, value in node.items():
            if name == "output":
                continue
            for each in _trees(value):
                origins = self.origins(each, env, outer=outer)
                one = _id(each.node)
                if one is not None and each.kind == "Alias":
                    env[one] = origins
                made.setdefault(name, []).append(origins)
        for name, subtype in _CONDITIONS.items():
            word = "JOIN" if kind in {"Join", "LateralJoin"} else subtype
            self.rows |= _indirect([one for found in made.get(name, ()) for one in found], word)
        return self._given(tree, env, made=made, output=output)

    def _given(
        self, tree: PlanTree, env: ColumnEnvironment, *, made: Mapping[str, list[Origins]], output: list[int]
    ) -> list[int]:
        """Return the columns that a node gives, and trace those that it makes without a name of their own."""
        node, kind = tree.node, tree.kind
        if kind == "Project":
            return _ids(node.get("projectList"))
        if kind == "Aggregate":
            return _ids(node.get("aggregateExpressions"))
        if kind == "Window":
            return [*output, *_ids(node.get("windowExpressions"))]
        if kind == "Generate":
            fresh = _ids(node.get("generatorOutput"))
            env |= dict.fromkeys(fresh, _transformed_origins(_all(made.get("generator", ())), TRANSFORMATION))
            dropped = {int(each) for each in node.get("unrequiredChildIndex") or ()}
            return [*(one for at, one in enumerate(output) if at not in dropped), *fresh]
        if kind == "LateralJoin":
            return output + self._lateral(tree, env)
        given = _ids(node.get("output"))
        if kind == "Expand":
            flat, width = made.get("projections", []), max(1, len(given))
            for position, one in enumerate(given):
                env[one] = frozenset().union(*flat[position::width])
        elif given:
            below = _transformed_origins(_all([env.get(one, NOWHERE) for one in output]), TRANSFORMATION)
            env |= {one: below for one in given if one not in env}
        return given or output

    def _lateral(self, tree: PlanTree, env: ColumnEnvironment) -> list[int]:
        """Trace the right side of a lateral join, which sees the columns of the left one."""
        for each in _trees(tree.node.get("right")):
            right, output = self.plan(tree_of(each.node["plan"]), env)
            env |= right
            return output
        return []

    def origins(self, tree: PlanTree, env: ColumnEnvironment, *, outer: ColumnEnvironment) -> Origins:
        """Say where the value of an expression comes from."""
        node, kind = tree.node, tree.kind
        if kind == "AttributeReference":
            one = _id(node)
            return NOWHERE if one is None else env.get(one, outer.get(one, NOWHERE))
        if kind == "OuterReference":
            return _all([self.origins(each, outer, outer=outer) for each in _trees(node.get("e"))])
        if _is_tree(node.get("plan")):
            return self._subquery(tree, env, outer=outer)
        if kind == "WindowExpression":
            function, spec = [self.origins(each, env, outer=outer) for each in tree.children]
            subtype = AGGREGATION if tree.children[0].kind == "AggregateExpression" else TRANSFORMATION
            return _transformed_origins(function, subtype) | _indirect(spec, "WINDOW")
        found = [self.origins(each, env, outer=outer) for each in tree.children]
        if kind in {"CaseWhen", "If"}:
            return _chosen(kind, found)
        if kind in _DIRECTLY or (kind in _CASTS and _keeps_type(tree)):
            return _all(found)
        return _transformed_origins(_all(found), AGGREGATION if kind == "AggregateExpression" else TRANSFORMATION)

    def _subquery(self, tree: PlanTree, env: ColumnEnvironment, *, outer: ColumnEnvironment) -> Origins:
        """Trace a query within an expression; what it is compared with counts as well."""
        inner, output = self.plan(tree_of(tree.node["plan"]), {**outer, **env})
        if tree.kind == "LateralSubquery":
            return NOWHERE
        return _all([inner.get(one, NOWHERE) for one in output])


def _all(found: Iterable[Origins]) -> Origins:
    return frozenset().union(*found)


def _chosen(kind: str, found: Sequence[Origins]) -> Origins:
    """Tell values from the conditions that choose among them: condition, value, condition, value, …, else."""
    last = len(found) - 1
    is_condition = [at == 0 if kind == "If" else at % 2 == 0 and at != last for at in range(len(found))]
    if kind == "CaseWhen" and len(found) % 2 == 0:
        is_condition = [at % 2 == 0 for at in range(len(found))]
    pairs = list(zip(found, is_condition, strict=True))
    values = _transformed_origins(_all([one for one, decides in pairs if not decides]), TRANSFORMATION)
    return values | _indirect(_all([one for one, decides in pairs if decides]), "CONDITIONAL")


def _keeps_type(tree: PlanTree) -> bool:
    """Say whether a cast gives what it got."""
    return tree.children[0].node.get("dataType") == tree.node.get("dataType")
