# SPDX-License-Identifier: Apache-2.0
"""Which rights let a statement read rows, and which let it write: statements by rights by kinds of objects."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from limnos.access.authentication import Credential
from limnos.model.errors import PermissionDenied
from limnos.rooms.sqlpp.language.jobs import EngineJob
from limnos.rooms.sqlpp.services.execution.engine import ENGINE
from limnos.rooms.sqlpp.services.worksheet import WorksheetRequest, worksheet_run
from limnos.services.request.context import Context
from tests.http.driver import DriverNode, grant
from tests.http.iceberg.test_restrictions import restrict
from tests.http.iceberg.wire import SCHEMA, SPACES, node_over
from tests.http.refusal_tables import own
from tests.rooms.sqlpp.http.wire import ask, rows

USERS = ("none", "writer", "reader", "both", "restricted", "owner")
TABLE_RIGHTS = {
    "writer": "modify_table",
    "reader": "select_table",
    "both": "select_table modify_table",
    "restricted": "select_table modify_table",
}
OBJECTS = {
    "dataset": "shop.t",
    "iceberg": "shop.plain",
    "view": "shop.v",
    "view of view": "shop.w",
    "synonym": "shop.s",
    "function": "shop.f()",
    "external": "shop.files",
}
READS = {
    "select": "select value x from {0} x",
    "count": "select value count(*) from {0} x",
    "join": "select value [m, x] from mine.d m, {0} x where m.id = x.id",
    "subquery": "select value (select value x from {0} x)",
    "declared function": "declare function own() {{ (select value x from {0} x) }}; own()",
    "explain": "explain select value x from {0} x",
    "insert": "insert into mine.d (select value x from {0} x)",
    "upsert": "upsert into mine.d (select value x from {0} x) returning d.id",
    "delete": "delete from mine.d d where d.id in (select value x.id from {0} x)",
    "update": "update mine.d as d set d.a = (select value x from {0} x) where d.id = 1",
    "create as": "create dataset mine.made{1} primary key (id: bigint) as select value x from {0} x",
    "copy to": "copy (select value x from {0} x) as c to localfs path ('{2}/made{1}') with {{'format': 'json'}}",
}
"""Statements that read the rows of an object `{0}`; `{1}` is a number, `{2}` a directory."""
WRITES = {
    "insert": ("insert into {0} ({{'id': 1, 'city': 'x'}})", "writer both owner"),
    "insert returning": ("insert into {0} as x ({{'id': 1, 'city': 'x'}}) returning x", "writer both owner"),
    "upsert": ("upsert into {0} ({{'id': 1, 'city': 'x'}})", "writer both owner"),
    "load": ("load dataset {0} using localfs (('path'='localhost://{1}/in'), ('format'='json'))", "writer both owner"),
    "copy from": ("copy {0} from localfs path ('localhost://{1}/in') with {{'format': 'json'}}", "writer both owner"),
    "insert from itself": ("insert into {0} (select value x from {0} x)", "both owner"),
    "delete": ("delete from {0}", "both owner"),
    "delete where": ("delete from {0} x where x.city = 'a'", "both owner"),
    "update": ("update {0} as x set x.a = 1", "both owner"),
    "update where": ("update {0} as x set x.a = 1 where x.city = 'a'", "both owner"),
}
"""Statements that write to an object, and the users who may run them."""


NO_DATASET = b"ASX1077: Cannot find dataset"
"""The refusal of a dataset that is not a table, for users who may learn that there is no such table."""


class RecordingEngine:
    """A fake engine that records jobs and returns no rows."""

    is_starting = False

    def __init__(self) -> None:
        self.jobs: list[EngineJob] = []

    async def run(self, job: EngineJob, **_more: object) -> AsyncIterator[bytes]:
        """Record a job."""
        self.jobs.append(job)
        for line in ():
            yield line

    async def cancel(self, _job_id: str) -> None:
        """No-op: no job runs."""

    def close(self) -> None:
        """No-op: the fake holds no resources."""


class Shop:
    """A node with objects of every kind that has rows, and users with different rights on the tables among them.

    All users may also use the views and functions, and change a dataset in a dataverse beside it.
    """

    def __init__(self, node: DriverNode, folder: Path) -> None:
        self.node, self.folder, self.engine, self.made = node, folder, RecordingEngine(), 0
        (folder / "in").mkdir()
        (folder / "in" / "a.json").write_text('{"id": 1}\n', encoding="utf-8")
        services = node.built.services
        services.defaults = services.defaults._replace(
            file_roots=(f"file://{folder}",), export_roots=(f"file://{folder}",)
        )
        rows(
            node,
            "create dataverse shop; create dataverse mine; create type shop.T as { id: bigint };"
            "create dataset mine.d(shop.T) primary key id; use shop; create dataset t(T) primary key id;"
            f"create external dataset files(T) using localfs (('path'='localhost://{folder}/in'), ('format'='json'))",
        )
        node.done("POST", f"{SPACES}/shop/tables", {"name": "plain", "schema": SCHEMA})
        rows(
            node,
            "use shop; create view v as select value x from t x; create view w as select value x from v x;"
            "create synonym s for t; create function f() { (select value x from t x) }",
        )
        ENGINE.put(services, self.engine)  # type: ignore[arg-type]
        for user in USERS:
            grant(node, user, "use_catalog use_schema", kind="CATALOG", on="main")
            grant(node, user, "select_table modify_table create_table", kind="SCHEMA", on="main.mine")
            grant(node, user, "select_view execute_function", kind="SCHEMA", on="main.shop")
        for user, rights in TABLE_RIGHTS.items():
            for table in ("t", "plain"):
                grant(node, user, rights, kind="TABLE", on=f"main.shop.{table}")
                if user == "restricted":
                    done = restrict(node, on=f"main.shop.{table}", filter="id = 1", to={"users": [user]})
                    assert done.status == 200, done
        own(node, "owner", "SCHEMA", "main.shop")

    def run(self, statement: str, user: str, **more: object) -> str:
        """Return "job" if the engine gets a statement's job, "answer" if none is needed, and "refused"."""
        self.engine.jobs.clear()
        self.made += 1
        answer = ask(self.node, statement, user=user, **more)
        if answer.status == 403 or NO_DATASET in answer.body:
            assert self.engine.jobs == [], "refused statements have no job"
            return "refused"
        assert answer.status == 200, answer.body
        return "job" if self.engine.jobs else "answer"


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    """The objects and users; statements leave nothing behind that changes rights."""
    with node_over(tmp_path_factory.mktemp("node")) as node:
        yield Shop(node, tmp_path_factory.mktemp("files"))


@pytest.mark.parametrize("kind", [each for each in OBJECTS if each != "external"])
@pytest.mark.parametrize("statement", READS)
def test_rows_are_read_only_by_the_right_to_read(shop: Shop, statement: str, kind: str) -> None:
    """Every statement that reads rows needs SELECT_TABLE or ownership, through views, synonyms and functions too."""
    allowed = "answer" if statement == "explain" else "job"
    results = {}
    for user in USERS:
        text = READS[statement].format(OBJECTS[kind], shop.made, shop.folder)
        results[user] = shop.run(text, user)

    assert results == {
        "none": "refused",
        "writer": "refused",
        "reader": allowed,
        "both": allowed,
        "restricted": "refused",
        "owner": allowed,
    }


@pytest.mark.parametrize("kind", OBJECTS)
def test_statement_is_compiled_only_with_the_right_to_read(shop: Shop, kind: str) -> None:
    """A statement that is compiled and not run needs the rights of one that runs."""
    users = {"reader", "both", "owner"} if kind != "external" else {"owner"}
    for statement in ("select", "insert", "create as"):
        text = READS[statement].format(OBJECTS[kind], shop.made, shop.folder)
        results = {user for user in USERS if shop.run(text, user, compile_only=True) == "answer"}

        assert results == users


@pytest.mark.parametrize("statement", READS)
def test_files_of_external_datasets_are_read_by_the_right_to_read(shop: Shop, statement: str) -> None:
    """An external dataset is read with SELECT_TABLE on it or above it; rights on tables beside it count for nothing."""
    for user in USERS:
        text = READS[statement].format(OBJECTS["external"], shop.made, shop.folder)
        allowed = "answer" if statement == "explain" else "job"

        assert shop.run(text, user) == (allowed if user == "owner" else "refused"), user


@pytest.fixture(scope="module")
def closed_dataverse(shop: Shop) -> Shop:
    """A dataverse with an external dataset, which a restriction closes to one of two users who may read it; with a
    view, a synonym and a function over it elsewhere.
    """
    files = f"localfs (('path'='localhost://{shop.folder}/in'), ('format'='json'))"
    rows(
        shop.node,
        "create dataverse shut; use shut; create type T as { id: bigint }; create external dataset files(T) using"
        f" {files};use mine; create synonym far for shut.files; create view seen as select value x from shut.files"
        " x;create function got() { (select value x from shut.files x) }",
    )
    for user in ("held", "free"):
        grant(shop.node, user, "use_catalog use_schema", kind="CATALOG", on="main")
        rights = "select_table modify_table create_table select_view execute_function"
        grant(shop.node, user, rights, kind="SCHEMA", on="main.mine")
        grant(shop.node, user, "select_table", kind="SCHEMA", on="main.shut")
    terms = {"masks": {"card": "replace-with-null"}, "to": {"users": ["held"]}}
    assert restrict(shop.node, kind="SCHEMA", on="main.shut", **terms).status == 200
    return shop


@pytest.mark.parametrize("name", ["shut.files", "mine.far", "mine.seen", "mine.got()"])
@pytest.mark.parametrize("statement", READS)
def test_restriction_of_a_namespace_closes_its_external_datasets(
    closed_dataverse: Shop, statement: str, name: str
) -> None:
    """No filter or mask applies to files, so restricted users read no row of an external dataset, by no name of it."""
    shop = closed_dataverse
    allowed = "answer" if statement == "explain" else "job"

    results = {user: shop.run(READS[statement].format(name, shop.made, shop.folder), user) for user in ("held", "free")}

    assert results == {"held": "refused", "free": allowed}


@pytest.mark.parametrize("kind", ["dataset", "iceberg", "synonym"])
@pytest.mark.parametrize("statement", WRITES)
def test_rows_are_written_by_the_right_to_write(shop: Shop, statement: str, kind: str) -> None:
    """A statement that only adds objects needs MODIFY_TABLE; one that decides by the stored objects also reads them."""
    text, users = WRITES[statement]
    if kind == "iceberg" and statement == "load":
        text = text.replace("load dataset", "upsert into {0} ({{'id': 1}}); load dataset")

    results = {user for user in USERS if shop.run(text.format(OBJECTS[kind], shop.folder), user) == "job"}

    assert results == set(users.split())


@pytest.mark.parametrize("is_plan", [False, True])
def test_worksheet_reads_rows_only_by_the_right_to_read(shop: Shop, is_plan: bool) -> None:
    """A worksheet of the console runs and explains statements by the same rights."""
    services, allowed = shop.node.built.services, set()
    request = WorksheetRequest(
        text="select value x from shop.v x", may_change=False, is_plan=is_plan, own_id="", request_id="r"
    )
    shop.engine.jobs.clear()
    for user in USERS:
        try:
            shop.node.runner.run(worksheet_run(Context(services, Credential(user=user), "r"), request))
        except PermissionDenied:
            continue
        allowed.add(user)

    assert allowed == {"reader", "both", "owner"}
    assert len(shop.engine.jobs) == (0 if is_plan else len(allowed))


@pytest.mark.parametrize("kind", ["dataset", "iceberg"])
def test_objects_are_defined_over_a_table_by_the_right_to_load(shop: Shop, kind: str) -> None:
    """Definitions read no rows: who may load a table may bind its name, and gets its description but no rows."""
    grant(shop.node, "writer", "create_view register_function", kind="SCHEMA", on="main.mine")
    for number, text in enumerate(
        (
            "create view mine.vw{1} as select value x from {0} x",
            "create function mine.fn{1}() {{ (select value x from {0} x) }}",
        )
    ):
        name = f"{kind}{number}"
        assert shop.run(text.format(OBJECTS[kind], name), "writer") == "answer"
        assert shop.run(text.format(OBJECTS[kind], f"none{name}"), "none") == "refused"

    assert shop.run(f"select value x from mine.vw{kind}0 x", "writer") == "refused"
    assert shop.run(f"mine.fn{kind}1()", "writer") == "refused"


def test_restricted_reader_learns_which_clients_read_the_table(shop: Shop) -> None:
    """A refusal because of a restriction names what reads the visible part; one for missing rights does not."""
    texts = {
        user: str(ask(shop.node, READS["select"].format("shop.plain"), user=user).json()["errors"])
        for user in ("restricted", "none")
    }

    assert "'limnos head', PyIceberg and Spark read the visible part" in texts["restricted"]
    assert "limnos head" not in texts["none"]
