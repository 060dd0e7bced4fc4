# SPDX-License-Identifier: Apache-2.0
"""The requests and the output of each command."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import pytest

from tests.cli.conftest import Run
from tests.client.fake import FakeServer

M = "/api/metalakes/lake"
I = "/iceberg/v1/lake.main"  # noqa: E741 - the Iceberg prefix
OWN = "/api/limnos/v1"
PAGE = "pageToken=&pageSize=1000"
AUDIT = {"creator": "ana", "createTime": "2026-01-01T00:00:00Z"}
USER = {"name": "ben", "roles": ["r"], "enabled": True}
NO = {"error": {"message": "no such thing", "code": 404}}
METADATA = {
    "format-version": 2,
    "table-uuid": "u-1",
    "location": "file:/w/1",
    "current-schema-id": 1,
    "schemas": [
        {"schema-id": 0, "fields": []},
        {
            "schema-id": 1,
            "fields": [
                {"name": "id", "type": "long", "required": True, "doc": "number of the order"},
                {"name": "tags", "type": {"type": "list", "element": "string"}, "required": False},
            ],
        },
    ],
    "default-spec-id": 0,
    "partition-specs": [{"spec-id": 0, "fields": [{"name": "day", "transform": "day"}]}],
    "snapshots": [
        {},
        {
            "snapshot-id": 9,
            "summary": {
                "operation": "append",
                "total-records": "12",
                "total-files-size": "345",
                "total-data-files": "2",
            },
        },
    ],
    "current-snapshot-id": 9,
    "last-updated-ms": 1_767_225_600_000,
    "properties": {"owner": "ana"},
}
TABLE = {"metadata-location": "file:/w/1/m.json", "metadata": METADATA}


def is_namespace(fake: FakeServer, *levels: str) -> None:
    """Add routes that make a path a namespace only."""
    fake.on("GET", f"{I}/namespaces/{'%1F'.join(levels)}", {"namespace": levels, "properties": {"k": "v"}})


def is_table(fake: FakeServer, *levels: str) -> None:
    """Add routes that make a path a table only."""
    url = f"{I}/namespaces/{'%1F'.join(levels[:-1])}/tables/{levels[-1]}"
    fake.on("GET", f"{url}?snapshots=refs", TABLE).on("GET", url, TABLE)


def test_ls_lists_catalogs(fake: FakeServer, limnos: Run) -> None:
    """Without a path `ls` lists the catalogs. Of a catalog that the caller may not load, only the name is listed."""
    fake.on(
        "GET",
        f"{M}/catalogs?details=true",
        {"catalogs": [{"name": "main", "type": "relational", "provider": "lakehouse-iceberg", "comment": "sales"}]},
    )
    fake.on("GET", f"{M}/catalogs", {"identifiers": [{"name": "held"}, {"name": "main"}]})

    done, table = limnos("ls"), limnos("ls", "--output", "table").out

    assert done.code == 0
    main_entry = {
        "name": "main",
        "kind": "catalog",
        "path": ["main"],
        "provider": "lakehouse-iceberg",
        "comment": "sales",
    }
    assert done.result == [{"name": "held", "kind": "catalog", "path": ["held"]}, main_entry]
    assert "provider" in table
    assert "sales" in table


def test_ls_lists_metalakes(fake: FakeServer, limnos: Run) -> None:
    """With the kind `metalake` `ls` lists the metalakes."""
    fake.on("GET", "/api/metalakes", {"metalakes": [{"name": "lake"}]})

    assert limnos("ls", "--kind", "metalake").result == [{"name": "lake", "kind": "metalake", "path": []}]


def test_ls_lists_namespaces_tables_and_views(fake: FakeServer, limnos: Run) -> None:
    """`ls` of a namespace lists child namespaces, then tables, then views, with paths that can be typed again."""
    fake.on("GET", f"{I}/namespaces?parent=raw&{PAGE}", {"namespaces": [["raw", "new york"]]})
    fake.on("GET", f"{I}/namespaces/raw/tables?{PAGE}", {"identifiers": [{"namespace": ["raw"], "name": "t"}]})
    fake.on("GET", f"{I}/namespaces/raw/views?{PAGE}", {"identifiers": [{"namespace": ["raw"], "name": "v"}]})

    done = limnos("ls", "main.raw", "--output", "table")

    assert done.code == 0
    lines = [line.split() for line in done.out.splitlines()]
    entries = [["main.raw.`new", "york`", "namespace"], ["main.raw.t", "table"], ["main.raw.v", "view"]]
    assert lines == [["name", "kind"], *entries]


def test_ls_of_a_catalog_requests_no_iceberg_tables(fake: FakeServer, limnos: Run) -> None:
    """`ls` of a catalog sends no request for Iceberg tables, only for Lance tables. If it is empty, the message is on
    standard error, not in pipes.
    """
    fake.on("GET", f"{I}/namespaces?{PAGE}", {"namespaces": []})

    done = limnos("ls", "main", "--output", "table")

    assert (done.code, done.out, done.err) == (0, "", "nothing\n")
    assert len(fake.asked) == 3  # and the catalog itself, because catalogs over external systems have no nodes


STEERING = "\x1b]0;owned\x07\u202egpj.exe\u200b\x9b2J\x7f"
"""Sets a terminal's title, reverses the text direction, hides text, clears the screen."""


def harmless(text: str) -> bool:
    """Return whether a text has no control and bidi characters, which a terminal would interpret."""
    return all(char == "\n" or char.isprintable() for char in text)


@pytest.mark.parametrize("output", ["table", "json"])
def test_control_characters_in_output_are_escaped(fake: FakeServer, limnos: Run, output: str) -> None:
    """Properties, names, errors and results are printed with control and bidi characters as escapes."""
    metalake = {"name": "lake", "comment": STEERING, "properties": {f"k{STEERING}": f"v{STEERING}\nforged = yes"}}
    fake.on("GET", M, {"metalake": metalake | {"audit": AUDIT}})
    fake.on("GET", "/api/metalakes", {"metalakes": [{"name": f"lake\n{STEERING}"}]})
    fake.on("GET", f"{M}/users/ben", {"code": 1003, "message": STEERING}, status=404)
    fake.on("POST", f"{M}/users", {"user": {"name": STEERING}})
    fake.on(
        "POST",
        f"{OWN}/metalakes/lake/access/explain",
        {
            "decision": {"allowed": False, "message": STEERING, "factors": [{"kind": "deny", "role": STEERING}]},
            "suggestions": [STEERING],
        },
    )

    results = [
        limnos(*words, "--output", output)
        for words in (
            ["describe"],
            ["ls", "--kind", "metalake"],
            ["user", "describe", "ben"],
            ["user", "add", "x"],
            ["access", "explain", "user_list"],
        )
    ]

    assert [done.code for done in results] == [0, 0, 3, 0, 7]
    assert all("owned" in done.out + done.err for done in results)
    assert [done for done in results if not harmless(done.out + done.err)] == []
    if output == "json":
        assert results[0].result == metalake | {
            "kind": "metalake",
            "created_by": "ana",
            "created_at": AUDIT["createTime"],
        } | {
            "modified_by": None,
            "modified_at": None,
        }
    else:
        assert "\nforged" not in results[0].out.replace(" ", "")
        assert len(results[1].out.splitlines()) == 2


def test_describe_without_a_path_shows_the_metalake(fake: FakeServer, limnos: Run) -> None:
    """Without a path `describe` shows the metalake."""
    fake.on("GET", M, {"metalake": {"name": "lake", "comment": "all", "properties": {"a": "1"}, "audit": AUDIT}})

    done = limnos("describe", "--output", "table")

    assert done.code == 0
    assert "comment     all\n" in done.out
    assert "properties  a = 1\n" in done.out
    assert "created_by  ana\n" in done.out


def test_describe_shows_provider_and_properties_of_catalog(fake: FakeServer, limnos: Run) -> None:
    """A catalog is shown with its provider and properties."""
    catalog = {"name": "main", "type": "relational", "provider": "lakehouse-iceberg", "properties": {}, "audit": AUDIT}
    fake.on("GET", f"{M}/catalogs/main", {"catalog": catalog})

    result = limnos("describe", "main").result

    assert isinstance(result, dict)
    assert (result["kind"], result["provider"], result["path"]) == ("catalog", "lakehouse-iceberg", ["main"])


def test_describe_shows_properties_of_namespace(fake: FakeServer, limnos: Run) -> None:
    """A namespace is shown with its properties."""
    is_namespace(fake, "raw")

    result = limnos("describe", "main.raw").result

    assert result == {
        "kind": "namespace",
        "name": "main.raw",
        "path": ["main", "raw"],
        "comment": None,
        "properties": {"k": "v"},
    }


def test_describe_shows_columns_owner_and_location_of_table(fake: FakeServer, limnos: Run) -> None:
    """A table is shown with its current columns, row counts, owner and location; JSON has the complete metadata."""
    is_table(fake, "raw", "t")
    fake.on("GET", f"{M}/owners/table/main.raw.t", {"owner": {"name": "ana", "type": "user"}})

    result = limnos("describe", "main.raw.t").result
    text = limnos("describe", "main.raw.t", "--output", "table").out

    assert isinstance(result, dict)
    assert result["columns"] == {"id": "long required", "tags": "list<string>"}
    assert result["partition_by"] == ["day (day)"]
    assert result["metadata"] == METADATA
    details = {
        key: result[key] for key in ("rows", "size_bytes", "data_files", "last_change", "last_operation", "owner")
    }
    assert details == {
        "rows": 12,
        "size_bytes": 345,
        "data_files": 2,
        "last_change": "2026-01-01T00:00:00Z",
        "last_operation": "append",
        "owner": "user ana",
    }
    assert result["column_comments"] == {"id": "number of the order"}
    assert "id = number of the order" in text
    assert "id = long required" in text
    assert "metadata  " not in text


@pytest.mark.parametrize(
    "words,method,target,body,answer,message",
    [
        (
            ["metalake", "sea", "--comment", "c"],
            "POST",
            "/api/metalakes",
            {"name": "sea", "comment": "c", "properties": {}},
            {"metalake": {"name": "sea"}},
            "created metalake sea",
        ),
        (
            ["catalog", "lab", "--warehouse", "s3://b", "--property", "a=b=c"],
            "POST",
            f"{M}/catalogs",
            {
                "name": "lab",
                "type": "relational",
                "provider": "lakehouse-iceberg",
                "properties": {"a": "b=c", "warehouse": "s3://b"},
            },
            {"catalog": {"name": "lab", "type": "relational"}},
            "created catalog lab",
        ),
        (
            ["namespace", "main.a.`b.c`", "--property", "k=v"],
            "POST",
            f"{I}/namespaces?parents=false",
            {"namespace": ["a", "b.c"], "properties": {"k": "v"}},
            {"namespace": ["a", "b.c"], "properties": {"k": "v"}},
            "created namespace main.a.`b.c`",
        ),
    ],
    ids=["metalake", "catalog", "namespace"],
)
def test_create_sends_request_and_reports_the_object(  # noqa: PLR0917 - one column per part of the case
    fake: FakeServer,
    limnos: Run,
    words: list[str],
    method: str,
    target: str,
    body: object,
    answer: object,
    message: str,
) -> None:
    """`create` creates the named object and reports it."""
    fake.on(method, target, answer)

    done = limnos("create", *words, "--output", "table")

    assert (done.code, done.out) == (0, f"{message}\n")
    assert fake.asked[0].body == body


def test_create_namespace_with_parents(fake: FakeServer, limnos: Run) -> None:
    """`--parents` creates all missing ancestors in one request."""
    fake.on("POST", f"{I}/namespaces?parents=true", {"namespace": ["a", "b"], "properties": {}})

    done = limnos("create", "namespace", "main.a.b", "--parents")

    assert done.code == 0
    assert fake.asked[-1].body == {"namespace": ["a", "b"], "properties": {}}


@pytest.mark.parametrize(
    "words,call",
    [
        (["main.raw", "--kind", "namespace"], f"DELETE {I}/namespaces/raw"),
        (["main.raw.t", "--kind", "table"], f"DELETE {I}/namespaces/raw/tables/t"),
        (["main.raw.t", "--kind", "table", "--purge"], f"DELETE {I}/namespaces/raw/tables/t?purgeRequested=true"),
        (["lab"], f"DELETE {M}/catalogs/lab"),
        (["lab", "--force"], f"DELETE {M}/catalogs/lab?force=true"),
        (["sea", "--kind", "metalake", "--force"], "DELETE /api/metalakes/sea?force=true"),
    ],
)
def test_drop_sends_request_and_reports_the_object(fake: FakeServer, limnos: Run, words: list[str], call: str) -> None:
    """`drop` drops the named object over the protocol for its kind and reports it."""
    method, _, target = call.partition(" ")
    fake.on(method, target, {"dropped": True})

    done = limnos("drop", *words)

    assert done.code == 0
    assert [each for each in fake.calls if not each.startswith("GET")] == [call]
    assert isinstance(done.result, dict)
    assert done.result["dropped"] == words[0]


def test_drop_without_a_kind_detects_the_kind(fake: FakeServer, limnos: Run) -> None:
    """Without a kind `drop` detects whether a path is a namespace or a table."""
    is_table(fake, "raw", "t")
    fake.on("GET", f"{I}/namespaces/raw%1Ft", NO, status=404)
    fake.on("DELETE", f"{I}/namespaces/raw/tables/t", status=204)

    done = limnos("drop", "main.raw.t", "--output", "table")

    assert (done.code, done.out) == (0, "deleted table main.raw.t; 'limnos undrop main.raw.t' restores it\n")


IN_USE = {"code": 1010, "type": "CatalogInUseException", "message": "Failed to operate x, reason [in use]"}


def test_enabled_empty_catalog_is_disabled_before_drop(fake: FakeServer, limnos: Run) -> None:
    """An enabled, empty catalog is disabled before the drop, so that nothing can be created in it meanwhile."""
    fake.on("DELETE", f"{M}/catalogs/lab", IN_USE, status=409).on("DELETE", f"{M}/catalogs/lab", {"dropped": True})
    fake.on("GET", f"/iceberg/v1/lake.lab/namespaces?{PAGE}", {"namespaces": []})
    fake.on("PATCH", f"{M}/catalogs/lab", {"code": 0})

    done = limnos("drop", "lab")

    assert done.code == 0
    assert [call.split()[0] for call in fake.calls] == ["DELETE", "GET", "PATCH", "DELETE"]
    assert fake.asked[2].body == {"inUse": False}


def test_catalog_with_children_is_not_disabled_or_dropped(fake: FakeServer, limnos: Run) -> None:
    """An enabled catalog with children is neither disabled nor dropped."""
    fake.on("DELETE", f"{M}/catalogs/lab", IN_USE, status=409)
    fake.on("GET", f"/iceberg/v1/lake.lab/namespaces?{PAGE}", {"namespaces": [["a"]]})

    done = limnos("drop", "lab")

    assert (done.code, done.error["message"]) == (5, "in use")
    assert " --recursive'" in str(done.error["hint"])
    assert [call.split()[0] for call in fake.calls] == ["DELETE", "GET"]


def test_catalog_is_enabled_again_if_its_drop_is_refused(fake: FakeServer, limnos: Run) -> None:
    """If the drop of a disabled catalog is refused, the catalog is enabled again."""
    fake.on("DELETE", f"{M}/catalogs/lab", IN_USE, status=409)
    fake.on("DELETE", f"{M}/catalogs/lab", {"code": 1005, "message": "not empty"}, status=409)
    fake.on("GET", f"/iceberg/v1/lake.lab/namespaces?{PAGE}", {"namespaces": []})
    fake.on("PATCH", f"{M}/catalogs/lab", {"code": 0})

    done = limnos("drop", "lab")

    assert (done.code, done.error["code"]) == (5, "not-empty")
    assert fake.asked[-1].body == {"inUse": True}


def test_drop_of_missing_object_exits_with_not_found(fake: FakeServer, limnos: Run) -> None:
    """If Gravitino answers `"dropped": false`, the exit code is that of missing objects."""
    fake.on("DELETE", f"{M}/catalogs/lab", {"dropped": False})

    done = limnos("drop", "lab")

    assert (done.code, done.error["code"]) == (3, "not-found")


@pytest.mark.parametrize("words", [["lab", "--purge"], ["main.raw", "--kind", "namespace", "--force"]])
def test_drop_flags_are_refused_for_other_kinds(fake: FakeServer, limnos: Run, words: list[str]) -> None:
    """`--purge` is refused except for tables, `--force` except for catalogs and metalakes, and nothing is dropped."""
    done = limnos("drop", *words)

    assert done.code == 2
    assert fake.asked == []


def test_mv_moves_a_namespace(fake: FakeServer, limnos: Run) -> None:
    """`mv` detects the kind of the source and moves it within its catalog."""
    is_namespace(fake, "raw", "nyc")
    fake.on("POST", f"{OWN}/metalakes/lake/catalogs/main/move", {"kind": "namespace", "path": ["main", "old", "nyc"]})

    done = limnos("mv", "main.raw.nyc", "main.old.nyc")

    assert done.code == 0
    assert fake.asked[-1].body == {"kind": "namespace", "source": ["raw", "nyc"], "target": ["old", "nyc"]}
    assert isinstance(done.result, dict)
    assert done.result["target"] == "main.old.nyc"


def test_mv_across_catalogs_is_refused(fake: FakeServer, limnos: Run) -> None:
    """Moves across catalogs are refused before a request is sent."""
    assert limnos("mv", "main.a", "other.a", "--kind", "namespace").code == 2
    assert fake.asked == []


@pytest.mark.parametrize(
    "words,call,body,answer,message",
    [
        (["add", "ben"], f"POST {M}/users", {"name": "ben"}, {"user": USER}, "added user ben"),
        (
            ["disable", "ben"],
            f"PATCH {OWN}/metalakes/lake/users/ben",
            {"enabled": False},
            {"user": {"name": "ben", "enabled": False}},
            "disabled user ben",
        ),
        (
            ["enable", "ben"],
            f"PATCH {OWN}/metalakes/lake/users/ben",
            {"enabled": True},
            {"user": USER},
            "enabled user ben",
        ),
    ],
    ids=["add", "disable", "enable"],
)
def test_user_commands_send_one_request_each(  # noqa: PLR0917 - one column per part of the case
    fake: FakeServer, limnos: Run, words: list[str], call: str, body: object, answer: object, message: str
) -> None:
    """Each command of `user` sends one request and reports success."""
    method, _, target = call.partition(" ")
    fake.on(method, target, answer)

    done = limnos("user", *words, "--output", "table")

    assert (done.code, done.out) == (0, f"{message}\n")
    assert (fake.calls, fake.asked[0].body) == ([call], body)


@pytest.mark.parametrize("kind, command", [("user", ("user", "remove")), ("group", ("group", "delete"))])
def test_own_role_of_a_removed_holder_is_named(
    fake: FakeServer, limnos: Run, kind: str, command: tuple[str, str]
) -> None:
    """A removal names the own role of the user or group, which stays, and the command that deletes it."""
    fake.on("GET", f"{OWN}/metalakes/lake/search?q=owner%3A%22ben%22&limit=3", {"hits": []})
    fake.on("DELETE", f"{M}/{kind}s/ben", {"removed": True})
    privilege = {"name": "select_table", "condition": "allow"}
    securable = {"fullName": "main.raw.t", "type": "table", "privileges": [privilege]}
    fake.on(
        "GET",
        f"{M}/roles/{kind}%3Aben",
        {"role": {"name": f"{kind}:ben", "properties": {}, "securableObjects": [securable]}},
    )

    done = limnos(*command, "ben", "--yes", "--output", "table")

    assert done.code == 0, done.err
    assert f"note: role {kind}:ben stays, with 1 grants: 'limnos delete role {kind}:ben' deletes it" in done.err


@pytest.mark.parametrize("owned", [True, False])
def test_removed_user_leaves_objects_that_are_named(fake: FakeServer, limnos: Run, owned: bool) -> None:
    """A removal names objects that the user owns, because they remain without an owner; without any it prints none."""
    hit = {"id": 7, "kind": "table", "path": ["main", "raw", "t"], "tier": 1}
    fake.on("GET", f"{OWN}/metalakes/lake/search?q=owner%3A%22ben%22&limit=3", {"hits": [hit] if owned else []})
    fake.on("DELETE", f"{M}/users/ben", {"removed": True})

    done = limnos("user", "remove", "ben", "--yes", "--output", "table")

    assert (done.code, done.out) == (0, "removed user ben\n")
    assert ("ben owns main.raw.t, whose objects need another owner" in done.err) is owned


def test_users_are_listed(fake: FakeServer, limnos: Run) -> None:
    """`user list` shows names, state and roles; `user describe` one of them."""
    fake.on("GET", f"{M}/users?details=true", {"users": [USER, {"name": "eve", "enabled": False}]})
    fake.on("GET", f"{M}/users/ben", {"user": USER})
    fake.on("GET", f"{OWN}/metalakes/lake/users/ben/groups", {"groups": ["staff"]})

    listed = limnos("user", "list")
    table = limnos("user", "list", "--output", "table").out
    one = limnos("user", "describe", "ben")

    assert listed.result == [
        {"name": "ben", "enabled": True, "roles": ["r"]},
        {"name": "eve", "enabled": False, "roles": []},
    ]
    assert [line.split() for line in table.splitlines()[1:]] == [["ben", "yes", "r"], ["eve", "no"]]
    assert one.result == {"name": "ben", "enabled": True, "roles": ["r"], "groups": ["staff"]}


def test_groups_are_created_listed_and_deleted(fake: FakeServer, limnos: Run) -> None:
    """The commands of `group` create, list, describe and delete groups."""
    group = {"name": "staff", "roles": ["r"]}
    fake.on("POST", f"{M}/groups", {"group": group})
    fake.on("GET", f"{M}/groups?details=true", {"groups": [group]})
    fake.on("GET", f"{M}/groups/staff", {"group": group})
    fake.on("GET", f"{OWN}/metalakes/lake/groups/staff/members", {"members": ["ana"]})
    fake.on("DELETE", f"{M}/groups/staff", {"removed": True})

    assert limnos("group", "create", "staff").result == {"name": "staff", "roles": ["r"]}
    assert limnos("group", "list").result == [{"name": "staff", "roles": ["r"]}]
    assert limnos("group", "describe", "staff").result == {"name": "staff", "roles": ["r"], "members": ["ana"]}
    assert limnos("group", "delete", "staff").result == {"deleted": "staff"}


def test_group_members_are_added_and_removed(fake: FakeServer, limnos: Run) -> None:
    """`group add` adds users in one request; `group remove` removes them and reports users who were not members."""
    url = f"{OWN}/metalakes/lake/groups/staff/members"
    fake.on("POST", url, {"members": ["ana", "ben"]})
    fake.on("DELETE", f"{url}/ana", {"removed": True})
    fake.on("DELETE", f"{url}/zoe", {"removed": False})

    added = limnos("group", "add", "staff", "ana", "ben")
    removed = limnos("group", "remove", "staff", "ana")
    absent = limnos("group", "remove", "staff", "ana", "zoe")

    assert added.result == {"group": "staff", "members": ["ana", "ben"]}
    assert removed.result == {"group": "staff", "removed": ["ana"]}
    assert (absent.code, absent.error["message"]) == (3, "not in group 'staff': zoe")


def test_group_add_without_users_is_a_usage_error(fake: FakeServer, limnos: Run) -> None:
    """`group add` without users is a usage error, and the hint shows the syntax."""
    done = limnos("group", "add", "staff")

    assert (done.code, done.error["code"]) == (2, "usage")
    assert "limnos group add staff ana" in str(done.error["hint"])


def test_tags_are_created_attached_and_shown(fake: FakeServer, limnos: Run) -> None:
    """The commands of `tag` create tags, attach them, and show the objects of a tag and the tags of an object."""
    tag, row = {"name": "red", "comment": "c"}, {"name": "red", "comment": "c", "properties": {}}
    on = f"{M}/objects/catalog/main/tags"
    fake.on("POST", f"{M}/tags", {"tag": tag}).on("GET", f"{M}/tags?details=true", {"tags": [tag]})
    fake.on("GET", f"{M}/tags/red", {"tag": tag}).on("DELETE", f"{M}/tags/red", {"dropped": True})
    fake.on("GET", f"{M}/tags/red/objects", {"metadataObjects": [{"fullName": "main.a", "type": "schema"}]})
    fake.on("GET", f"{on}?details=true", {"tags": [{**tag, "inherited": False}]}).on("POST", on, {"names": ["red"]})

    assert limnos("tag", "create", "red", "--comment", "c").result == row
    assert limnos("tag", "list").result == [row]
    assert limnos("tag", "list", "main").result == [{**row, "inherited": False}]
    assert limnos("tag", "describe", "red").result == {**row, "objects": [{"kind": "namespace", "object": "main.a"}]}
    assert limnos("tag", "add", "red", "main").result == {"object": "main", "tags": ["red"]}
    assert fake.asked[-1].body == {"tagsToAdd": ["red"], "tagsToRemove": []}
    assert limnos("tag", "remove", "red", "main").result == {"object": "main", "tags": ["red"]}
    assert fake.asked[-1].body == {"tagsToAdd": [], "tagsToRemove": ["red"]}
    assert limnos("tag", "delete", "red").result == {"deleted": "red"}


def test_objects_of_roles_and_tags_are_paths_that_commands_take(fake: FakeServer, limnos: Run) -> None:
    """The pages of roles and tags have the paths of objects, not Gravitino's names, and `--on` takes them."""
    names = [("main.raw:nyc.late", "TABLE"), ("main.raw:nyc", "SCHEMA"), ("lance.docs", "TABLE"), ("main", "CATALOG")]
    paths = ["main.raw.nyc.late", "main.raw.nyc", "lance.docs", "main"]
    rule = [{"name": "select_table", "condition": "allow"}]
    objects = [{"fullName": name, "type": kind} for name, kind in names]
    role = {"name": "r", "securableObjects": [{**each, "privileges": rule} for each in objects]}
    fake.on("GET", f"{M}/roles/r", {"role": role})
    fake.on("GET", f"{M}/tags/red", {"tag": {"name": "red"}})
    fake.on("GET", f"{M}/tags/red/objects", {"metadataObjects": objects})
    fake.on("GET", "/configs", {"gravitino.schema.separator": ":"})
    fake.on("PUT", f"{M}/permissions/roles/r/table/main.raw%3Anyc.late/grant", {"role": role})

    described, tagged = limnos("role", "describe", "r").result, limnos("tag", "describe", "red").result
    assert isinstance(described, dict)
    assert isinstance(tagged, dict)
    granted = limnos("grant", "select_table", "--on", paths[0], "--kind", "table", "--to", "r")

    assert [row["object"] for row in described["grants"]] == paths
    assert [row["object"] for row in tagged["objects"]] == paths
    assert granted.code == 0, (granted.err, fake.calls[-1])


def test_roles_are_created_described_and_deleted(fake: FakeServer, limnos: Run) -> None:
    """The commands of `role` create, describe and delete roles; a role is described by one row per privilege and
    object.
    """
    privileges = [{"name": "USE_SCHEMA", "condition": "allow"}, {"name": "select_table", "condition": "deny"}]
    role = {"name": "r", "securableObjects": [{"fullName": "main.a", "type": "SCHEMA", "privileges": privileges}]}
    fake.on("POST", f"{M}/roles", {"role": {"name": "r"}})
    fake.on("GET", f"{M}/roles", {"names": ["r"]})
    fake.on("GET", f"{M}/roles/r", {"role": role})
    fake.on("DELETE", f"{M}/roles/r", {"dropped": True})

    rows = [
        {"privilege": "use_schema", "condition": "allow", "kind": "namespace", "object": "main.a"},
        {"privilege": "select_table", "condition": "deny", "kind": "namespace", "object": "main.a"},
    ]
    assert limnos("role", "create", "r").result == {"name": "r", "grants": []}
    assert limnos("role", "list").result == [{"name": "r"}]
    assert limnos("role", "describe", "r").result == {"name": "r", "properties": {}, "grants": rows}
    assert "select_table  deny" in limnos("role", "describe", "r", "--output", "table").out
    assert limnos("role", "delete", "r").result == {"deleted": "r"}


@pytest.mark.parametrize(
    "words,call,body,message",
    [
        (
            "grant role r s --to ben",
            f"PUT {M}/permissions/users/ben/grant",
            {"roleNames": ["r", "s"]},
            "granted role r, s to user ben",
        ),
        (
            "grant role r --to-group staff",
            f"PUT {M}/permissions/groups/staff/grant",
            {"roleNames": ["r"]},
            "granted role r to group staff",
        ),
        (
            "revoke role r --from ben",
            f"PUT {M}/permissions/users/ben/revoke",
            {"roleNames": ["r"]},
            "revoked role r from user ben",
        ),
        (
            "revoke role r --from-group staff",
            f"PUT {M}/permissions/groups/staff/revoke",
            {"roleNames": ["r"]},
            "revoked role r from group staff",
        ),
        (
            "grant SELECT-TABLE use_schema --on main.raw --kind namespace --to r",
            f"PUT {M}/permissions/roles/r/schema/main.raw/grant",
            {
                "privileges": [
                    {"name": "select_table", "condition": "allow"},
                    {"name": "use_schema", "condition": "allow"},
                ]
            },
            "granted select_table, use_schema on namespace main.raw to role r",
        ),
        (
            "grant create_catalog --on-metalake --to r",
            f"PUT {M}/permissions/roles/r/metalake/lake/grant",
            {"privileges": [{"name": "create_catalog", "condition": "allow"}]},
            "granted create_catalog on metalake lake to role r",
        ),
        (
            "grant use_catalog --on main --to r --deny",
            f"PUT {M}/permissions/roles/r/catalog/main/grant",
            {"privileges": [{"name": "use_catalog", "condition": "deny"}]},
            "granted denial of use_catalog on catalog main to role r",
        ),
        (
            "revoke modify_table --on main.raw.t --kind table --from r",
            f"PUT {M}/permissions/roles/r/table/main.raw.t/revoke",
            {"privileges": [{"name": "modify_table", "condition": "allow"}]},
            "revoked modify_table on table main.raw.t from role r",
        ),
    ],
)
def test_roles_and_privileges_are_granted_and_revoked(  # noqa: PLR0917 - one column per part of the case
    fake: FakeServer, limnos: Run, words: str, call: str, body: object, message: str
) -> None:
    """Roles are granted to users and groups, privileges on objects to roles, and both are revoked."""
    method, _, target = call.partition(" ")
    role = {"role": {"name": "r"}, "user": USER, "group": {"name": "staff"}}
    fake.on(method, target, role)

    done = limnos(*words.split(), "--output", "table")

    assert (done.code, done.out) == (0, f"{message}\n")
    reads = ["GET"] if words.startswith("revoke") else []  # the previous grants, which this caller may not read
    assert [each.method for each in fake.asked] == [*reads, "PUT"]
    assert (fake.calls[-1], fake.asked[-1].body) == (call, body)


@pytest.mark.parametrize(
    "words,expected",
    [
        ("grant", "nothing to grant"),
        ("grant role --to ben", "nothing to grant"),
        ("grant role r", "name one holder of the role: --to USER or --to-group GROUP"),
        ("grant role r --to ben --to-group staff", "name one holder"),
        ("grant role r --to ben --on main", "a role is granted as a whole"),
        ("grant select_table --on main --to-group staff", "privileges are held by roles"),
        ("grant select_table --on main", "privileges are held by roles"),
        ("grant select_table --to r", "name one object: --on PATH, or --on-metalake"),
        ("grant select_table --to r --on main --on-metalake", "name one object"),
        ("grant select_tabel --on main --to r", "'select_tabel' is not a privilege"),
        ("revoke role r --from-group staff --deny", "a role is granted as a whole"),
        ("revoke select_table --on main", "name one with --from ROLE"),
    ],
)
def test_senseless_grant_is_refused(fake: FakeServer, limnos: Run, words: str, expected: str) -> None:
    """Incomplete or contradictory arguments are refused with a message that names what is missing, and no change is
    sent: of a group it asks for the roles.
    """
    done = limnos(*words.split())

    assert done.code == 2
    assert expected in str(done.error["message"])
    assert [each for each in fake.asked if each.method != "GET"] == []


def test_nearest_privilege_is_suggested(limnos: Run) -> None:
    """The error for a misspelled privilege suggests the nearest ones."""
    assert "select_table" in str(limnos("grant", "select_tabel", "--on", "main", "--to", "r").error["hint"])


def test_owner_is_shown_and_set(fake: FakeServer, limnos: Run) -> None:
    """`owner show` and `owner set` work for every kind of object, including roles and the metalake."""
    fake.on("GET", f"{M}/owners/catalog/main", {"owner": {"name": "ana", "type": "USER"}})
    fake.on("PUT", f"{M}/owners/role/r", {"set": True})
    fake.on("GET", f"{M}/owners/metalake/lake", {"code": 0})

    show_result = limnos("owner", "show", "main")
    handed = limnos("owner", "set", "r", "staff", "--group", "--kind", "role", "--output", "table")
    nobody = limnos("owner", "show", "lake", "--kind", "metalake")

    assert show_result.result == {"object": "main", "kind": "catalog", "owner": "ana", "owner_type": "user"}
    assert handed.out == "role r is now owned by group staff\n"
    assert fake.asked[1].body == {"name": "staff", "type": "GROUP"}
    assert nobody.code == 3


def test_token_create_prints_the_secret(fake: FakeServer, limnos: Run) -> None:
    """`token create` sends name and lifetime and prints the secret."""
    fake.on("POST", f"{OWN}/tokens", {"id": 7, "token": "s3cret", "user": "ben", "expires_at": 99})

    done = limnos("token", "create", "--for", "ben", "--name", "ci", "--expires-in", "2d")

    assert fake.asked[0].body == {"user": "ben", "name": "ci", "expires_in_s": 172_800}
    assert done.result == {"id": 7, "token": "s3cret", "user": "ben", "expires_at": 99}


def test_saved_token_is_in_a_private_file_and_not_printed(fake: FakeServer, limnos: Run, tmp_path: Path) -> None:
    """With `--save` the secret is written to a new file that only its owner can read, and is not printed."""
    fake.on("POST", f"{OWN}/tokens", {"id": 7, "token": "s3cret", "user": "ana"})
    file = tmp_path / "token"

    done = limnos("token", "create", "--save", str(file))
    again = limnos("token", "create", "--save", str(file))

    assert file.read_text(encoding="utf-8") == "s3cret\n"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert "s3cret" not in done.out
    assert again.code == 2
    assert len(fake.asked) == 1


@pytest.mark.parametrize("text", ["soon", "0d", "-1d", "3", "1.5h"])
def test_wrong_duration_is_refused(fake: FakeServer, limnos: Run, text: str) -> None:
    """A lifetime must be a positive number with a unit; otherwise no token is created."""
    done = limnos("token", "create", f"--expires-in={text}")

    assert (done.code, fake.asked) == (2, [])
    assert "30d" in str(done.error["hint"])


def test_tokens_are_listed_and_revoked(fake: FakeServer, limnos: Run) -> None:
    """`token list` shows no secrets; `token revoke` reports a token that is no longer valid."""
    token = {
        "id": 7,
        "user": "ana",
        "name": "ci",
        "created_at": 1,
        "expires_at": None,
        "revoked": False,
        "trust": "proven",
        "state": "valid",
    }
    fake.on("GET", f"{OWN}/tokens", {"tokens": [token]})
    fake.on("DELETE", f"{OWN}/tokens/7", {"revoked": True}).on("DELETE", f"{OWN}/tokens/7", {"revoked": False})

    assert limnos("token", "list").result == [token]
    assert limnos("token", "revoke", "7", "--yes").result == {"revoked": "7"}
    assert limnos("token", "revoke", "7", "--yes").code == 3


def test_tasks_are_listed_shown_and_retried(fake: FakeServer, limnos: Run) -> None:
    """`task list` shows the tasks that were given up, unless another state is requested."""
    task = {"id": 7, "kind": "purge-table", "state": "dead", "attempts": 5, "error": "no", "payload": {"a": 1}}
    fake.on("GET", f"{OWN}/tasks?state=dead", {"tasks": [task]}).on("GET", f"{OWN}/tasks?state=waiting", {"tasks": []})
    fake.on("GET", f"{OWN}/tasks/7", task).on("POST", f"{OWN}/tasks/7/retry", {"retried": 7})

    assert [row["id"] for row in limnos("task", "list").result] == [7]
    assert limnos("task", "list", "--state", "waiting").result == []
    assert limnos("task", "show", "7").result.items() >= task.items()
    assert limnos("task", "retry", "7").result == {"retried": "7"}


def test_webhooks_are_created_listed_and_dropped(fake: FakeServer, limnos: Run, tmp_path: Path) -> None:
    """`webhook create` prints the secret once or writes it to a file; `list` shows how many changes are not delivered
    yet.
    """
    hooks = f"{OWN}/metalakes/lake/webhooks"
    webhook = {"id": 7, "url": "https://h", "user": "ana", "state": "well"}
    fake.on("POST", hooks, {**webhook, "secret": "whsec_x"}).on("POST", hooks, {**webhook, "secret": "whsec_y"})
    fake.on("GET", hooks, {"webhooks": [{**webhook, "behind": 3}]})
    fake.on("DELETE", f"{hooks}/7", {"dropped": 7}).on("POST", f"{hooks}/7/retry", {"retried": 7})

    assert limnos("webhook", "create", "https://h").result["secret"] == "whsec_x"
    assert limnos("webhook", "create", "https://h", "--save", str(tmp_path / "s")).result["secret"] is None
    assert (tmp_path / "s").read_text() == "whsec_y\n"
    assert limnos("webhook", "create", "https://h", "--save", str(tmp_path / "s")).code == 2
    assert [row["behind"] for row in limnos("webhook", "list").result] == [3]
    assert limnos("webhook", "retry", "7", "--after", "oldest").result == {"retried": 7}
    assert limnos("webhook", "drop", "7", "--yes").result == {"dropped": 7}


CHANGE = {
    "zone": 3,
    "revision": 7,
    "ordinal": 0,
    "operation": "move",
    "kind": "table",
    "id": 9,
    "actor": "ana",
    "request_id": "r",
    "at": "2026-11-20T23:40:11.120Z",
}


def test_changes_requests_all_pages(fake: FakeServer, limnos: Run) -> None:
    """`changes` requests all pages; as JSON each line is one page with its position."""
    feed = f"{OWN}/metalakes/lake/changes"
    fake.on("GET", feed, {"changes": [CHANGE], "next": "x", "more": True})
    fake.on("GET", f"{feed}?after=x", {"changes": [], "next": "y", "more": False})

    lines = [json.loads(line) for line in limnos("changes").out.splitlines()]

    assert lines == [{"changes": [CHANGE], "next": "x", "more": True}, {"changes": [], "next": "y", "more": False}]


def test_changes_table_has_one_line_per_change(fake: FakeServer, limnos: Run) -> None:
    """As a table each change is a line with time, user, operation, old path and new path; a hidden path is `?`."""
    feed = f"{OWN}/metalakes/lake/catalogs/main/changes?after=now"
    moved = CHANGE | {"old": ["main", "a.b", "t"]}
    fake.on("GET", feed, {"changes": [moved], "next": "y", "more": False})

    command_result = limnos("changes", "--catalog", "main", "--after", "now", "--output", "table")

    assert command_result.out == "2026-11-20T23:40:11.120Z  ana  move table main.`a.b`.t -> ?\n"
    assert "--after y" in command_result.err


def test_token_flags_for_and_all_exclude_each_other(fake: FakeServer, limnos: Run) -> None:
    """`--for` and `--all` exclude each other; with both, no request is sent."""
    fake.on("GET", f"{OWN}/tokens?all=true", {"tokens": []})

    assert limnos("token", "list", "--all").result == []
    assert limnos("token", "list", "--all", "--for", "ben").code == 2
    assert len(fake.asked) == 1


def test_whoami_names_the_user(fake: FakeServer, limnos: Run) -> None:
    """`whoami` prints the user name that the server answers."""
    fake.on("GET", f"{OWN}/whoami", {"user": "ana"})

    assert limnos("whoami").result == {"user": "ana", "server": fake.uri}


def test_metalake_flag_changes_all_names_and_paths(fake: FakeServer, limnos: Run) -> None:
    """`--metalake` changes the metalake of all names and paths."""
    fake.on("GET", f"/iceberg/v1/sea.main/namespaces?{PAGE}", {"namespaces": []})
    fake.on("GET", "/api/metalakes/sea/roles", {"names": []})

    assert limnos("ls", "main", "--metalake", "sea").result == []
    assert limnos("role", "list", "--metalake", "sea").result == []


@pytest.mark.parametrize("kind", ["user", "role"])
def test_missing_holder_is_reported_before_a_confirmation(fake: FakeServer, limnos: Run, kind: str) -> None:
    """The removal of a user or role that does not exist is refused as missing, and nothing is deleted."""
    fake.on("GET", f"{M}/{kind}s/zoe", {"code": 1003, "message": f"{kind.capitalize()} zoe does not exist"}, status=404)

    done = limnos("delete", kind, "zoe")

    assert (done.code, fake.calls[:1]) == (3, [f"GET {M}/{kind}s/zoe"])
    assert not any(call.startswith("DELETE") for call in fake.calls)


def test_protection_by_a_container_is_named(fake: FakeServer, limnos: Run) -> None:
    """`unprotect` of an object that a namespace protects names the namespace, and the command that ends it."""
    url = f"{OWN}/metalakes/lake/objects/table/main.hr.t/protection"
    fake.on("DELETE", url, {"removed": False})
    fake.on("GET", url, {"protected": True, "by": {"kind": "namespace", "name": "main.hr"}, "below": True})

    done = limnos("unprotect", "main.hr.t", "--kind", "table", "--output", "table")

    assert done.code == 0
    assert done.out == (
        "table main.hr.t is not protected itself: namespace main.hr protects all objects below it:"
        " 'limnos unprotect main.hr' ends that\n"
    )


@pytest.mark.parametrize("removed", [True, False])
def test_unprotected_object_is_reported(fake: FakeServer, limnos: Run, removed: bool) -> None:
    """`unprotect` of an object that nothing protects afterwards says whether it was protected."""
    url = f"{OWN}/metalakes/lake/objects/table/main.hr.t/protection"
    fake.on("DELETE", url, {"removed": removed})
    fake.on("GET", url, {"protected": False})

    out = limnos("unprotect", "main.hr.t", "--kind", "table", "--output", "table").out

    assert out == f"table main.hr.t {'is no longer' if removed else 'was not'} protected\n"
