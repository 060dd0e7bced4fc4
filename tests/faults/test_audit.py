# SPDX-License-Identifier: Apache-2.0
"""The audit compared with a model: random actions of twenty users, with kills of the node. No record is missing or
invented.
"""

from __future__ import annotations

import os
import random
from collections import Counter
from collections.abc import Callable, Iterator
from typing import NamedTuple
from uuid import UUID

import pytest

from tests.faults.rig import BACKENDS, Rig
from tests.nodes.wire import (
    GRAVITINO,
    OWN,
    PREFIX,
    ConnectionLost,
    WireAnswer,
    namespace_body,
    namespace_path,
    properties_body,
    rename_body,
    rights_body,
    rights_path,
    table_body,
    table_path,
)

pytestmark = pytest.mark.heavy
ACTIONS = int(os.environ.get("LIMNOS_TEST_AUDIT", "300"))
KILLS = max(2, ACTIONS // 400)
USERS = tuple(f"u{number}" for number in range(20))
WRITES = ("USE_CATALOG", "USE_SCHEMA", "CREATE_SCHEMA", "CREATE_TABLE", "MODIFY_TABLE", "SELECT_TABLE")
READS = ("USE_CATALOG", "USE_SCHEMA", "SELECT_TABLE")
WHOLE = {
    "LIMNOS__AUDIT__READS": "whole",
    "LIMNOS__AUDIT__REFUSALS": "whole",
    "LIMNOS__AUDIT__REFUSALS_PER_S_MAX": "1000000",
}
LANCE_SPACE = "told"
PIPELINES = f"{OWN}/metalakes/lake/pipelines"
RUNS = 12
"""The number of pipelines, each with a run to be published."""
POINTS = ("before-commit", "after-commit", "permitted", "written", "drafted")
Change = tuple[str, str, str, str]
"""The change's operation, the kind, the path, and the new path."""


class UserAction(NamedTuple):
    """An action of one user: the request, the change that it makes, and a check whether it was made."""

    method: str
    path: str
    body: object = None
    change: Change | None = None
    seen_at: str = ""
    seen_as: str = ""
    also: tuple[Change, ...] = ()
    """Further changes in the same transaction."""

    @property
    def changes(self) -> tuple[Change, ...]:
        """Return all changes that the action makes."""
        return () if self.change is None else (self.change, *self.also)


class AnsweredAction(NamedTuple):
    """An answered action: its user and its outcome."""

    user: str
    status: int
    changes: tuple[Change, ...]


@pytest.fixture(scope="module", params=BACKENDS)
def rig(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rig]:
    """A node with all audit settings on, for each database."""
    database = request.getfixturevalue("cluster").database() if request.param == "postgresql" else None
    with Rig(tmp_path_factory.mktemp(f"audit-{request.param}"), database, env=WHOLE) as running:
        yield running


class Model:
    """The actions of users, as the answers reported them."""

    def __init__(self, rig: Rig, seed: int) -> None:
        self.rig = rig
        self.chance = random.Random(seed)
        self.count = 0
        self.spaces: list[str] = []
        self.tables: list[tuple[str, str]] = []
        self.runs: list[tuple[str, str]] = []
        self.done: dict[str, AnsweredAction] = {}
        self.lost: list[tuple[str, UserAction]] = []
        self.sure: set[str] = set()
        """Requests after which the same node has answered the audit, so that their records are certainly stored."""
        self.read: list[dict[str, object]] = []
        """The records read so far. A record never appears before one that was read."""
        self.doomed: set[str] = set()
        """Requests without changes whose records a killed node may not have stored."""

    # -- actions -----------------------------------------------------------------------------------------------

    def next_action(self) -> UserAction:
        """Choose a random action."""
        self.count += 1
        kinds = [
            self.space,
            self.table,
            self.table,
            self.load,
            self.load,
            self.load,
            self.commit,
            self.commit,
            self.move,
        ]
        return self.chance.choice(
            [*kinds, self.drop, self.tables_list, self.tag, self.allow, self.token, self.statistic, *self.others()]
        )()

    def others(self) -> list[Callable[[], UserAction]]:
        """Return actions of other protocols than Iceberg's and Gravitino's, and of pipelines."""
        return [self.dataverse, self.view, self.synonym, self.query, self.lance_table, self.lance_list, self.publish]

    def space(self) -> UserAction:
        """Create a namespace."""
        name = f"n{self.count}"
        self.spaces.append(name)
        change = ("create", "namespace", f"main.{name}", "")
        return UserAction(
            method="POST",
            path=f"{PREFIX}/namespaces",
            body=namespace_body(name),
            change=change,
            seen_at=namespace_path(name),
        )

    def table(self) -> UserAction:
        """Create a table."""
        space, name = self.chance.choice(self.spaces), f"t{self.count}"
        self.tables.append((space, name))
        change = ("create", "table", f"main.{space}.{name}", "")
        return UserAction(
            method="POST",
            path=f"{namespace_path(space)}/tables",
            body=table_body(name),
            change=change,
            seen_at=table_path(space, name),
        )

    def load(self) -> UserAction:
        """Load a table that may have been dropped."""
        return UserAction(method="GET", path=table_path(*self.chance.choice(self.tables)))

    def tables_list(self) -> UserAction:
        """List a namespace."""
        return UserAction(method="GET", path=f"{namespace_path(self.chance.choice(self.spaces))}/tables")

    def commit(self) -> UserAction:
        """Set a property of a table."""
        table, mark = self.chance.choice(self.tables), f"p{self.count}"
        change = ("commit", "table", f"main.{'.'.join(table)}", "")
        return UserAction(
            method="POST",
            path=table_path(*table),
            body=properties_body(**{mark: "1"}),
            change=change,
            seen_at=table_path(*table),
            seen_as=mark,
        )

    def move(self) -> UserAction:
        """Rename a table."""
        source = self.chance.choice(self.tables)
        target = (source[0], f"m{self.count}")
        self.tables.append(target)
        change = ("move", "table", f"main.{'.'.join(source)}", f"main.{'.'.join(target)}")
        return UserAction(
            method="POST",
            path=f"{PREFIX}/tables/rename",
            body=rename_body(source, target),
            change=change,
            seen_at=table_path(*target),
        )

    def drop(self) -> UserAction:
        """Drop a table whose name is never used again."""
        table = self.chance.choice(self.tables)
        change = ("drop", "table", f"main.{'.'.join(table)}", "")
        return UserAction(
            method="DELETE", path=table_path(*table), body=None, change=change, seen_at=f"!{table_path(*table)}"
        )

    def tag(self) -> UserAction:
        """Create a tag."""
        name = f"g{self.count}"
        change = ("create", "tag", name, "")
        return UserAction(
            method="POST",
            path=f"{GRAVITINO}/tags",
            body={"name": name},
            change=change,
            seen_at=f"{GRAVITINO}/tags/{name}",
        )

    def allow(self) -> UserAction:
        """Grant a privilege on a namespace to the readers."""
        space = self.chance.choice(self.spaces)
        change = ("grant", "namespace", f"main.{space}", "")
        path = rights_path("readers", "schema", f"main.{space}", "grant")
        return UserAction(method="PUT", path=path, body=rights_body("CREATE_TABLE"), change=change)

    def token(self) -> UserAction:
        """Create a token for the user itself."""
        name = f"k{self.count}"
        change = ("create", "token", "", "")
        return UserAction(
            method="POST",
            path=f"{OWN}/tokens",
            body={"name": name},
            change=change,
            seen_at=f"{OWN}/tokens?all=true",
            seen_as=name,
        )

    def statistic(self) -> UserAction:
        """Write a statistic of a table, which leaves no change in the feed."""
        table, name = self.chance.choice(self.tables), f"custom-{self.count}"
        path = f"{GRAVITINO}/objects/table/main.{'.'.join(table)}/statistics"
        change = ("other", "table", f"main.{'.'.join(table)}", "")
        return UserAction(
            method="PUT", path=path, body={"updates": {name: 1}}, change=change, seen_at=path, seen_as=name
        )

    def dataverse(self) -> UserAction:
        """Create a dataverse by a SQL++ statement; it is a namespace for other protocols."""
        name = f"d{self.count}"
        return self.statement(
            f"create dataverse {name}", ("create", "namespace", f"main.{name}", ""), namespace_path(name)
        )

    def view(self) -> UserAction:
        """Create a SQL++ view."""
        space, name = self.chance.choice(self.spaces), f"v{self.count}"
        change = ("create", "view", f"main.{space}.{name}", "")
        return self.statement(
            f"create view {space}.{name} as select value 1", change, f"{namespace_path(space)}/views/{name}"
        )

    def synonym(self) -> UserAction:
        """Create a synonym, which only the list of all synonyms shows."""
        space, name = self.chance.choice(self.spaces), f"s{self.count}"
        return self.statement(
            f"create synonym {space}.{name} for {space}.t", ("create", "synonym", f"main.{space}.{name}", "")
        )

    def query(self) -> UserAction:
        """Send a query that needs no table: a valid or an invalid one."""
        return self.statement(
            self.chance.choice(("select value 1 + 1", "select value from", "select value x from nowhere x"))
        )

    @staticmethod
    def statement(text: str, change: Change | None = None, seen_at: str = "") -> UserAction:
        """Send a SQL++ statement."""
        return UserAction(
            method="POST", path="/query/service", body={"statement": text}, change=change, seen_at=seen_at
        )

    def lance_table(self) -> UserAction:
        """Declare a Lance table."""
        name = f"l{self.count}"
        change = ("create", "table", f"lance.{LANCE_SPACE}.{name}", "")
        path = f"/lance/v1/table/lance%24{LANCE_SPACE}%24{name}"
        return UserAction(
            method="POST",
            path=f"{path}/declare",
            body={},
            change=change,
            seen_at=f"{GRAVITINO}/catalogs/lance/schemas/{LANCE_SPACE}/tables/{name}",
        )

    def lance_list(self) -> UserAction:
        """List Lance tables."""
        return UserAction(method="GET", path=f"/lance/v1/namespace/lance%24{LANCE_SPACE}/table/list")

    def publish(self) -> UserAction:
        """Commit a table and publish the run of a pipeline that wrote it, in one transaction. The run may be published
        already.
        """
        table, (pipeline, run), mark = self.chance.choice(self.tables), self.chance.choice(self.runs), f"p{self.count}"
        operations = [
            {"do": "commit-table", "path": list(table), **properties_body(**{mark: "1"})},
            {"do": "publish-run", "run": run, "attempt": 1},
        ]
        change, also = ("commit", "table", f"main.{'.'.join(table)}", ""), ("publish", "job", f"{pipeline}.`{run}`", "")
        path = f"{OWN}/metalakes/lake/catalogs/main/transactions"
        return UserAction(
            method="POST",
            path=path,
            body={"operations": operations},
            change=change,
            seen_at=table_path(*table),
            seen_as=mark,
            also=(also,),
        )

    def run(self) -> None:
        """Start the run of another pipeline, as the admin."""
        pipeline, run = f"p{len(self.runs)}", str(UUID(int=self.chance.getrandbits(128), version=4))
        self.runs.append((pipeline, run))
        self.must(
            UserAction(
                method="PUT",
                path=f"{PIPELINES}/{pipeline}",
                body={"declaration": {}},
                change=("create", "job_template", pipeline, ""),
            )
        )
        body = {"id": run, "holder": "h:1", "lease_s": 3600, "steps": [{"name": "s"}]}
        self.must(
            UserAction(
                method="POST",
                path=f"{PIPELINES}/{pipeline}/runs",
                body=body,
                change=("start", "job", f"{pipeline}.`{run}`", ""),
            )
        )

    # -- execution ---------------------------------------------------------------------------------------------

    def ask(self, user: str, action: UserAction) -> WireAnswer | None:
        """Execute an action once, and record the answer."""
        try:
            answer = self.rig.wire(user).ask(action.method, action.path, action.body)
        except ConnectionLost:
            self.lost.append((user, _spoken(action, user)))
            return None
        changes = _spoken(action, user).changes if answer.status < 300 else ()
        self.done[answer.headers["x-request-id"]] = AnsweredAction(user, answer.status, changes)
        return answer

    def must(self, action: UserAction) -> None:
        """Execute an action that must succeed, as the admin."""
        assert self.answer(action).status < 300, action

    def answer(self, action: UserAction) -> WireAnswer:
        """Return the answer to a request of the admin, from a running node."""
        answer = self.ask("admin", action)
        assert answer is not None, action
        return answer

    def step(self, *, to_be_seen: bool = False) -> None:
        """Let a random user execute an action. With `to_be_seen`, choose one whose effect can be checked later."""
        action = self.next_action()
        while to_be_seen and action.change is not None and not action.seen_at:
            action = self.next_action()
        self.ask(self.chance.choice((*USERS, "admin")), action)

    def is_done(self, action: UserAction) -> bool:
        """Return whether an action whose answer was lost was executed."""
        is_removal, path = action.seen_at.startswith("!"), action.seen_at.removeprefix("!")
        answer = self.answer(UserAction(method="GET", path=path))
        assert answer.status in (200, 404), answer
        return (answer.status == 404) if is_removal else answer.status == 200 and action.seen_as in str(answer.body)

    def killed(self) -> None:
        """Record the requests whose audit records a killed node may not have written."""
        self.doomed |= set(self.done) - self.sure

    def look(self) -> None:
        """Read new audit records. No record of an earlier request can be lost from here on."""
        sure = set(self.done)
        self.read += self.lines(after=int(str(self.read[-1]["id"])) if self.read else 0)
        self.sure |= sure - self.doomed

    def lines(self, *, after: int = 0) -> list[dict[str, object]]:
        """Read all records after one."""
        records: list[dict[str, object]] = []
        page: dict[str, object] = {"next": after, "more": True}
        while page["more"]:
            answer = self.answer(UserAction(method="GET", path=f"{OWN}/audit?after={page['next']}&limit=1000"))
            assert answer.status == 200, answer
            page = answer.body
            records += page["lines"]  # type: ignore[arg-type]
        return records


def _spoken(action: UserAction, user: str) -> UserAction:
    """A token's audit records have the name of the token's user."""
    if action.change is None or action.change[1] != "token":
        return action
    return action._replace(change=("create", "token", user, ""))


def begin(model: Model) -> None:
    """Create the lake's users: eight who write, six who read, six without privileges."""
    for user in USERS:
        model.must(
            UserAction(
                method="POST", path=f"{GRAVITINO}/users", body={"name": user}, change=("create", "user", user, "")
            )
        )
    for role, rights, holders in (("writers", WRITES, USERS[:8]), ("readers", READS, USERS[8:14])):
        model.must(
            UserAction(
                method="POST",
                path=f"{GRAVITINO}/roles",
                body={"name": role, "securableObjects": []},
                change=("create", "role", role, ""),
            )
        )
        path = rights_path(role, "catalog", "main", "grant")
        model.must(
            UserAction(method="PUT", path=path, body=rights_body(*rights), change=("grant", "catalog", "main", ""))
        )
        for user in holders:
            role_names = {"roleNames": [role]}
            model.must(
                UserAction(
                    method="PUT",
                    path=f"{GRAVITINO}/permissions/users/{user}/grant",
                    body=role_names,
                    change=("give", "user", user, ""),
                )
            )
    model.must(model.space())
    model.must(model.table())
    path = f"/lance/v1/namespace/lance%24{LANCE_SPACE}/create"
    model.must(
        UserAction(method="POST", path=path, body={}, change=("create", "namespace", f"lance.{LANCE_SPACE}", ""))
    )
    for _ in range(RUNS):
        model.run()


def change_of(line: dict[str, object]) -> Change:
    """Return the change that a record reports."""
    about = line["object"] or {}
    return (str(line["change"]), str(about["kind"]), str(about["path"]), str(line["new_path"] or ""))  # type: ignore[index]


def complaints(model: Model, lines: list[dict[str, object]], lost: Counter[tuple[str, Change]]) -> list[str]:
    """Return the differences between the audit and the model."""
    records: dict[str, list[dict[str, object]]] = {}
    for line in lines:
        records.setdefault(str(line["request_id"]), []).append(line)
    differences = [
        complaint
        for request, done in model.done.items()
        if (complaint := _differs(done, records.get(request, []), is_sure=request in model.sure))
    ]
    strange = [each for request, some in records.items() if request not in model.done for each in some]
    others = Counter((str(each["user"]), change_of(each)) for each in strange if each["change"] and each["protocol"])
    unasked = [each for each in strange if not each["change"] and each["user"] not in (*USERS, "admin")]
    return [
        *differences,
        *(f"invented {each}" for each in (others - lost)),
        *(f"missing {each}" for each in (lost - others)),
        *(f"nobody asked {each}" for each in unasked),
    ]


def _differs(done: AnsweredAction, records: list[dict[str, object]], *, is_sure: bool) -> str:
    """Return how the audit records of one request differ from its outcome, or an empty text."""
    changes = [change_of(each) for each in records if each["change"]]
    if sorted(changes) != sorted(done.changes):
        return f"{done}: changes told {changes}"
    if any(each["user"] != done.user for each in records):
        return f"{done}: told of another user {records}"
    if done.changes:
        return "" if len(records) == len(done.changes) else f"{done}: told twice {records}"
    outcome = "refused" if done.status in (401, 403) else "failed" if done.status >= 400 else "done"
    if any(each["outcome"] != outcome for each in records):
        return f"{done}: told otherwise {records}"
    return f"{done}: not told" if is_sure and not records else ""


def test_every_change_has_one_audit_record_despite_kills(rig: Rig) -> None:
    """Every change has exactly one record, also if the node dies during the change. Reads and refusals have theirs up
    to the last check.
    """
    model = Model(rig, seed=ACTIONS)
    begin(model)
    done_though_lost: Counter[tuple[str, Change]] = Counter()
    for round_number in range(KILLS + 1):
        for number in range(ACTIONS // (KILLS + 1)):
            model.step()
            if number % 97 == 0:
                model.look()
        if round_number == KILLS:
            break
        rig.arm(POINTS[round_number % len(POINTS)], after_audit=False)
        while not model.lost:
            model.step(to_be_seen=True)
        rig.node.wait_killed()
        model.killed()
        rig.start()
        for user, action in model.lost:
            if action.change is not None and model.is_done(action):
                done_though_lost.update((user, each) for each in action.changes)
        model.lost.clear()

    model.look()
    model.look()
    lines = model.read

    assert [each["id"] for each in model.lines()][: len(lines)] == [each["id"] for each in lines]
    assert "\n".join(complaints(model, lines, done_though_lost)) == ""
    assert {str(each["outcome"]) for each in lines} == {"done", "refused", "failed"}
    assert {each[0] for done in model.done.values() for each in done.changes} >= {"create", "commit", "grant"}
