# SPDX-License-Identifier: Apache-2.0
"""Attempts to bypass read restrictions, by a restricted user with all other rights: other names, other locations, other
protocols, older answers.
"""

from __future__ import annotations

import json

import pytest

from limnos.app.restricted_files import RESTRICTED_FILE_FUNCTIONS as RESTRICTING
from limnos.services.iceberg.scan_queue import SCAN_OFFLOADER
from limnos.services.request.offloaded_work import InlineOffloader
from tests.http.driver import API, OWN, DriverNode, grant
from tests.http.iceberg.planning import WrittenTable
from tests.http.iceberg.test_restrictions import LAKE, SCHEMA, SECRETS, closed, furnish, of, restrict, words
from tests.http.iceberg.wire import (
    ROOT,
    SPACES,
    commit,
    make_space,
    make_view,
    set_properties,
    space_path,
    table_path,
    view_version,
)
from tests.iceberg_manifests import data_file, entry

EVERYTHING = (
    "use_catalog use_schema create_schema select_table modify_table create_table create_view select_view"
    " register_function execute_function modify_function"
)
HOME = table_path("a", "t")


@pytest.fixture
def shop(lake: DriverNode) -> DriverNode:
    """The table of `furnish`, restricted for all users except its owner. Bob has every right except ownership, and owns
    a namespace `b`.
    """
    furnish(lake)
    grant(lake, "bob", EVERYTHING, kind="CATALOG", on="main")
    lake.done("POST", f"{ROOT}/namespaces", {"namespace": ["b"]}, user="bob")
    assert restrict(lake, filter="city = 'EU'", masks={"ssn": "replace-with-null"}).status == 200
    return lake


class InlineRewrites(InlineOffloader):
    """Executes offloaded work in this process, also rewrites for restricted users."""

    async def do(self, name: str, *parts: bytes, caller: str = "") -> list[bytes]:
        """Execute offloaded work."""
        return RESTRICTING[name](*parts) if name in RESTRICTING else await super().do(name, *parts, caller=caller)


def real(node: DriverNode) -> dict[str, object]:
    """Return the table's metadata as its owner loads it."""
    return node.done("GET", HOME)


def test_older_metadata_file_cannot_be_registered(shop: DriverNode) -> None:
    """A user who knows an older metadata file of the table can register it neither under another name nor over the
    restricted table.
    """
    file = real(shop)["metadata-location"]

    other = shop.post(f"{space_path('b')}/register", {"name": "spy", "metadata-location": file}, user="bob")
    over = shop.post(
        f"{space_path('a')}/register", {"name": "t", "metadata-location": file, "overwrite": True}, user="bob"
    )

    assert other.status in (400, 409), other.body
    assert not [each for each in SECRETS if each in other.body.decode()]
    assert over.status == 403, over.body


def test_no_table_can_be_created_at_the_restricted_location(shop: DriverNode) -> None:
    """No table can be staged, created or moved at, in or above the restricted table's location."""
    place = str(real(shop)["metadata"]["location"])  # type: ignore[index]
    for location in (
        place,
        f"{place}/metadata",
        f"{place}/",
        place.rpartition("/")[0],
        place.replace("file:///", "file:/"),
    ):
        for stage in (False, True):
            body = {
                "name": f"n{stage}",
                "schema": SCHEMA,
                "location": location,
                "stage-create": stage,
                "properties": {"format-version": "3"},
            }
            answer = shop.ask(
                "POST", f"{space_path('b')}/tables", body, user="bob", x_iceberg_access_delegation="vended-credentials"
            )
            assert stage or answer.status in (400, 409), answer.body
            assert "storage-credentials" not in answer.body.decode()
    table_body = {"name": "own", "schema": SCHEMA, "properties": {"format-version": "3"}}
    shop.done("POST", f"{space_path('b')}/tables", table_body, user="bob")
    moved = commit(shop, "b", "own", updates=[{"action": "set-location", "location": place}], user="bob")
    assert moved.status in (400, 409), moved.body


def test_own_manifests_naming_restricted_files_are_refused(shop: DriverNode) -> None:
    """A scan of a user's own table is refused if its manifests or manifest lists name files of the restricted table."""
    own = WrittenTable(shop, "stolen")
    SCAN_OFFLOADER.put(shop.built.services, InlineRewrites())
    file = f"{real(shop)['metadata']['location']}/data/x.parquet"  # type: ignore[index]
    own.commit([own.manifest("m.avro", [entry(data_file(file))])])
    assert restrict(shop, "r", on="main.a.stolen", filter="id > 1").status == 200

    answer = shop.post(f"{own.path}/plan", {}, user="bob")

    assert answer.status in (400, 406), answer.body
    assert file not in answer.body.decode()


@pytest.mark.room("sqlpp")
def test_sqlpp_reveals_no_restricted_rows_or_files(shop: DriverNode) -> None:
    """SQL++ reveals no rows, files or commits of the table: by queries, views, functions, copies, analysis and metadata
    functions.
    """
    statements = (
        "select value t from a.t t",
        "create view b.v as select value t from a.t t; select value v from b.v v",
        "create function b.f() { select value t from a.t t }; select value b.f()",
        "insert into a.t select value t from a.t t",
        "delete from a.t t",
        "drop dataset a.t",
        "analyze dataset a.t",
        "select value r from dataset_resources('a', 't') r",
        "select value r from storage_components('a', 't') r",
        "copy (select value t from a.t t) to localfs path('x') with {'format':'json'}",
        "create dataset b.c(x) primary key id: bigint; insert into b.c select value t from a.t t",
    )
    place = str(real(shop)["metadata"]["location"])  # type: ignore[index]

    for statement in statements:
        answer = shop.post("/query/service", {"statement": statement}, user="bob")
        text = answer.body.decode()
        assert place not in text, (statement, text)
        assert not [each for each in SECRETS if each in text], (statement, text)
        assert answer.status != 200, (statement, text)


def test_views_do_not_bypass_restrictions(shop: DriverNode) -> None:
    """A view gives a restricted user no rights on the table, and scans planned through the view are restricted. A view
    whose author is restricted gives no rights either.
    """
    make_space(shop, "v")
    make_view(shop, "v", "mine", version=view_version("select * from a.t"))
    body = {
        "name": "his",
        "schema": {
            "type": "struct",
            "schema-id": 0,
            "fields": [{"id": 1, "name": "id", "required": False, "type": "long"}],
        },
        "view-version": view_version("select * from a.t"),
        "properties": {},
    }
    shop.post(f"{space_path('b')}/views", body, user="bob")
    grant(shop, "eve", "use_catalog use_schema select_view", kind="CATALOG", on="main")

    assert "read-restrictions" in shop.get(f"{HOME}?referenced-by=v%1Fmine", user="bob").json()
    for path in (f"{HOME}/credentials?referenced-by=v%1Fmine", f"{HOME}/credentials"):
        closed(shop.get(path, user="bob"))
    for through in ("v%1Fmine", "b%1Fhis"):
        assert shop.get(f"{HOME}?referenced-by={through}", user="eve").status == 403
        assert shop.post(f"{HOME}/plan?referenced-by={through}", {}, user="eve").status == 403


def test_earlier_etags_and_idempotency_keys_reveal_no_answer(shop: DriverNode) -> None:
    """A load with an ETag from before the restriction is answered anew. A change repeated with its idempotency key does
    not return the earlier answer. Plans from before are in `test_restricted_plans.py`.
    """
    shop.done("DELETE", of("eu"))
    before = shop.get(HOME, user="bob")
    key = {"idempotency_key": "0198f1f2-7c1c-7000-8000-000000000001"}
    change = {"requirements": [], "updates": [set_properties(k="v")]}
    assert shop.ask("POST", HOME, change, user="bob", **key).status == 200
    assert restrict(shop, filter="city = 'EU'", masks={}).status == 200

    again = shop.get(HOME, user="bob", if_none_match=before.headers["etag"])
    star = shop.get(HOME, user="bob", if_none_match="*")
    keyed = shop.ask("POST", HOME, change, user="bob", **key)

    assert (again.status, "read-restrictions" in again.json()) == (200, True)
    assert (star.status, star.body) == (304, b"")
    assert keyed.status == 500, keyed.body  # the change was made, and is no longer shown
    assert "read-restricted-set-scan-planning-mode-to-server" in words(keyed)
    for answer in (again, keyed):
        assert not [each for each in SECRETS if each in answer.body.decode()]


def test_restricted_user_cannot_move_table_out_of_restrictions(shop: DriverNode) -> None:
    """A restricted user cannot remove the table from its restrictions by rename, move, drop, undrop, transaction or
    ownership.
    """
    moves = {"source": {"namespace": ["a"], "name": "t"}, "destination": {"namespace": ["b"], "name": "t"}}
    for answer in (
        shop.post(f"{ROOT}/tables/rename", moves, user="bob"),
        shop.delete(HOME, user="bob"),
        shop.post(f"{HOME}/unregister", user="bob"),
    ):
        assert answer.status == 403, answer.body
    assert shop.put(f"{API}/lake/owners/table/main.a.t", {"name": "bob", "type": "USER"}, user="bob").status == 403
    for operation in (
        {"do": "drop-table", "path": ["a", "t"]},
        {"do": "move-table", "path": ["a", "t"], "to": ["b", "t"]},
        {"do": "commit-table", "path": ["a", "t"], "requirements": [], "updates": [set_properties(k="v")]},
    ):
        refused = shop.post(f"{LAKE}/catalogs/main/transactions", {"operations": [operation]}, user="bob")
        assert refused.status in (400, 403), refused.body
    assert shop.delete(HOME).status == 204
    trash = shop.get(f"{LAKE}/catalogs/main/trash", user="bob")
    assert not [each for each in SECRETS if each in trash.body.decode()]

    assert shop.get(HOME, user="bob").status in (403, 404)


@pytest.mark.room("lance")
@pytest.mark.room("search")
@pytest.mark.room("exchange")
def test_secondary_routes_reveal_no_values_or_files(shop: DriverNode) -> None:
    """Tags, feed, search, statistics, policies and lists reveal the table's name and columns, and no value or file."""
    location = str(real(shop)["metadata"]["location"])  # type: ignore[index]
    paths = (
        f"{LAKE}/objects/TABLE/main.a.t",
        f"{LAKE}/changes",
        f"{LAKE}/feed",
        f"{LAKE}/search?q=ssn",
        f"{LAKE}/reports?path=main.a.t",
        f"{LAKE}/statistics?path=main.a.t",
        f"{API}/lake/objects/table/main.a.t/tags?details=true",
        f"{API}/lake/objects/table/main.a.t/policies?details=true",
        f"{API}/lake/objects/table/main.a.t/statistics",
        f"{API}/lake/catalogs/main/schemas/a/tables",
        f"{API}/lake/catalogs/main/schemas/a/tables/t/partitions",
        f"{OWN}/metalakes/lake/export?format=json",
        f"{LAKE}/lineage?path=main.a.t",
        f"{LAKE}/audit",
        "/lance/v1/table/main$a$t/describe",
        "/lance/v1/namespace/main$a/table/list",
        f"{SPACES}/a/tables/t/credentials",
    )
    for path in paths:
        answer = shop.get(path, user="bob")
        text = answer.body.decode()
        assert answer.status < 500, (path, text)
        assert location not in text, (path, text)
        assert not [each for each in SECRETS if each in text], (path, text)
    described = shop.post("/lance/v1/table/main$a$t/describe", {}, user="bob")
    assert location not in described.body.decode()
    assert json.dumps(words(shop.get(f"{HOME}/credentials", user="bob")))
