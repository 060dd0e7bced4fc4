# SPDX-License-Identifier: Apache-2.0
"""Random evolution, rebuilds, swaps and moves of restricted tables, compared with a plain model of the values that
readers may see. `LIMNOS_TEST_RESTRICTED_STEPS` sets the number of steps on each store.
"""

from __future__ import annotations

import os
import random
from collections import Counter
from dataclasses import dataclass, field
from typing import cast

import pytest

from tests.http.driver import API, DriverNode, grant
from tests.http.iceberg.test_restrictions import LAKE
from tests.http.iceberg.wire import ROOT, make_space, metadata_of, space_path, table_path

pytestmark = pytest.mark.slow

STEPS = int(os.environ.get("LIMNOS_TEST_RESTRICTED_STEPS", "150"))
SEED = int(os.environ.get("LIMNOS_TEST_RESTRICTED_SEED", "7"))
SPACES, TABLES = ("a", "b", "c"), ("t", "u", "v")
NAMES = ("card", "region", "x", "y")
MASK, FILTER = "card", "region"
Path = tuple[str, ...]


@dataclass
class Rule:
    """A filter and a mask that apply to a table: the ids of the columns that they mean, by table."""

    by_id: bool = False
    inherited: bool = False
    masked: dict[int, set[int]] = field(default_factory=dict)
    filtered: dict[int, set[int]] = field(default_factory=dict)


@dataclass(kw_only=True)
class ModelObject:
    """A namespace or a table, with the columns of a table by id, its rules by name, denials and grants."""

    number: int
    columns: dict[int, str] = field(default_factory=dict)
    names: dict[int, set[str]] = field(default_factory=dict)
    """All names that each column has had, dropped ones too."""
    last_id: int = 0
    rules: dict[str, Rule] = field(default_factory=dict)
    denied: bool = False
    granted: bool = False
    dropped: set[int] = field(default_factory=set)
    """The ids of columns that the table had and has no longer."""

    def note_names(self) -> None:
        """Note the current names of the columns, and which columns are dropped."""
        for number, name in self.columns.items():
            self.names.setdefault(number, set()).add(name)
        self.dropped = self.names.keys() - self.columns.keys()


@dataclass
class Memory:
    """What a path remembers of former objects: the names of their rules, and which were denied, by their numbers."""

    rules: set[tuple[int, str]] = field(default_factory=set)
    denied: set[int] = field(default_factory=set)


class Model:
    """The plain model: namespaces and tables by path, and what former objects of each path had."""

    def __init__(self) -> None:
        self.things: dict[Path, ModelObject] = {}
        self.memory: dict[Path, Memory] = {}
        self.numbers = 0

    def tables(self, space: Path = ()) -> list[Path]:
        """The paths of tables, of one namespace or of all."""
        return sorted(each for each in self.things if len(each) == 2 and each[: len(space)] == space)

    def rules_of(self, path: Path) -> list[Rule]:
        """The rules that apply to a table: its own and its namespace's."""
        return [*self.things[path].rules.values(), *self.things[path[:1]].rules.values()]

    def is_denied(self, path: Path) -> bool:
        """Whether the table, or its namespace, is denied to the role."""
        return self.things[path].denied or self.things[path[:1]].denied

    def apply(self, rule: Rule, table: ModelObject, *, first: bool = True) -> None:
        """Let a rule mean the columns of a table that have its names now, and with `first` no former ones."""
        for ids, name in ((rule.masked, MASK), (rule.filtered, FILTER)):
            current = {number for number, each in table.columns.items() if each == name}
            if first:
                ids[table.number] = current
            elif ids is rule.masked or not rule.by_id:
                ids.setdefault(table.number, set()).update(current)

    def changed(self, path: Path) -> None:
        """Let the rules of a table mean the columns that got their names, or that return and once had them."""
        table = self.things[path]
        returning = table.columns.keys() & table.dropped
        for rule in self.rules_of(path):
            self.apply(rule, table, first=False)
            for ids, name in ((rule.masked, MASK), (rule.filtered, FILTER)):
                if ids is rule.masked or not rule.by_id:
                    ids.setdefault(table.number, set()).update(each for each in returning if name in table.names[each])
        table.note_names()

    def create(self, path: Path, columns: dict[int, str]) -> None:
        """Add a namespace or a table."""
        self.numbers += 1
        self.things[path] = ModelObject(number=self.numbers, columns=columns, last_id=max(columns, default=0))
        self.things[path].note_names()
        self.arrive(path)

    def arrive(self, path: Path) -> None:
        """Let an object take over what its path remembers, and apply its namespace's rules."""
        thing, memory = self.things[path], self.memory.get(path, Memory())
        thing.denied = thing.denied or bool(memory.denied - {thing.number})
        for name in {name for number, name in memory.rules if number != thing.number} - thing.rules.keys():
            thing.rules[name] = Rule(inherited=len(path) == 2)
            for table in [path] if len(path) == 2 else self.tables(path):
                self.apply(thing.rules[name], self.things[table])
        if len(path) == 2:
            for rule in self.things[path[:1]].rules.values():
                if thing.number not in rule.masked:
                    self.apply(rule, thing)

    def leave(self, path: Path) -> None:
        """Let a path remember what its object had."""
        thing = self.things[path]
        if thing.rules or thing.denied:
            memory = self.memory.setdefault(path, Memory())
            memory.rules |= {(thing.number, name.split()[0]) for name in thing.rules}
            memory.denied |= {thing.number} if thing.denied else set()

    def move(self, source: Path, target: Path) -> None:
        """Rename or move a table."""
        self.leave(source)
        thing = self.things.pop(source)
        if source[:1] != target[:1]:
            space = self.things[source[:1]]
            thing.denied = thing.denied or space.denied
            for name, rule in space.rules.items():
                own = Rule(
                    masked={thing.number: rule.masked[thing.number]},
                    filtered={thing.number: rule.filtered[thing.number]},
                )
                thing.rules[f"{name} of {space.number} {len(thing.rules)}"] = own
        self.things[target] = thing
        self.arrive(target)

    def move_space(self, source: Path, target: Path) -> None:
        """Rename a namespace."""
        for path in [source, *self.tables(source)]:
            self.leave(path)
        for path, memory in list(self.memory.items()):
            if path[:1] == source and len(path) == 2:
                more = self.memory.setdefault((*target, path[1]), Memory())
                more.rules |= memory.rules
                more.denied |= memory.denied
        for path in [source, *self.tables(source)]:
            self.things[(*target, *path[1:])] = self.things.pop(path)
        for path in [target, *self.tables(target)]:
            self.arrive(path)

    def forbids(self, path: Path) -> bool:
        """Whether a restricted reader may not read the table at all: a filter means a dropped column, or several."""
        thing = self.things[path]
        filters = [rule.filtered[thing.number] for rule in self.rules_of(path)]
        return any(len(each) > 1 or not each <= thing.columns.keys() for each in filters)


class Lake:
    """The server beside the model: each step changes both, and the readers' answers are compared."""

    def __init__(self, node: DriverNode, seed: int) -> None:
        self.node, self.model, self.random = node, Model(), random.Random(seed)
        self.counts: Counter[str] = Counter()
        grant(node, "bob", "use_catalog use_schema select_table", kind="CATALOG", on="main")
        grant(node, "mod", "use_catalog use_schema modify_table", kind="CATALOG", on="main")
        grant(node, "dan", "use_catalog use_schema", kind="CATALOG", on="main")
        grant(node, "carl", "use_catalog use_schema select_table", kind="CATALOG", on="main")
        for role, user in (("never", "carl"), ("some", "dan")):
            node.done("POST", f"{API}/lake/roles", {"name": role, "properties": {}, "securableObjects": []})
            node.done("PUT", f"{API}/lake/permissions/users/{user}/grant", {"roleNames": [role]})

    def step(self) -> None:
        """Take one random step."""
        ways = [self.create, self.create, self.drop, self.rename, self.swap, self.evolve, self.evolve, self.evolve]
        ways += [self.restrict, self.restrict, self.unrestrict, self.move_space, self.permit]
        way = self.random.choice(ways)
        way()
        self.counts[way.__name__] += 1

    def _pick(self, *, table: bool = True) -> Path | None:
        paths = self.model.tables() if table else sorted(self.model.things)
        return self.random.choice(paths) if paths else None

    def _free(self) -> Path | None:
        spaces = [each for each in self.model.things if len(each) == 1]
        paths = [(*space, name) for space in sorted(spaces) for name in TABLES]
        free = [path for path in paths if path not in self.model.things]
        return self.random.choice(free) if free else None

    def create(self) -> None:
        """Create a namespace or a table."""
        space: Path = (self.random.choice(SPACES),)
        if space not in self.model.things:
            make_space(self.node, *space)
            self.model.create(space, {})
        path = self._free()
        if path is not None:
            names = [MASK, FILTER] if self.random.random() < 0.8 else ["x", "y"]
            fields = [{"id": n, "name": each, "required": False, "type": "string"} for n, each in enumerate(names, 1)]
            body = {
                "name": path[1],
                "schema": {"type": "struct", "fields": fields},
                "properties": {"format-version": "3"},
            }
            self.node.done("POST", f"{space_path(*path[:-1])}/tables", body)
            self.model.create(path, dict(enumerate(names, 1)))

    def drop(self) -> None:
        """Drop a table, or an empty namespace."""
        path = self._pick(table=self.random.random() < 0.8)
        if path is None or (len(path) == 1 and self.model.tables(path)):
            return
        address = table_path(*path) if len(path) == 2 else space_path(*path)
        purge = "?purgeRequested=true" if len(path) == 2 and self.random.random() < 0.3 else ""
        assert self.node.delete(f"{address}{purge}").status == 204
        self.model.leave(path)
        del self.model.things[path]

    def rename(self) -> None:
        """Rename a table, perhaps into another namespace."""
        source, target = self._pick(), self._free()
        if source is None or target is None:
            return
        ends = {"source": source, "destination": target}
        body = {key: {"namespace": list(path[:-1]), "name": path[-1]} for key, path in ends.items()}
        assert self.node.post(f"{ROOT}/tables/rename", body).status == 204
        self.model.move(source, target)

    def swap(self) -> None:
        """Exchange two tables of a namespace by renames of one transaction."""
        one = self._pick()
        others = [each for each in self.model.tables(one[:1]) if each != one] if one else []
        if one is None or not others:
            return
        other, aside = self.random.choice(others), (*one[:1], "aside")
        moves = [(one, aside), (other, one), (aside, other)]
        steps = [{"do": "move-table", "source": list(source), "target": list(target)} for source, target in moves]
        self.node.done("POST", f"{LAKE}/catalogs/main/transactions", {"operations": steps})
        for source, target in moves:
            self.model.move(source, target)

    def evolve(self) -> None:
        """Rename, drop or add a column, or let a dropped one return under another name, as a user who may only modify
        the table.
        """
        path = self._pick()
        if path is None:
            return
        thing = self.model.things[path]
        columns = dict(thing.columns)
        free = [each for each in NAMES if each not in columns.values()]
        kind = self.random.choice(("rename", "drop", "add", "return"))
        if kind == "add" and free:
            columns[thing.last_id + 1] = self.random.choice(free)
        elif kind == "return" and free and thing.dropped:
            columns[self.random.choice(sorted(thing.dropped))] = self.random.choice(free)
        elif kind == "rename" and free:
            columns[self.random.choice(sorted(columns))] = self.random.choice(free)
        elif kind == "drop" and len(columns) > 1:
            del columns[self.random.choice(sorted(columns))]
        if columns == thing.columns:
            return
        fields = [
            {"id": number, "name": name, "required": False, "type": "string", "initial-default": "EU"}
            for number, name in columns.items()
        ]
        schemas = cast("list[dict[str, int]]", metadata_of(self.node, *path)["schemas"])
        updates = [
            {"action": "add-schema", "schema": {"type": "struct", "fields": fields, "schema-id": 10_000}},
            {"action": "set-current-schema", "schema-id": -1},
        ]
        if self.random.random() < 0.2:
            updates.append({"action": "remove-schemas", "schema-ids": [each["schema-id"] for each in schemas]})
        answer = self.node.post(table_path(*path), {"requirements": [], "updates": updates}, user="mod")
        if answer.status == 400:  # the new schema is one of those that it removes
            return
        assert answer.status == 200, answer.body
        thing.columns, thing.last_id = columns, max(thing.last_id, *columns)
        self.model.changed(path)

    def restrict(self) -> None:
        """Set the rule of a table or namespace."""
        path = self._pick(table=self.random.random() < 0.5)
        if path is None:
            return
        thing, name = self.model.things[path], f"r{self.random.randrange(2)}"
        if len(path) == 2 and not {MASK, FILTER} <= set(thing.columns.values()):
            return
        terms = {"filter": f"{FILTER} = '{name}'", "masks": {MASK: "replace-with-null"}, "to": {"users": ["bob"]}}
        self.node.done("PUT", f"{self._object(path)}/restrictions/{name}", terms)
        thing.rules = {each: rule for each, rule in thing.rules.items() if each.split()[0] != name}
        rule = thing.rules[name] = Rule(by_id=len(path) == 2)
        for table in [path] if len(path) == 2 else self.model.tables(path):
            self.model.apply(rule, self.model.things[table])
        if path in self.model.memory:
            memory = self.model.memory[path]
            memory.rules = {each for each in memory.rules if each[1] != name}

    def unrestrict(self) -> None:
        """Remove all restrictions of an object, denials that it took over too."""
        path = self._pick(table=False)
        if path is None or self.random.random() < 0.5:
            return
        own = self.node.done("GET", f"{self._object(path)}/restrictions")["restrictions"]
        for each in own:
            if each["on"]["name"] == ".".join(("main", *path)):
                self.node.done("DELETE", f"{self._object(path)}/restrictions/{each['name']}")
        thing = self.model.things[path]
        if any("denies" in each for each in own):
            thing.denied = False
        privileges = [{"name": "select_table", "condition": "deny"}]
        self.node.put(self._permission("never", path, "revoke"), {"privileges": privileges})
        thing.denied = False
        thing.rules = {}
        self.model.memory.pop(path, None)

    def move_space(self) -> None:
        """Rename a namespace."""
        sources = [each for each in self.model.things if len(each) == 1]
        targets = [(each,) for each in SPACES if (each,) not in self.model.things]
        if sources and targets:
            source, target = self.random.choice(sorted(sources)), self.random.choice(targets)
            body = {"kind": "namespace", "source": list(source), "target": list(target)}
            self.node.done("POST", f"{LAKE}/catalogs/main/move", body)
            self.model.move_space(source, target)

    def permit(self) -> None:
        """Deny an object to one role, or grant it to another."""
        path, denies = self._pick(table=False), self.random.random() < 0.5
        if path is not None:
            rule = {"name": "select_table", "condition": "deny" if denies else "allow"}
            role = "never" if denies else "some"
            self.node.done("PUT", self._permission(role, path, "grant"), {"privileges": [rule]})
            thing = self.model.things[path]
            thing.denied, thing.granted = thing.denied or denies, thing.granted or not denies

    def _object(self, path: Path) -> str:
        return f"{LAKE}/objects/{'TABLE' if len(path) == 2 else 'SCHEMA'}/{'.'.join(('main', *path))}"

    def _permission(self, role: str, path: Path, word: str) -> str:
        kind = "TABLE" if len(path) == 2 else "SCHEMA"
        return f"{API}/lake/permissions/roles/{role}/{kind}/{'.'.join(('main', *path))}/{word}"

    def check(self) -> None:
        """Compare what the readers get of each table with the model."""
        for path in self.model.tables():
            self._check_restricted(path)
            expected = {"carl": 403 if self.model.is_denied(path) else 200}
            things = (self.model.things[path], self.model.things[path[:1]])
            expected["dan"] = 200 if any(each.granted for each in things) else 403
            for user, status in expected.items():
                assert self.node.get(table_path(*path), user=user).status == status, (path, user)
                self.counts[f"{user} {status}"] += 1

    def _check_restricted(self, path: Path) -> None:
        rules, thing = self.model.rules_of(path), self.model.things[path]
        answer = self.node.get(table_path(*path), user="bob")
        if self.model.forbids(path):
            assert answer.status == 403, (path, answer.body)
            self.counts["closed"] += 1
            return
        if answer.status == 403:
            self.counts["closed beyond the model"] += 1
            return
        assert answer.status == 200, (path, answer.body)
        restrictions = answer.json().get("read-restrictions", {})
        masks = {each["field-id"] for each in restrictions.get("required-column-projections", [])}
        expected = {each for rule in rules for each in rule.masked[thing.number] if each in thing.columns}
        assert masks >= expected, (path, masks, expected)
        filters = {number for rule in rules for number in rule.filtered[thing.number]}
        filter_ids = _ids_of(restrictions.get("required-row-filter"))
        assert filters & masks or filter_ids >= filters, (path, filters, filter_ids)
        assert masks or filter_ids or not rules, path
        self.counts["restricted" if rules else "open" if not restrictions else "closed beyond the model"] += 1
        if rules and self.random.random() < 0.2:
            self._check_other_faces(path, masks)

    def _check_other_faces(self, path: Path, masks: set[int]) -> None:
        """Compare the preview, the scan plan and SQL++ with the load."""
        thing = self.model.things[path]
        preview = self.node.get(f"{LAKE}/catalogs/main/tables/preview?table={'.'.join(path)}&rows=1", user="bob")
        assert preview.status == 200, preview.body
        columns = preview.json()["columns"]
        assert {each["name"] for each in columns if each["masked"]} == {thing.columns[each] for each in masks}
        plan = self.node.post(f"{table_path(*path)}/plan", {}, user="bob")
        assert plan.status == 200, plan.body
        self.node.delete(f"{table_path(*path)}/plan/{plan.json()['plan-id']}", user="bob")
        statement = {"statement": f"select value v from main.{path[0]}.{path[1]} v"}
        assert self.node.post("/query/service", statement, user="bob").status != 200
        self.counts["faces"] += 1


def _ids_of(part: object) -> set[int]:
    """Return the field ids in a filter."""
    if not isinstance(part, dict):
        return set()
    own = {int(str(part["id"]))} if part.get("type") == "reference" else set()
    return own.union(*(_ids_of(each) for each in part.values()))


def test_random_changes_show_no_value_that_a_plain_model_forbids(lake: DriverNode) -> None:
    """After each step of a random sequence, restricted readers get what a plain model allows, and nothing else."""
    lakes = Lake(lake, SEED)
    for number in range(STEPS):
        lakes.step()
        if STEPS <= 1_000 or number % 3 == 0:
            lakes.check()
    print(dict(sorted(lakes.counts.items())))

    assert min(lakes.counts[each] for each in ("closed", "restricted", "open", "faces", "carl 403", "dan 403")) > 0
