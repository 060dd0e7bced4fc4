# SPDX-License-Identifier: Apache-2.0
"""View routes: each route, names shared with tables, replaces, large texts, register, rename, files."""

from __future__ import annotations

import json

import pytest

from tests.http.driver import API, DriverNode, grant
from tests.http.iceberg.wire import (
    ROOT,
    SCHEMA,
    error_of,
    files_of,
    local,
    make_space,
    make_table,
    make_view,
    nothing_done,
    replaced_by,
    set_properties,
    space_path,
    table_path,
    view_body,
    view_path,
    view_version,
)

RENAME = f"{ROOT}/views/rename"


def rename(source: tuple[str, ...], target: tuple[str, ...]) -> dict[str, object]:
    """Return the body of a rename."""
    ends = {"source": source, "destination": target}
    return {end: {"namespace": list(levels[:-1]), "name": levels[-1]} for end, levels in ends.items()}


def test_every_view_route_succeeds_at_depth_four(lake: DriverNode) -> None:
    """A view at depth four is created, found, listed, replaced, renamed, registered and dropped."""
    levels = ("a", "b", "c", "d")
    make_space(lake, *levels)
    space, home = space_path(*levels), view_path(*levels, "v")

    created = lake.post(f"{space}/views", view_body("v"))
    loaded, head = lake.get(home), lake.ask("HEAD", home)
    replaced = lake.post(home, replaced_by(view_version("select 2 as id")))
    listed, tables = lake.get(f"{space}/views"), lake.get(f"{space}/tables")
    renamed = lake.post(RENAME, rename((*levels, "v"), ("a", "w")))
    dropped = lake.delete(view_path("a", "w"))
    missing = lake.get(view_path("a", "w"))
    again = lake.post(
        f"{space}/register-view", {"name": "x", "metadata-location": replaced.json()["metadata-location"]}
    )

    assert [each.status for each in (created, loaded, head, replaced, listed)] == [200, 200, 204, 200, 200]
    assert [each.status for each in (renamed, dropped, missing, again)] == [204, 204, 404, 200]
    assert loaded.json() == created.json()
    assert listed.json()["identifiers"] == [{"namespace": list(levels), "name": "v"}]
    assert tables.json()["identifiers"] == []
    assert again.json() == replaced.json()
    assert error_of(missing) == (404, "NoSuchViewException", "View does not exist: a.w")


def test_files_are_below_the_view(lake: DriverNode) -> None:
    """Each version of a view is a separate file below its location and equals the returned metadata. A drop keeps the
    files.
    """
    created = make_view(lake, "a", "v")
    replaced = lake.done("POST", view_path("a", "v"), replaced_by(view_version("select 2 as id")))

    first, second = (local(str(each["metadata-location"])) for each in (created, replaced))
    lake.delete(view_path("a", "v"))

    assert first.parent == second.parent == local(str(created["metadata"]["location"])) / "metadata"  # type: ignore[index]
    assert json.loads(second.read_bytes()) == replaced["metadata"]
    assert first.exists()


def test_tables_and_views_share_one_name_space(lake: DriverNode) -> None:
    """A view cannot be created, registered or renamed to a table's name, nor a table to a view's. The answer names the
    kind that uses the name.
    """
    table = make_table(lake, "a", "t")
    view = make_view(lake, "a", "v")
    space = space_path("a")
    tables, views = {"metadata-location": table["metadata-location"]}, {"metadata-location": view["metadata-location"]}
    with nothing_done(lake):
        refused = {
            "create view": lake.post(f"{space}/views", view_body("t")),
            "create view again": lake.post(f"{space}/views", view_body("v")),
            "create table": lake.post(f"{space}/tables", {"name": "v", "schema": SCHEMA}),
            "stage table": lake.post(f"{space}/tables", {"name": "v", "schema": SCHEMA, "stage-create": True}),
            "register view": lake.post(f"{space}/register-view", {"name": "t", **views}),
            "register table": lake.post(f"{space}/register", {"name": "v", **tables}),
            "overwrite": lake.post(f"{space}/register", {"name": "v", "overwrite": True, **tables}),
            "rename view": lake.post(RENAME, rename(("a", "v"), ("a", "t"))),
            "rename table": lake.post(f"{ROOT}/tables/rename", rename(("a", "t"), ("a", "v"))),
        }

    assert {what: error_of(answer)[:2] for what, answer in refused.items()} == dict.fromkeys(
        refused, (409, "AlreadyExistsException")
    )
    assert {what: error_of(answer)[2] for what, answer in refused.items()} == {
        "create view": "Table with same name already exists: a.t",
        "create view again": "View already exists: a.v",
        "create table": "View with same name already exists: a.v",
        "stage table": "View with same name already exists: a.v",
        "register view": "Table with same name already exists: a.t",
        "register table": "View with same name already exists: a.v",
        "overwrite": "View with same name already exists: a.v",
        "rename view": "Cannot rename a.v to a.t. Table already exists",
        "rename table": "Cannot rename a.t to a.v. View already exists",
    }


def test_view_routes_return_404_for_tables_and_vice_versa(lake: DriverNode) -> None:
    """Loads, commits, drops and renames of a table as a view, and of a view as a table, are 404."""
    make_table(lake, "a", "t")
    make_view(lake, "a", "v")

    with nothing_done(lake):
        answers = [
            lake.get(table_path("a", "v")),
            lake.ask("HEAD", table_path("a", "v")),
            lake.delete(table_path("a", "v")),
            lake.post(table_path("a", "v"), {"updates": [set_properties(k="v")]}),
            lake.post(f"{ROOT}/tables/rename", rename(("a", "v"), ("a", "x"))),
            lake.get(view_path("a", "t")),
            lake.ask("HEAD", view_path("a", "t")),
            lake.delete(view_path("a", "t")),
            lake.post(view_path("a", "t"), {"updates": [set_properties(k="v")]}),
            lake.post(RENAME, rename(("a", "t"), ("a", "x"))),
        ]

    assert [answer.status for answer in answers] == [404] * 10


def test_metadata_of_the_other_kind_is_refused(lake: DriverNode) -> None:
    """A table's metadata file cannot be registered as a view, nor a view's as a table."""
    table, view = make_table(lake, "a", "t"), make_view(lake, "a", "v")

    as_view = lake.post(
        f"{space_path('a')}/register-view", {"name": "x", "metadata-location": table["metadata-location"]}
    )
    as_table = lake.post(f"{space_path('a')}/register", {"name": "x", "metadata-location": view["metadata-location"]})

    assert error_of(as_view)[0] == error_of(as_table)[0] == 400
    assert "register it as a table" in error_of(as_view)[2]
    assert "register it as a view" in error_of(as_table)[2]


def test_failed_requirement_is_a_conflict(lake: DriverNode) -> None:
    """A replace with a failing requirement is refused and changes nothing."""
    make_view(lake, "a", "v")
    body = {"requirements": [{"type": "assert-view-uuid", "uuid": "another"}], "updates": [set_properties(k="v")]}

    with nothing_done(lake):
        answer = lake.post(view_path("a", "v"), body)

    assert error_of(answer)[:2] == (409, "CommitFailedException")
    assert error_of(answer)[2].startswith("Requirement failed: view UUID does not match")


def test_replace_that_changes_nothing_writes_nothing(lake: DriverNode) -> None:
    """A replace with the same text returns the present view and leaves no file."""
    created = make_view(lake, "a", "v")

    with nothing_done(lake):
        again = lake.post(view_path("a", "v"), replaced_by(view_version()))

    assert again.json() == created


def test_view_text_is_limited_to_a_megabyte(lake: DriverNode) -> None:
    """Users with the right can create and replace texts of 1 MB. A text over the limit is refused."""
    lake.done("POST", f"{API}/lake/users", {"name": "ana"})
    lake.built.application.body_bytes_max = 16 << 20
    make_space(lake, "a")
    text = "select 1 as id -- " + "x" * (1 << 20)

    refused = lake.ask("POST", f"{space_path('a')}/views", view_body("v", view_version(text)), user="ana")
    created = lake.post(f"{space_path('a')}/views", view_body("v", view_version(text)))
    replaced = lake.post(view_path("a", "v"), replaced_by(view_version(text + "y")))
    over = lake.post(view_path("a", "v"), replaced_by(view_version("x" * (4 << 20 | 1))))

    assert (refused.status, created.status, replaced.status, over.status) == (403, 200, 200, 400)
    assert [
        len(each["representations"][0]["sql"]) for each in lake.done("GET", view_path("a", "v"))["metadata"]["versions"]
    ] == [
        len(text),
        len(text) + 1,
    ]
    assert "longer than 4194304 bytes" in error_of(over)[2]


def test_view_that_reads_itself_is_accepted(lake: DriverNode) -> None:
    """A view that reads itself is accepted, because the server does not resolve it."""
    make_view(lake, "a", "v", version=view_version("select * from a.v"))

    assert lake.get(view_path("a", "v")).status == 200


@pytest.mark.parametrize("agent, name", [("PyIceberg/0.12.0", "a b"), ("curl/8", "a%20b")])
def test_only_names_from_pyiceberg_are_percent_decoded(lake: DriverNode, agent: str, name: str) -> None:
    """PyIceberg quotes the name in the bodies of create-view and register-view; a percent sign from other clients is
    literal.
    """
    make_space(lake, "a")

    created = lake.ask("POST", f"{space_path('a')}/views", view_body("a%20b"), user_agent=agent)
    listed = lake.get(f"{space_path('a')}/views").json()["identifiers"]

    assert created.status == 200
    assert [each["name"] for each in listed] == [name]


def test_view_names_may_contain_any_character(lake: DriverNode) -> None:
    """View names may contain dots, slashes and other characters. Empty and too long names are refused with 400."""
    for name in ("a.b", "a/b", "ä ö", "%2F", "x" * 255):
        make_view(lake, "a", name)

        assert lake.get(view_path("a", name)).status == 200
    assert lake.post(f"{space_path('a')}/views", view_body("")).status == 400
    assert lake.post(f"{space_path('a')}/views", view_body("x" * 5000)).status == 400


def test_views_move_with_their_namespace(lake: DriverNode) -> None:
    """Moving a namespace moves its views and the grants on them."""
    lake.done("POST", f"{API}/lake/users", {"name": "ana"})
    make_view(lake, "a", "b", "v")
    make_space(lake, "z")
    grant(lake, "ana", "use_catalog", kind="CATALOG", on="main")
    grant(lake, "ana", "use_schema", kind="SCHEMA", on="main.a:b")
    grant(lake, "ana", "select_view", kind="VIEW", on="main.a:b.v")

    before = lake.ask("GET", view_path("a", "b", "v"), user="ana")
    lake.done(
        "POST",
        "/api/limnos/v1/metalakes/lake/catalogs/main/move",
        {"kind": "namespace", "source": ["a", "b"], "target": ["z", "c"]},
    )
    after = lake.ask("GET", view_path("z", "c", "v"), user="ana")

    assert (before.status, after.status) == (200, 200)
    assert before.json() == after.json()


def test_full_namespace_is_not_dropped(lake: DriverNode) -> None:
    """A namespace with a view counts as not empty and cannot be dropped."""
    make_view(lake, "a", "v")

    assert "is not empty: drop its view v first" in error_of(lake.delete(space_path("a")))[2]


def test_refused_create_leaves_no_file(lake: DriverNode) -> None:
    """A create that is refused after its file was written deletes the file."""
    make_view(lake, "a", "v", location=f"file://{lake.data}/warehouse/main/here")
    before = files_of(lake)

    inside = lake.post(
        f"{space_path('a')}/views", view_body("w", location=f"file://{lake.data}/warehouse/main/here/in")
    )

    assert error_of(inside)[0] == 400
    assert files_of(lake) == before


def test_move_to_another_namespace_needs_create_view_there(lake: DriverNode) -> None:
    """Moving a view to another namespace needs the right to create views there. A rename within its namespace does
    not.
    """
    lake.done("POST", f"{API}/lake/users", {"name": "ana"})
    make_view(lake, "a", "v")
    make_space(lake, "b")
    lake.done("PUT", f"{API}/lake/owners/VIEW/main.a.v", {"name": "ana", "type": "USER"})
    grant(lake, "ana", "use_catalog use_schema", kind="CATALOG", on="main")

    within = lake.ask("POST", RENAME, rename(("a", "v"), ("a", "w")), user="ana")
    refused = lake.ask("POST", RENAME, rename(("a", "w"), ("b", "w")), user="ana")
    grant(lake, "ana", "create_view", kind="SCHEMA", on="main.b")
    across = lake.ask("POST", RENAME, rename(("a", "w"), ("b", "w")), user="ana")

    assert [within.status, refused.status, across.status] == [204, 403, 204]
    assert "CREATE_VIEW on main.b" in error_of(refused)[2]
