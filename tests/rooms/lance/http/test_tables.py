# SPDX-License-Identifier: Apache-2.0
"""Tables over Lance REST: declare, register, describe, list, rename, drop, deregister, and the files on disk."""

from __future__ import annotations

from pathlib import Path

import lance
import pyarrow as pa
import pytest

from limnos.model.permits import upkeep_permit
from limnos.services.upkeep.trash import trash_sweep
from limnos.store.sql import Sql
from tests.http.driver import API, OWN, DriverNode, grant
from tests.http.iceberg import wire as iceberg
from tests.rooms.lance.http.wire import ROOT, declare, failure_of, lay, make_space, names, space, table

pytestmark = pytest.mark.slow

EXPIRE = Sql("UPDATE trash SET expires_at = 0")
TRASH = f"{OWN}/metalakes/lake/catalogs/lance/trash"
ROWS = pa.table(
    {"id": [1, 2], "text": ["a", "b"], "vector": pa.array([[0.0, 1.0], [1.0, 0.0]], pa.list_(pa.float32(), 2))}
)


def write(location: object, *, mode: str = "create") -> None:
    """Write rows as clients do: by path, past the server."""
    lance.write_dataset(ROWS, str(location), mode=mode)


def work(node: DriverNode) -> None:
    """Run all due tasks."""

    async def go() -> None:
        for _ in range(10):
            if not await node.built.upkeep.run_one():
                return

    node.runner.run(go())


def path_of(location: object) -> Path:
    """Return the directory of a location."""
    return Path(str(location).removeprefix("file://"))


def test_declared_table_is_listed_without_version_or_files(node: DriverNode) -> None:
    """A declared table has its own location, is listed, is described without a version, and has no files."""
    make_space(node, "lance", "a")

    declared = declare(node, "lance", "a", "t", properties={"k": "v"})

    told_of = node.done("POST", f"{table('lance', 'a', 't')}/describe", {})
    assert declared == {"location": told_of["location"], "properties": {"k": "v"}, "managed_versioning": False}
    assert told_of == {
        "table": "t",
        "namespace": ["lance", "a"],
        "location": declared["location"],
        "table_uri": declared["location"],
        "properties": {"k": "v"},
        "managed_versioning": False,
        "is_only_declared": True,
    }
    assert names(node.get(f"{space('lance', 'a')}/table/list")) == ["t"]
    assert names(node.get(f"{space('lance', 'a')}/table/list?include_declared=false")) == []
    assert node.post(f"{table('lance', 'a', 't')}/exists").body == b""
    assert not path_of(declared["location"]).exists()


def test_server_without_the_library_declares_no_table(node: DriverNode, monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that cannot open Lance tables refuses to declare one, with the extra to install."""
    make_space(node, "lance", "a")
    monkeypatch.setattr("limnos.rooms.lance.services.table_drafts.find_spec", lambda _: None)

    refused = node.post(f"{table('lance', 'a', 't')}/declare", {})

    assert refused.status == 406
    assert "limnos[server,lance]" in refused.json()["detail"] or "server,lance" in refused.json()["detail"]
    assert names(node.get(f"{space('lance', 'a')}/table/list")) == []


def test_rows_written_by_path_are_described_immediately(node: DriverNode) -> None:
    """Rows written by path are described immediately: version, schema with Arrow's type names, and the table is listed
    with data.
    """
    declared = declare(node, "lance", "t")
    write(declared["location"])
    write(declared["location"], mode="append")

    details = node.done("POST", f"{table('lance', 't')}/describe", {})

    assert (details["version"], details["is_only_declared"], details["stats"]["num_fragments"]) == (2, False, 2)
    assert [(each["name"], each["type"]["type"]) for each in details["schema"]["fields"]] == [
        ("id", "int64"),
        ("text", "utf8"),
        ("vector", "fixed_size_list"),
    ]
    assert names(node.get(f"{space('lance')}/table/list?include_declared=false")) == ["t"]


def test_load_detailed_metadata_false_omits_the_version(node: DriverNode) -> None:
    """With load_detailed_metadata=false, in body or query, no version is returned; check_declared says whether data
    exists.
    """
    declared = declare(node, "lance", "t")
    write(declared["location"])
    at = f"{table('lance', 't')}/describe"

    assert "version" not in node.done("POST", at, {"load_detailed_metadata": False})
    assert "version" not in node.done("POST", f"{at}?load_detailed_metadata=false", {})
    assert node.done("POST", f"{at}?load_detailed_metadata=false&check_declared=true", {})["is_only_declared"] is False
    assert failure_of(node.post(f"{at}?check_declared=maybe&load_detailed_metadata=false", {})) == (400, 13)


def test_version_tag_or_branch_can_be_described(node: DriverNode) -> None:
    """A version, tag or branch is described, or missing with its own code; a tag together with a version is refused."""
    declared = declare(node, "lance", "t")
    write(declared["location"])
    write(declared["location"], mode="append")
    dataset = lance.dataset(declared["location"])
    dataset.tags.create("first", 1)
    dataset.create_branch("dev")
    at = f"{table('lance', 't')}/describe"

    assert node.done("POST", at, {"version": 1})["version"] == 1
    assert node.done("POST", at, {"tag": "first"})["version"] == 1
    assert node.done("POST", at, {"branch": "dev"})["version"] == 2
    for version in (99, -1, 1 << 70):
        assert failure_of(node.post(at, {"version": version})) in ((404, 11), (400, 13))
    assert failure_of(node.post(at, {"version": 99})) == (404, 11)
    assert failure_of(node.post(at, {"tag": "../first"})) == (404, 8)
    assert failure_of(node.post(at, {"branch": "nope"})) == (404, 22)
    assert failure_of(node.post(at, {"branch": "dev", "version": 99})) == (404, 11)
    assert failure_of(node.post(at, {"tag": "first", "version": 1})) == (400, 13)
    assert failure_of(node.post(f"{table('lance', 't')}/exists", {"version": 99})) == (404, 11)
    assert node.post(f"{table('lance', 't')}/exists", {"version": 2}).status == 200


def test_version_of_declared_table_is_reported_missing(node: DriverNode) -> None:
    """A version or tag of a declared table without data is reported as missing."""
    declare(node, "lance", "t")

    assert failure_of(node.post(f"{table('lance', 't')}/describe", {"version": 1})) == (404, 11)
    assert failure_of(node.post(f"{table('lance', 't')}/describe", {"tag": "x"})) == (404, 8)
    assert failure_of(node.post(f"{table('lance', 't')}/exists", {"version": 1})) == (404, 11)


def test_describing_a_table_with_damaged_files_returns_409(node: DriverNode) -> None:
    """A table with damaged files is listed and exists; only its detailed description fails, 409 with code 19."""
    node.done("POST", f"{table('lance', 't')}/register", {"location": lay(node, "junk")})

    assert failure_of(node.post(f"{table('lance', 't')}/describe", {})) == (409, 19)
    assert node.post(f"{table('lance', 't')}/exists").status == 200
    assert names(node.get(f"{space('lance')}/table/list")) == ["t"]


def test_missing_tables_and_namespaces_have_codes_of_their_own(node: DriverNode) -> None:
    """For every operation a missing table is code 4, a missing namespace code 1."""
    make_space(node, "lance", "a")
    for action, body in (
        ("describe", {}),
        ("exists", {}),
        ("drop", {}),
        ("deregister", {}),
        ("rename", {"new_table_name": "n"}),
    ):
        assert failure_of(node.post(f"{table('lance', 'a', 't')}/{action}", body)) == (404, 4), action
        assert failure_of(node.post(f"{table('lance', 'x', 't')}/{action}", body)) == (404, 1), action
    for action, body in (("declare", {}), ("create-empty", {}), ("register", {"location": "x"})):
        assert failure_of(node.post(f"{table('lance', 'x', 't')}/{action}", body)) == (404, 1), action
        assert failure_of(node.post(f"{table('lance')}/{action}", body)) == (400, 13), action
    assert failure_of(node.post(f"{table('lance')}/describe", {})) == (404, 4)


def test_tables_and_namespaces_share_one_name_space(node: DriverNode) -> None:
    """Tables and namespaces share their names: 409 with code 5 for a table, 2 for a namespace."""
    make_space(node, "lance", "a")
    declare(node, "lance", "t")

    assert failure_of(node.post(f"{table('lance', 't')}/declare", {})) == (409, 5)
    assert failure_of(node.post(f"{table('lance', 'a')}/declare", {})) == (409, 5)
    assert failure_of(node.post(f"{space('lance', 't')}/create", {})) == (409, 2)
    assert failure_of(node.post(f"{space('lance', 't', 'n')}/create", {})) == (404, 1)
    assert failure_of(node.post(f"{table('lance', 't', 'u')}/declare", {})) == (404, 1)


def test_requested_location_must_be_unused_and_in_the_roots(node: DriverNode) -> None:
    """A requested location is used unchanged; one outside of the catalog's roots, or of another table, is refused."""
    inside = f"file://{node.data}/warehouse/lance/mine"

    assert declare(node, "lance", "t", location=inside)["location"] == inside
    for place in (inside, f"{inside}/data", f"file://{node.data}/warehouse/lance", "/etc", f"{inside}/../../main/x"):
        assert failure_of(node.post(f"{table('lance', 'u')}/declare", {"location": place})) == (400, 13), place


def test_register_needs_a_location_with_data(node: DriverNode) -> None:
    """A table can only be registered at a location with data, and only once. The location may be relative to the
    warehouse.
    """
    place = lay(node, "old")

    assert failure_of(node.post(f"{table('lance', 't')}/register", {"location": "nowhere"})) == (409, 19)
    assert failure_of(node.post(f"{table('lance', 't')}/register", {"location": ""})) == (400, 13)
    assert failure_of(node.post(f"{table('lance', 't')}/register", {})) == (400, 13)
    registered = node.done("POST", f"{table('lance', 't')}/register", {"location": "old", "properties": {"k": "v"}})
    assert registered == {"location": place, "properties": {"k": "v"}}
    assert failure_of(node.post(f"{table('lance', 'u')}/register", {"location": place})) == (400, 13)
    assert failure_of(node.post(f"{table('lance', 't')}/register", {"location": place})) == (409, 5)


def test_register_of_a_link_out_of_the_warehouse_is_refused(node: DriverNode, tmp_path: Path) -> None:
    """Registering a link in the warehouse that leads out of it is refused."""
    (tmp_path / "secret" / "_versions").mkdir(parents=True)
    (tmp_path / "secret" / "_versions" / "1.manifest").write_bytes(b"x")
    (node.data / "warehouse" / "lance").mkdir(parents=True)
    (node.data / "warehouse" / "lance" / "link").symlink_to(tmp_path / "secret")

    assert failure_of(node.post(f"{table('lance', 't')}/register", {"location": "link"})) == (409, 19)


def test_register_in_overwrite_mode_replaces_the_table(node: DriverNode) -> None:
    """In the mode Overwrite, a register replaces the table of the name. The files of the replaced table stay."""
    first = declare(node, "lance", "t")["location"]
    write(first)

    response = node.done("POST", f"{table('lance', 't')}/register", {"location": lay(node, "new"), "mode": "Overwrite"})
    again = node.done("POST", f"{table('lance', 't')}/register", {"location": str(first), "mode": "overwrite"})

    assert (again["location"], path_of(response["location"]).is_dir()) == (first, True)
    assert lance.dataset(str(first)).count_rows() == 2


def test_deregister_keeps_files_and_drop_deletes_them(node: DriverNode) -> None:
    """Files of a deregistered table stay and can be registered again; those of a dropped one are deleted after the
    trash retention.
    """
    place = declare(node, "lance", "t", properties={"k": "v"})["location"]
    write(place)
    (path_of(place) / "notes.txt").write_text("somebody else's")

    deregistered = node.done("POST", f"{table('lance', 't')}/deregister", {})
    node.done("POST", f"{table('lance', 't')}/register", {"location": place})
    dropped = node.done("POST", f"{table('lance', 't')}/drop")

    assert deregistered == {"id": ["lance", "t"], "location": place, "properties": {"k": "v"}}
    assert dropped == {"id": ["lance", "t"], "location": place, "properties": {}}
    work(node)
    assert lance.dataset(str(place)).count_rows() == 2
    expire(node)
    work(node)
    assert [each.name for each in path_of(place).rglob("*")] == ["notes.txt"]


def expire(node: DriverNode) -> None:
    """Advance the time beyond the trash retention."""

    async def go() -> None:
        store = node.built.services.store
        await store.submit(upkeep_permit("t"), lambda tx: tx.count(EXPIRE, {}))
        await store.submit(upkeep_permit("t"), trash_sweep)

    node.runner.run(go())


def test_dropped_table_can_be_restored_with_its_rows(node: DriverNode) -> None:
    """A restored table has its rows, and none of its files are deleted later."""
    place = declare(node, "lance", "t")["location"]
    write(place)
    node.done("POST", f"{table('lance', 't')}/drop", {"id": ["lance", "t"]})
    assert failure_of(node.post(f"{table('lance', 't')}/describe", {})) == (404, 4)

    (row,) = node.done("GET", TRASH)["trash"]
    node.done("POST", f"{TRASH}/{row['id']}/undrop", {})
    expire(node)
    work(node)

    assert node.done("POST", f"{table('lance', 't')}/describe", {})["version"] == 1


def test_table_removed_from_the_trash_keeps_its_files(node: DriverNode) -> None:
    """If a table is removed from the trash by request, its files stay."""
    place = declare(node, "lance", "t")["location"]
    write(place)
    node.done("POST", f"{table('lance', 't')}/drop")
    (row,) = node.done("GET", TRASH)["trash"]

    node.done("DELETE", f"{TRASH}/{row['id']}")
    work(node)

    assert lance.dataset(str(place)).count_rows() == 2


def test_rename_keeps_files_grants_and_properties(node: DriverNode) -> None:
    """A renamed or moved table keeps its files, grants and properties."""
    make_space(node, "lance", "a")
    declared = declare(node, "lance", "t", properties={"k": "v"})

    assert node.done("POST", f"{table('lance', 't')}/rename", {"new_table_name": "u"}) == {}
    node.done("POST", f"{table('lance', 'u')}/rename", {"new_table_name": "w", "new_namespace_id": ["lance", "a"]})
    description = node.done("POST", f"{table('lance', 'a', 'w')}/describe", {})
    node.done("POST", f"{table('lance', 'a', 'w')}/rename", {"new_table_name": "t", "new_namespace_id": ["lance"]})

    assert (description["location"], description["properties"]) == (declared["location"], {"k": "v"})
    declare(node, "lance", "a", "x")
    at = f"{table('lance', 'a', 'x')}/rename"
    assert failure_of(node.post(at, {"new_table_name": "t", "new_namespace_id": ["lance"]})) == (409, 5)
    assert failure_of(node.post(at, {"new_table_name": "t", "new_namespace_id": ["lance", "no"]})) == (404, 1)
    assert failure_of(node.post(at, {"new_table_name": "t", "new_namespace_id": ["main", "a"]})) == (400, 13)
    assert failure_of(node.post(at, {"new_table_name": ""})) == (400, 13)
    assert failure_of(node.post(at, {})) == (400, 13)


def test_all_tables_lists_every_depth_in_pages(node: DriverNode) -> None:
    """All visible tables are listed at every depth with their full identifiers, in pages."""
    make_space(node, "lance", "a")
    make_space(node, "lance", "a", "b")
    iceberg.make_table(node, "x", "t")
    for path in (("lance", "r"), ("lance", "a", "t"), ("lance", "a", "u"), ("lance", "a", "b", "t")):
        declare(node, *path)
    whole = ["lance$r", "lance$a$t", "lance$a$u", "lance$a$b$t"]

    assert node.done("GET", f"{ROOT}/table") == {"tables": whole}
    assert node.done("GET", f"{ROOT}/table/?delimiter=.")["tables"][-1] == "lance.a.b.t"
    assert node.done("GET", f"{ROOT}/table?include_declared=false") == {"tables": []}
    for size in (1, 2, 3):
        listed: list[str] = []
        query = f"limit={size}"
        while query:
            page = node.done("GET", f"{ROOT}/table?{query}")
            assert 0 < len(page["tables"]) <= size
            listed += page["tables"]
            query = f"limit={size}&page_token={page['page_token']}" if "page_token" in page else ""
        assert listed == whole


def test_hidden_tables_are_removed_before_paging(node: DriverNode) -> None:
    """Hidden tables are removed before the list is divided into pages."""
    make_space(node, "lance", "a")
    for name in "abcd":
        declare(node, "lance", "a", name)
    grant(node, "ana", "use_catalog use_schema", kind="CATALOG", on="lance")
    grant(node, "ana", "select_table", kind="TABLE", on="lance.a.b")
    grant(node, "ana", "modify_table", kind="TABLE", on="lance.a.d")

    first = node.get(f"{space('lance', 'a')}/table/list?limit=1", user="ana").json()

    assert first["tables"] == ["b"]
    rest = node.get(f"{space('lance', 'a')}/table/list?limit=1&page_token={first['page_token']}", user="ana").json()
    assert rest == {"tables": ["d"]}
    assert node.get(f"{ROOT}/table", user="ana").json() == {"tables": ["lance$a$b", "lance$a$d"]}


def test_iceberg_rest_refuses_lance_tables(node: DriverNode) -> None:
    """Over Iceberg REST a Lance table is not listed, and is refused with the reason."""
    make_space(node, "lance", "a")
    declare(node, "lance", "a", "t")
    root = "/iceberg/v1/lake.lance/namespaces/a/tables"

    assert node.done("GET", root)["identifiers"] == []
    for method, path, body in (("GET", "/t", None), ("DELETE", "/t", None), ("POST", "/t", {"updates": []})):
        status, kind, message = iceberg.error_of(node.ask(method, root + path, body))
        assert (status, kind) == (404, "NoSuchTableException")
        assert "a Lance table: open it over Lance REST" in message
    assert node.ask("HEAD", f"{root}/t").status == 404
    assert iceberg.error_of(node.post(root, {"name": "n", "schema": iceberg.SCHEMA}))[0] == 400


def test_grants_hold_for_lance_tables(node: DriverNode) -> None:
    """Lance tables have the same privileges as all tables: SELECT_TABLE to describe, ownership to drop. Grants refer to
    them by full names.
    """
    declare(node, "lance", "t")
    node.done("POST", f"{API}/lake/users", {"name": "ana"})
    at = table("lance", "t")
    assert failure_of(node.post(f"{at}/describe", {}, user="ana")) == (403, 15)

    grant(node, "ana", "use_catalog use_schema", kind="CATALOG", on="lance")
    grant(node, "ana", "select_table", kind="TABLE", on="lance.default.t")

    assert node.post(f"{at}/describe", {}, user="ana").status == 200
    assert failure_of(node.post(f"{at}/drop", user="ana")) == (403, 15)
    node.done("PUT", f"{API}/lake/owners/TABLE/lance.default.t", {"name": "ana", "type": "USER"})
    assert node.post(f"{at}/drop", user="ana").status == 200


def test_namespace_named_like_the_setting_takes_precedence(node: DriverNode) -> None:
    """If a namespace with the setting's name has a table of the name, a full name means that table."""
    make_space(node, "lance", "default")
    declare(node, "lance", "default", "t")
    declare(node, "lance", "t")
    grant(node, "ana", "use_catalog use_schema", kind="CATALOG", on="lance")
    grant(node, "ana", "select_table", kind="TABLE", on="lance.default.t")

    assert node.post(f"{table('lance', 'default', 't')}/describe", {}, user="ana").status == 200
    assert failure_of(node.post(f"{table('lance', 't')}/describe", {}, user="ana")) == (403, 15)


@pytest.mark.parametrize(
    "action", ["table/t/backfill_column", "materialized_view/t/create", "materialized_view/t/refresh"]
)
def test_unsupported_operations_return_406(node: DriverNode, action: str) -> None:
    """Unsupported operations are 406 with code 0 and advice, whatever the body is."""
    headers = {"content_type": "application/vnd.apache.arrow.stream"}

    answer = node.ask("POST", f"{ROOT}/{action}", b"\x00" * 70_000, **headers)

    assert failure_of(answer) == (406, 0)
    assert "This server does not serve" in answer.json()["error"]


def test_dry_run_answers_like_the_run_and_stores_nothing(lake: DriverNode) -> None:
    """A dry run has the same answer and refusals as the run, also below missing namespaces, and stores nothing."""
    make_space(lake, "lance", "a")
    declare(lake, "lance", "taken")
    used_location = declare(lake, "lance", "t")["location"]
    place = lay(lake, "old")

    def dry(*path: str, action: str = "register", location: object = place) -> tuple[int, object]:
        answer = lake.post(f"{table(*path)}/{action}?dry_run=true", {"location": location})
        return (200, answer.json()["location"]) if answer.status == 200 else failure_of(answer)

    for path in (("lance", "new"), ("lance", "a", "new"), ("lance", "x", "y", "new")):
        assert dry(*path) == (200, place), path
        assert dry(*path, action="declare", location=f"{place}-free") == (200, f"{place}-free"), path
        for elsewhere in ("/etc", used_location, f"{used_location}/data"):
            assert dry(*path, action="declare", location=elsewhere) == (400, 13), (path, elsewhere)
        assert dry(*path, location=f"{place}-none") == (409, 19), path
        assert dry(*path, location="/etc")[0] == 400, path
    assert dry("lance", "t") == (409, 5)
    assert dry("lance", "taken", "new") == (409, 5)

    assert names(lake.get(f"{space('lance')}/table/list")) == ["t", "taken"]
    assert names(lake.get(f"{space('lance')}/list")) == ["a"]
    assert lake.done("POST", f"{table('lance', 'a', 'new')}/register", {"location": place})["location"] == place


def test_a_dry_run_takes_the_privileges_of_the_run(node: DriverNode) -> None:
    """A dry run needs the same privileges: CREATE_TABLE, and CREATE_SCHEMA for a missing namespace."""
    make_space(node, "lance", "a")
    place = lay(node, "old")
    for who, rights in (("tables", "create_table"), ("schemas", "create_schema"), ("reads", "select_table")):
        grant(node, who, f"use_catalog use_schema {rights}", kind="CATALOG", on="lance")

    def statuses(*path: str) -> dict[str, list[int]]:
        return {
            who: [
                node.post(f"{table(*path)}/{action}?dry_run=true", {"location": at}, user=who).status
                for action, at in (("register", place), ("declare", f"{place}-free"))
            ]
            for who in ("tables", "schemas", "reads")
        }

    inside = statuses("lance", "a", "new")
    missing = statuses("lance", "x", "new")

    assert inside == {"tables": [200, 200], "schemas": [403, 403], "reads": [403, 403]}
    assert missing == {"tables": [403, 403], "schemas": [200, 200], "reads": [403, 403]}
    assert failure_of(node.post(f"{table('lance', 'a', 'new')}/register?dry_run=maybe", {"location": place})) == (
        400,
        13,
    )


def test_register_overwrite_needs_the_privilege_to_drop(node: DriverNode) -> None:
    """A register that overwrites a table needs the right to drop that table."""
    place = declare(node, "lance", "t")["location"]
    grant(node, "ana", "use_catalog use_schema create_table modify_table", kind="CATALOG", on="lance")

    answer = node.post(
        f"{table('lance', 't')}/register", {"location": lay(node, "new"), "mode": "Overwrite"}, user="ana"
    )

    assert answer.status == 403, answer.body
    assert node.done("POST", f"{table('lance', 't')}/describe", {})["location"] == place
