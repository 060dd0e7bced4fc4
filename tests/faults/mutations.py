# SPDX-License-Identifier: Apache-2.0
"""The mutations of the kill tests: how each is prepared and sent, and how to check whether it was committed."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote, urlsplit
from uuid import uuid4

from tests.faults.rig import Rig
from tests.http.iceberg.wire import creation, replaced_by, view_body, view_version
from tests.nodes.wire import (
    GRAVITINO,
    OWN,
    PREFIX,
    namespace_body,
    namespace_path,
    properties_body,
    rename_body,
    rights_body,
    rights_path,
    table_body,
    table_path,
)

PURGED_WITHIN_S = 300
LANCE = "/lance/v1/table"
SQLPP = "/query/service"
PIPELINES, RUNS = f"{OWN}/metalakes/lake/pipelines", f"{OWN}/metalakes/lake/runs"


class Case(NamedTuple):
    """A prepared mutation by the admin. `is_done` raises if only a part is committed. `again` has the expected statuses
    of a repetition.
    """

    method: str
    path: str
    body: object
    is_done: Callable[[], bool]
    again: tuple[int, ...] = (200,)


def namespace_chain(rig: Rig) -> Case:
    """Create a namespace of depth three with its parents."""
    tag = rig.tag()

    def is_done() -> bool:
        statuses = [
            rig.admin.ask("HEAD", namespace_path(*levels)).status for levels in ((tag,), (tag, "b"), (tag, "b", "c"))
        ]
        assert statuses in ([204] * 3, [404] * 3), f"half a chain: {statuses}"
        return statuses[0] == 204

    return Case(
        method="POST", path=f"{PREFIX}/namespaces", body=namespace_body(tag, "b", "c"), is_done=is_done, again=(409,)
    )


def _namespace(rig: Rig) -> str:
    tag = rig.tag()
    rig.admin.do("POST", f"{PREFIX}/namespaces", namespace_body(tag))
    return tag


def new_table(rig: Rig) -> str:
    """Create a table. Returns the tag of its namespace."""
    tag = _namespace(rig)
    rig.admin.do("POST", f"{namespace_path(tag)}/tables", table_body("t"))
    return tag


def _is_there(rig: Rig, *parts: str) -> bool:
    status = rig.admin.ask("HEAD", table_path(*parts)).status
    assert status in (204, 404), f"HEAD was answered {status}"
    return status == 204


def table_create(rig: Rig) -> Case:
    """Create a table."""
    tag = _namespace(rig)
    return Case(
        method="POST",
        path=f"{namespace_path(tag)}/tables",
        body=table_body("t"),
        is_done=lambda: _is_there(rig, tag, "t"),
        again=(409,),
    )


def table_commit(rig: Rig) -> Case:
    """Commit to a table."""
    tag = new_table(rig)
    return Case(
        method="POST",
        path=table_path(tag, "t"),
        body=properties_body(mark=tag),
        is_done=lambda: properties_of(rig, tag, "t").get("mark") == tag,
    )


def properties_of(rig: Rig, *parts: str) -> dict[str, str]:
    """Return a table's properties."""
    metadata = rig.admin.do("GET", table_path(*parts)).body["metadata"]
    return metadata["properties"]  # type: ignore[index, no-any-return]


def file_of(rig: Rig, *parts: str) -> Path:
    """Return the path of a table's metadata file."""
    location = str(rig.admin.do("GET", table_path(*parts)).body["metadata-location"])
    return Path(unquote(urlsplit(location).path))


def tables_commit(rig: Rig) -> Case:
    """Commit to two tables together and create a third."""
    tag = new_table(rig)
    rig.admin.do("POST", f"{namespace_path(tag)}/tables", table_body("u"))
    warehouse = str(rig.admin.do("GET", table_path(tag, "t")).body["metadata"]["location"]).rpartition("/")[0]  # type: ignore[index]
    body = set_body(tag, properties_body(mark=tag), f"{warehouse}/made-{tag}")

    def is_done() -> bool:
        created = _is_there(rig, tag, "made")
        marks = [properties_of(rig, tag, name).get("mark") == tag for name in ("t", "u")]
        assert marks == [created] * 2, f"only a part of the commit: {marks}, made: {created}"
        return created

    return Case(method="POST", path=f"{PREFIX}/transactions/commit", body=body, is_done=is_done, again=(409,))


def set_body(tag: str, body: dict[str, object], location: str) -> dict[str, object]:
    """Return a body that changes two tables in one commit and creates a third."""
    old = [{"identifier": {"namespace": [tag], "name": name}, **body} for name in ("t", "u")]
    creation_body = {"requirements": [{"type": "assert-create"}], "updates": creation(location)}
    return {"table-changes": [*old, {"identifier": {"namespace": [tag], "name": "made"}, **creation_body}]}


def transaction(rig: Rig) -> Case:
    """Create a namespace with a table, commit to two tables, move one there, and drop another one to create a view
    under its name.
    """
    tag = new_table(rig)
    for name in ("u", "v"):
        rig.admin.do("POST", f"{namespace_path(tag)}/tables", table_body(name))
    marked, view = properties_body(mark=tag), view_body("v")
    operations = [
        {"do": "create-namespace", "path": [tag, "n"]},
        {"do": "create-table", "path": [tag, "n", "made"], "schema": table_body("made")["schema"]},
        {"do": "commit-table", "path": [tag, "t"], **marked},
        {"do": "move-table", "source": [tag, "u"], "target": [tag, "n", "u"]},
        {"do": "commit-table", "path": [tag, "n", "u"], **marked},
        {"do": "drop-table", "path": [tag, "v"]},
        {"do": "create-view", "path": [tag, "v"], "schema": view["schema"], "view_version": view["view-version"]},
    ]

    def is_done() -> bool:
        created = _is_there(rig, tag, "n", "made")
        moved, stays = _is_there(rig, tag, "n", "u"), _is_there(rig, tag, "u")
        moved_properties = properties_of(rig, tag, "n", "u") if moved else {}
        effects = [
            moved,
            not stays,
            not _is_there(rig, tag, "v"),
            moved_properties.get("mark") == tag,
            properties_of(rig, tag, "t").get("mark") == tag,
            rig.admin.ask("HEAD", f"{namespace_path(tag)}/views/v").status == 204,
        ]
        assert effects == [created] * 6, f"only a part of the transaction: {effects}, made: {created}"
        return created

    path = f"{OWN}/metalakes/lake/catalogs/main/transactions"
    return Case(method="POST", path=path, body={"operations": operations}, is_done=is_done, again=(409,))


def new_pipeline(rig: Rig) -> tuple[str, str]:
    """Declare a pipeline and start a run. Returns the pipeline's name and the run's id."""
    tag, run = rig.tag(), str(uuid4())
    rig.admin.do("PUT", f"{PIPELINES}/{tag}", {"declaration": {"steps": []}})
    rig.admin.do(
        "POST", f"{PIPELINES}/{tag}/runs", {"id": run, "holder": "h:1", "lease_s": 3600, "steps": [{"name": "s"}]}
    )
    return tag, run


def run_state(rig: Rig, run: str) -> object:
    """Return the state of a run."""
    return rig.admin.do("GET", f"{RUNS}/{run}").body["state"]


def run_publish(rig: Rig) -> Case:
    """Commit to two tables and publish the run that wrote them."""
    tag, (_, run) = new_table(rig), new_pipeline(rig)
    rig.admin.do("POST", f"{namespace_path(tag)}/tables", table_body("u"))
    marked = properties_body(mark=tag)
    operations = [
        {"do": "commit-table", "path": [tag, "t"], **marked},
        {"do": "publish-run", "run": run, "attempt": 1},
        {"do": "commit-table", "path": [tag, "u"], **marked},
    ]

    def is_done() -> bool:
        effects = [properties_of(rig, tag, name).get("mark") == tag for name in ("t", "u")] + [
            run_state(rig, run) == "published"
        ]
        assert effects in ([True] * 3, [False] * 3), f"only a part of the publish: {effects}"
        return effects[0]

    return Case(
        method="POST",
        path=f"{OWN}/metalakes/lake/catalogs/main/transactions",
        body={"operations": operations},
        is_done=is_done,
        again=(409,),
    )


def pipeline_declare(rig: Rig) -> Case:
    """Declare the next version of a pipeline."""
    tag, _ = new_pipeline(rig)

    def is_done() -> bool:
        pipeline = rig.admin.do("GET", f"{PIPELINES}/{tag}").body
        effects = [pipeline["version"] == 2, pipeline["declaration"] == {"steps": [1]}]
        assert effects in ([True] * 2, [False] * 2), f"half a version: {pipeline}"
        return effects[0]

    return Case(method="PUT", path=f"{PIPELINES}/{tag}", body={"declaration": {"steps": [1]}}, is_done=is_done)


def run_start(rig: Rig) -> Case:
    """Start a run with its steps."""
    tag, run = rig.tag(), str(uuid4())
    rig.admin.do("PUT", f"{PIPELINES}/{tag}", {"declaration": {}})

    def is_done() -> bool:
        answer = rig.admin.ask("GET", f"{RUNS}/{run}")
        assert answer.status == 404 or [step["name"] for step in answer.body["steps"]] == ["a", "b"]
        return answer.status == 200

    body = {"id": run, "holder": "h:1", "lease_s": 3600, "steps": [{"name": "a"}, {"name": "b"}]}
    return Case(method="POST", path=f"{PIPELINES}/{tag}/runs", body=body, is_done=is_done)


def step_put(rig: Rig) -> Case:
    """Report a step with the findings of its expectations."""
    _, run = new_pipeline(rig)
    finding = {"rule": "r", "kind": "row", "action": "warn", "broken": 1, "checked": 2}

    def is_done() -> bool:
        run_body = rig.admin.do("GET", f"{RUNS}/{run}").body
        parts = [run_body["steps"][0]["state"] == "done", len(run_body["findings"]) == 1]  # type: ignore[index, arg-type]
        assert parts in ([True] * 2, [False] * 2), f"half a step: {run_body}"
        return parts[0]

    return Case(
        method="PUT",
        path=f"{RUNS}/{run}/steps/s",
        body={"attempt": 1, "state": "done", "findings": [finding]},
        is_done=is_done,
    )


def run_resume(rig: Rig) -> Case:
    """Begin the next attempt of a run."""
    _, run = new_pipeline(rig)
    rig.admin.do("POST", f"{RUNS}/{run}/finish", {"attempt": 1, "state": "failed"})

    def is_done() -> bool:
        run_body = rig.admin.do("GET", f"{RUNS}/{run}").body
        assert (run_body["attempt"], run_body["state"]) in ((2, "running"), (1, "failed"))
        return bool(run_body["attempt"] == 2)

    return Case(
        method="POST", path=f"{RUNS}/{run}/resume", body={"holder": "h:2", "after": 1, "lease_s": 3600}, is_done=is_done
    )


def table_purge(rig: Rig) -> Case:
    """Drop a table and its files."""
    tag = new_table(rig)
    file = file_of(rig, tag, "t")

    def is_done() -> bool:
        if _is_there(rig, tag, "t"):
            assert file.exists(), "the table exists and its file does not"
            return False
        until = time.monotonic() + PURGED_WITHIN_S
        while file.exists() or rig.rows("SELECT 1 FROM task WHERE kind = 'purge-table'"):
            assert time.monotonic() < until, "the table was dropped, its files were not deleted"
            time.sleep(0.01)
        return True

    return Case(
        method="DELETE", path=f"{table_path(tag, 't')}?purgeRequested=true", body=None, is_done=is_done, again=(404,)
    )


def namespace_protect(rig: Rig) -> Case:
    """Protect a namespace and everything below it."""
    tag = new_table(rig)
    path = f"{OWN}/metalakes/lake/objects/SCHEMA/main.{tag}/protection"

    def is_done() -> bool:
        return rig.admin.do("GET", path).body["protected"] is True

    return Case(method="PUT", path=path, body={"below": True}, is_done=is_done)


def names_migrate(rig: Rig) -> Case:
    """Change a name that contains the separator, as planned."""
    tag = rig.tag()
    changes = f"{OWN}/metalakes/lake/catalogs/main/names/changes"
    rig.admin.ask("POST", changes, {"to": "migrated"})
    rig.admin.ask("DELETE", changes)
    rig.admin.do("POST", f"{PREFIX}/namespaces", namespace_body(f"{tag};x"))
    rig.admin.do("PUT", changes, {"separator": ";"})

    def is_done() -> bool:
        statuses = [rig.admin.ask("HEAD", namespace_path(name)).status for name in (f"{tag};x", f"{tag}_x")]
        assert statuses in ([204, 404], [404, 204]), f"two names or none: {statuses}"
        return statuses[1] == 204

    return Case(method="POST", path=changes, body={"to": "migrated"}, is_done=is_done)


def _names_at(rig: Rig, state: str, *, to: str) -> Case:
    """Migrate the names of a separate catalog to a state. The following step is the one that is killed."""
    tag = rig.tag()
    catalog = {
        "name": tag,
        "type": "RELATIONAL",
        "provider": "lakehouse-iceberg",
        "properties": {"nested-namespaces": "false"},
    }
    rig.admin.do("POST", f"{GRAVITINO}/catalogs", catalog)
    for name in ("a;b", "a", "c;d;e"):
        rig.admin.do("POST", f"/iceberg/v1/lake.{tag}/namespaces", namespace_body(name))
    changes = f"{OWN}/metalakes/lake/catalogs/{tag}/names/changes"
    rig.admin.do("PUT", changes, {"separator": ";"})
    for goal in ("migrated", "undone"):
        while (current_state := rig.admin.do("GET", changes).body["state"]) != state:
            if rig.admin.do("POST", changes, {"to": goal}).body["done"]:
                break
        if current_state == state:
            break

    def is_done() -> bool:
        reached = rig.admin.do("GET", changes).body
        assert reached["left"] == 0, f"names were lost: {reached}"
        return reached["state"] != state

    return Case(method="POST", path=changes, body={"to": to}, is_done=is_done)


def names_switch(rig: Rig) -> Case:
    """Make the catalog nested, after the conflicting names were changed."""
    return _names_at(rig, "switching", to="migrated")


def names_nest(rig: Rig) -> Case:
    """Move namespaces to their paths in the nested catalog."""
    return _names_at(rig, "nesting", to="migrated")


def names_unnest(rig: Rig) -> Case:
    """Move the namespaces back."""
    return _names_at(rig, "migrated", to="undone")


def names_unswitch(rig: Rig) -> Case:
    """Make the catalog flat again."""
    return _names_at(rig, "unswitching", to="undone")


def names_unrename(rig: Rig) -> Case:
    """Restore the original names."""
    return _names_at(rig, "unrenaming", to="undone")


def _import(rig: Rig, name: str, *records: object) -> str:
    imports = f"{OWN}/imports"
    import_body = rig.admin.do("POST", imports, {"name": name, "format": "json"}).body
    for after, record in enumerate(records):
        rig.admin.do("POST", f"{imports}/{import_body['id']}/records?after={after}", record)
    return f"{imports}/{import_body['id']}"


_VERSION = {"major_version": 1}
_HEADER = {"header": {"version": _VERSION, "metalake": "lake"}}


def import_feed(rig: Rig) -> Case:
    """Send a record to an import."""
    path = _import(rig, rig.tag(), _HEADER)

    def is_done() -> bool:
        return rig.admin.do("GET", path).body["records"] == 2

    return Case(
        method="POST",
        path=f"{path}/records?after=1",
        body={"metalake": {"id": 5, "name": "lake", "version": _VERSION}},
        is_done=is_done,
        again=(409,),
    )


def import_finish(rig: Rig) -> Case:
    """Publish an imported metalake."""
    name = rig.tag()
    path = _import(
        rig,
        name,
        _HEADER,
        {"metalake": {"id": 5, "name": "lake", "in_use": True, "version": _VERSION}},
        {"trailer": {"records": 3}},
    )

    def is_done() -> bool:
        statuses = rig.admin.ask("GET", f"/api/metalakes/{name}").status, rig.admin.ask("GET", path).status
        assert statuses in ((200, 404), (403, 200), (404, 200)), f"half an import: {statuses}"
        return statuses[0] == 200

    return Case(method="POST", path=f"{path}/finish", body=None, is_done=is_done, again=(404,))


def table_undrop(rig: Rig) -> Case:
    """Restore a dropped table."""
    tag = new_table(rig)
    rig.admin.do("DELETE", table_path(tag, "t"))
    trash = f"{OWN}/metalakes/lake/catalogs/main/trash"

    def dropped() -> list[object]:
        return rig.admin.do("GET", f"{trash}?below={tag}").body["trash"]  # type: ignore[return-value]

    def is_done() -> bool:
        exists = _is_there(rig, tag, "t")
        assert bool(dropped()) is not exists, "both existing and in the trash, or neither"
        return exists and properties_of(rig, tag, "t") is not None

    return Case(method="POST", path=f"{trash}/{dropped()[0]['id']}/undrop", body={}, is_done=is_done, again=(404,))  # type: ignore[index]


def table_drop(rig: Rig) -> Case:
    """Drop a table to the trash."""
    tag = new_table(rig)
    trash = f"{OWN}/metalakes/lake/catalogs/main/trash?below={tag}"

    def is_done() -> bool:
        missing = not _is_there(rig, tag, "t")
        assert bool(rig.admin.do("GET", trash).body["trash"]) is missing, "both existing and in the trash, or neither"
        return missing

    return Case(method="DELETE", path=table_path(tag, "t"), body=None, is_done=is_done, again=(404,))


def table_unregister(rig: Rig) -> Case:
    """Unregister a table and keep its files."""
    tag = new_table(rig)
    file = file_of(rig, tag, "t")

    def is_done() -> bool:
        assert file.exists(), "the table's file is deleted"
        missing = not _is_there(rig, tag, "t")
        assert bool(rig.rows(f"SELECT 1 FROM document WHERE metadata_location LIKE '%{file.name}'")) is not missing, (
            "half"
        )
        return missing

    return Case(method="POST", path=f"{table_path(tag, 't')}/unregister", body=None, is_done=is_done, again=(404,))


def table_rename(rig: Rig) -> Case:
    """Rename a table."""
    tag = new_table(rig)

    def is_done() -> bool:
        old, new = _is_there(rig, tag, "t"), _is_there(rig, tag, "u")
        assert old != new, f"under its old name: {old}, under its new name: {new}"
        return new

    return Case(
        method="POST",
        path=f"{PREFIX}/tables/rename",
        body=rename_body((tag, "t"), (tag, "u")),
        is_done=is_done,
        again=(404,),
    )


def _view_path(*parts: str) -> str:
    return f"{namespace_path(*parts[:-1])}/views/{parts[-1]}"


def _view_is_there(rig: Rig, *parts: str) -> bool:
    status = rig.admin.ask("HEAD", _view_path(*parts)).status
    assert status in (204, 404), f"HEAD was answered {status}"
    return status == 204


def _view(rig: Rig) -> str:
    tag = _namespace(rig)
    rig.admin.do("POST", f"{namespace_path(tag)}/views", view_body("v"))
    return tag


def view_create(rig: Rig) -> Case:
    """Create a view."""
    tag = _namespace(rig)
    view_exists = lambda: _view_is_there(rig, tag, "v")  # noqa: E731 - short
    return Case(
        method="POST", path=f"{namespace_path(tag)}/views", body=view_body("v"), is_done=view_exists, again=(409,)
    )


def view_replace(rig: Rig) -> Case:
    """Replace a view's text."""
    tag = _view(rig)

    def is_done() -> bool:
        metadata = rig.admin.do("GET", _view_path(tag, "v")).body["metadata"]
        current, versions = metadata["current-version-id"], metadata["versions"]  # type: ignore[index]
        assert (current, len(versions)) in ((1, 1), (2, 2)), f"half: version {current} of {len(versions)}"
        return bool(current == 2)

    return Case(
        method="POST", path=_view_path(tag, "v"), body=replaced_by(view_version("select 2 as id")), is_done=is_done
    )


def view_rename(rig: Rig) -> Case:
    """Rename a view."""
    tag = _view(rig)

    def is_done() -> bool:
        old, new = _view_is_there(rig, tag, "v"), _view_is_there(rig, tag, "w")
        assert old != new, f"under its old name: {old}, under its new name: {new}"
        return new

    return Case(
        method="POST",
        path=f"{PREFIX}/views/rename",
        body=rename_body((tag, "v"), (tag, "w")),
        is_done=is_done,
        again=(404,),
    )


def view_drop(rig: Rig) -> Case:
    """Drop a view."""
    tag = _view(rig)
    return Case(
        method="DELETE",
        path=_view_path(tag, "v"),
        body=None,
        is_done=lambda: not _view_is_there(rig, tag, "v"),
        again=(404,),
    )


def _reader(rig: Rig, tag: str, *, holds: bool = True) -> str:
    """Create a user whose role may use the catalog and a namespace. With `holds`, grant the role."""
    user, role = f"user_{tag}", f"role_{tag}"
    rig.admin.do("POST", f"{GRAVITINO}/users", {"name": user})
    rig.admin.do("POST", f"{GRAVITINO}/roles", {"name": role, "properties": {}, "securableObjects": []})
    rig.admin.do("PUT", rights_path(role, "catalog", "main", "grant"), rights_body("use_catalog"))
    rig.admin.do("PUT", rights_path(role, "schema", f"main.{tag}", "grant"), rights_body("use_schema"))
    if holds:
        rig.admin.do("PUT", f"{GRAVITINO}/permissions/users/{user}/grant", {"roleNames": [role]})
    return user


def _may_load(rig: Rig, user: str, tag: str) -> bool:
    status = rig.wire(user).ask("GET", table_path(tag, "t")).status
    assert status in (200, 403), f"{user} was answered {status}"
    return status == 200


def privilege_grant(rig: Rig) -> Case:
    """Grant two privileges to a role."""
    tag = new_table(rig)
    user = _reader(rig, tag)
    path = rights_path(f"role_{tag}", "table", f"main.{tag}.t", "grant")
    return Case(
        method="PUT",
        path=path,
        body=rights_body("select_table", "modify_table"),
        is_done=lambda: _may_load(rig, user, tag),
    )


def role_give(rig: Rig) -> Case:
    """Grant a role to a user."""
    tag = new_table(rig)
    user = _reader(rig, tag, holds=False)
    grant = rights_path(f"role_{tag}", "table", f"main.{tag}.t", "grant")
    rig.admin.do("PUT", grant, rights_body("select_table"))
    path = f"{GRAVITINO}/permissions/users/{user}/grant"
    return Case(method="PUT", path=path, body={"roleNames": [f"role_{tag}"]}, is_done=lambda: _may_load(rig, user, tag))


def owner_set(rig: Rig) -> Case:
    """Transfer a table to a user."""
    tag = new_table(rig)
    user = _reader(rig, tag)
    path = f"{GRAVITINO}/owners/table/main.{tag}.t"
    return Case(method="PUT", path=path, body={"name": user, "type": "USER"}, is_done=lambda: _may_load(rig, user, tag))


def user_disable(rig: Rig) -> Case:
    """Disable a user."""
    tag = new_table(rig)
    user = _reader(rig, tag)
    rig.admin.do("PUT", f"{GRAVITINO}/owners/table/main.{tag}.t", {"name": user, "type": "USER"})
    path = f"{OWN}/metalakes/lake/users/{user}"
    return Case(method="PATCH", path=path, body={"enabled": False}, is_done=lambda: not _may_load(rig, user, tag))


def token_create(rig: Rig) -> Case:
    """Create a token."""
    tag = rig.tag()

    def is_done() -> bool:
        return f"'name': '{tag}'" in str(rig.admin.do("GET", f"{OWN}/tokens").body)

    return Case(method="POST", path=f"{OWN}/tokens", body={"name": tag}, is_done=is_done, again=(200, 201))


def tags_associate(rig: Rig) -> Case:
    """Attach two tags to a table in one request."""
    tag = new_table(rig)
    names = [f"one_{tag}", f"two_{tag}"]
    for name in names:
        rig.admin.do("POST", f"{GRAVITINO}/tags", {"name": name})
    path = f"{GRAVITINO}/objects/table/main.{tag}.t/tags"

    def is_done() -> bool:
        listed_names = rig.admin.do("GET", path).body["names"]
        assert listed_names in ([], names), f"half of them: {listed_names}"
        return bool(listed_names)

    return Case(method="POST", path=path, body={"tagsToAdd": names}, is_done=is_done, again=(409,))


def lineage_take(rig: Rig) -> Case:
    """Record lineage of two tables, with columns and an external dataset."""
    tag = new_table(rig)
    for name in ("one", "two"):
        rig.admin.do("POST", f"{namespace_path(tag)}/tables", table_body(name))
    own, lineage = "limnos://lake", f"{OWN}/metalakes/lake/lineage"
    sources = [{"namespace": own, "name": f"main.{tag}.t"}, {"namespace": "kafka://k", "name": tag}]
    columns = {"fields": {"id": {"inputFields": [{**sources[0], "field": "id"}]}}}
    outputs = [
        {"namespace": own, "name": f"main.{tag}.{name}", "facets": {"columnLineage": columns}}
        for name in ("one", "two")
    ]
    event = {
        "eventType": "COMPLETE",
        "eventTime": "2026-01-31T00:00:00Z",
        "run": {"runId": tag},
        "job": {"namespace": "n", "name": tag},
        "inputs": sources,
        "outputs": outputs,
    }

    def is_done() -> bool:
        urls = [f"{lineage}?path=main.{tag}.{name}{more}" for name in ("one", "two") for more in ("", "&column=id")]
        edge_counts = [len(rig.admin.do("GET", each).body["edges"]) for each in urls]  # type: ignore[arg-type]
        assert edge_counts in ([2, 1, 2, 1], [0] * 4), f"half of it: {edge_counts}"
        return bool(edge_counts[0])

    return Case(method="POST", path=lineage, body=event, is_done=is_done, again=(201,))


def stage_versions(rig: Rig, *names: str) -> list[dict[str, object]]:
    """Create Lance tables with managed versions, and stage the first version of each, as a client does."""
    entries: list[dict[str, object]] = []
    for name in names:
        body = {"properties": {"managed_versioning": "true"}}
        location = str(rig.admin.do("POST", f"{LANCE}/lance%24{name}/declare", body).body["location"])
        staged = Path(location.removeprefix("file://"), "_versions", f"{2**64 - 2:020d}.manifest-staged")
        staged.parent.mkdir(parents=True)
        staged.write_bytes(b"LANC")
        entries.append({"id": ["lance", name], "version": 1, "manifest_path": str(staged).lstrip("/")})
    return entries


def has_version(rig: Rig, name: str) -> bool:
    """Return whether a table has its first version. Fails if the version has no manifest."""
    versions = rig.admin.do("POST", f"{LANCE}/lance%24{name}/version/list", {}).body["versions"]
    assert len(versions) <= 1, versions  # type: ignore[arg-type]
    assert all(Path(f"/{each['manifest_path']}").read_bytes() == b"LANC" for each in versions)  # type: ignore[union-attr,index]
    return bool(versions)


def lance_version(rig: Rig) -> Case:
    """Commit a version to a Lance table. A repetition returns the same version."""
    name = rig.tag()
    (entry,) = stage_versions(rig, name)
    return Case(
        method="POST",
        path=f"{LANCE}/lance%24{name}/version/create",
        body=entry,
        is_done=lambda: has_version(rig, name),
    )


def lance_versions(rig: Rig) -> Case:
    """Commit a version to each of three Lance tables."""
    tag = rig.tag()
    names = [f"{tag}{each}" for each in "abc"]
    entries = stage_versions(rig, *names)

    def is_done() -> bool:
        effects = [has_version(rig, name) for name in names]
        assert effects in ([True] * 3, [False] * 3), f"half a batch: {effects}"
        return effects[0]

    return Case(method="POST", path=f"{LANCE}/version/batch-create", body={"entries": entries}, is_done=is_done)


def _sqlpp(rig: Rig, statement: str) -> list[object]:
    """Execute a statement that must succeed."""
    return rig.admin.do("POST", SQLPP, {"statement": statement}).body.get("results", [])  # type: ignore[return-value]


def sqlpp_dataset(rig: Rig) -> Case:
    """Create a SQL++ dataset: its table with a file, and its metadata."""
    tag = rig.tag()
    _sqlpp(rig, f"create dataverse `{tag}`; create type `{tag}`.t as {{ id: int }}")

    def is_done() -> bool:
        metadata_rows = [
            _sqlpp(
                rig,
                f"select value x from Metadata.`{each}` x where x.DatasetName = 'd' and x.DataverseName = $d".replace(
                    "$d", f"'{tag}'"
                ),
            )
            for each in ("Dataset", "Index")
        ]
        table_exists = _is_there(rig, tag, "d")
        assert [len(each) for each in metadata_rows] == [table_exists, table_exists]
        return table_exists

    return Case(
        method="POST",
        path=SQLPP,
        body={"statement": f"create dataset `{tag}`.d(t) primary key id"},
        is_done=is_done,
        again=(400,),
    )


def sqlpp_dataverse_drop(rig: Rig) -> Case:
    """Drop a dataverse with all of its SQL++ objects, and its empty parent."""
    tag = rig.tag()
    _sqlpp(
        rig,
        f"create dataverse `{tag}`.a; use `{tag}`.a; create type t as {{ id: int }}; create dataset d(t) primary key"
        " id; create view v as select value 1; create function f() { 1 }; create synonym s for d",
    )

    def is_done() -> bool:
        names = ("Dataverse", "Dataset", "Datatype", "Function", "Synonym", "Index")
        object_counts = [
            len(_sqlpp(rig, f"select value x from Metadata.`{each}` x where x.DataverseName = '{tag}.a'"))
            for each in names
        ]
        above = rig.admin.ask("HEAD", namespace_path(tag)).status
        assert (object_counts, above) in (([1, 2, 1, 1, 1, 1], 204), ([0] * 6, 404)), (object_counts, above)
        return not object_counts[0]

    return Case(
        method="POST", path=SQLPP, body={"statement": f"drop dataverse `{tag}`.a"}, is_done=is_done, again=(400,)
    )


def _leaf(rig: Rig, kind: str) -> str:
    """Return the routes of a kind in a new schema."""
    tag, catalogs = rig.tag(), f"{GRAVITINO}/catalogs"
    rig.admin.do("POST", catalogs, {"name": f"c{tag}", "type": kind})
    rig.admin.do("POST", f"{catalogs}/c{tag}/schemas", {"name": "a"})
    return f"{catalogs}/c{tag}/schemas/a/{kind}s"


def model_link(rig: Rig) -> Case:
    """Link a version of a model: its row, its aliases, and the number of the next version."""
    models = _leaf(rig, "model")
    rig.admin.do("POST", models, {"name": "m"})

    def is_done() -> bool:
        versions = rig.admin.do("GET", f"{models}/m/versions").body["versions"]
        latest_version = rig.admin.do("GET", f"{models}/m").body["model"]["latestVersion"]
        alias = rig.admin.ask("GET", f"{models}/m/aliases/best").status
        assert (versions, latest_version, alias) in (([0], 1, 200), ([], 0, 404)), (versions, latest_version, alias)
        return bool(versions)

    return Case(
        method="POST",
        path=f"{models}/m/versions",
        body={"uri": "s3://x/0", "aliases": ["best"]},
        is_done=is_done,
        again=(409,),
    )


def fileset_create(rig: Rig) -> Case:
    """Create a fileset and its directory."""
    filesets = _leaf(rig, "fileset")
    return Case(
        method="POST",
        path=filesets,
        body={"name": "f"},
        is_done=lambda: rig.admin.ask("GET", f"{filesets}/f").status == 200,
        again=(409,),
    )


def policies_associate(rig: Rig) -> Case:
    """Attach two policies to a namespace."""
    tag, lake = _namespace(rig), GRAVITINO
    content = {"supportedObjectTypes": ["SCHEMA"]}
    for name in ("one", "two"):
        rig.admin.do("POST", f"{lake}/policies", {"name": f"{name}{tag}", "policyType": "custom", "content": content})
    path, names = f"{lake}/objects/SCHEMA/main.{tag}/policies", [f"one{tag}", f"two{tag}"]

    def is_done() -> bool:
        listed_names = rig.admin.do("GET", path).body["names"]
        assert sorted(listed_names) in ([], names), f"half attached: {listed_names}"
        return bool(listed_names)

    return Case(method="POST", path=path, body={"policiesToAdd": names}, is_done=is_done, again=(409,))


def statistics_update(rig: Rig) -> Case:
    """Write two statistics of a table."""
    path = f"{GRAVITINO}/objects/TABLE/main.{new_table(rig)}.t/statistics"

    def is_done() -> bool:
        statistics = rig.admin.do("GET", path).body["statistics"]
        assert len(statistics) in (0, 2), f"half written: {statistics}"
        return bool(statistics)

    return Case(method="PUT", path=path, body={"updates": {"custom-a": 1, "custom-b": 2}}, is_done=is_done)


def tag_values(rig: Rig) -> Case:
    """Attach two values of a tag, and another tag, to a column."""
    tag, lake = new_table(rig), GRAVITINO
    for name in ("one", "two"):
        rig.admin.do("POST", f"{lake}/tags", {"name": f"{name}{tag}"})
    path = f"{lake}/objects/COLUMN/main.{tag}.t.id/tags"
    pairs = [{"name": f"one{tag}", "value": "x"}, {"name": f"one{tag}", "value": "y"}, {"name": f"two{tag}"}]

    def is_done() -> bool:
        tags = rig.admin.do("GET", f"{path}?details=true").body["tags"]
        values_by_tag = {each["name"]: each["assignmentValues"] for each in tags}
        assert values_by_tag in ({}, {f"one{tag}": ["x", "y"], f"two{tag}": []}), f"half attached: {tags}"
        return bool(values_by_tag)

    return Case(method="POST", path=path, body={"tagsToAdd": pairs}, is_done=is_done)


def column_statistics(rig: Rig) -> Case:
    """Write two statistics of a column."""
    path = f"{GRAVITINO}/objects/COLUMN/main.{new_table(rig)}.t.id/statistics"

    def is_done() -> bool:
        statistics = rig.admin.do("GET", path).body["statistics"]
        assert len(statistics) in (0, 2), f"half written: {statistics}"
        return bool(statistics)

    return Case(method="PUT", path=path, body={"updates": {"custom-a": 1, "custom-b": 2}}, is_done=is_done)


WITH_FILE = (
    sqlpp_dataset,
    table_create,
    table_commit,
    tables_commit,
    transaction,
    run_publish,
    view_create,
    view_replace,
)
"""Mutations that write a metadata file before their transaction."""
MUTATIONS = (
    namespace_chain,
    table_create,
    table_commit,
    tables_commit,
    transaction,
    table_drop,
    namespace_protect,
    names_migrate,
    names_switch,
    names_nest,
    names_unnest,
    names_unswitch,
    names_unrename,
    import_finish,
    table_undrop,
    table_unregister,
    table_purge,
    table_rename,
    view_create,
    view_replace,
    view_rename,
    view_drop,
    privilege_grant,
    role_give,
    owner_set,
    sqlpp_dataset,
    sqlpp_dataverse_drop,
    lance_version,
    lance_versions,
    user_disable,
    token_create,
    tags_associate,
    pipeline_declare,
    run_start,
    run_resume,
    run_publish,
    policies_associate,
    model_link,
    fileset_create,
    tag_values,
)
WITHOUT_CHANGES = (lineage_take, step_put, import_feed, statistics_update, column_statistics)
"""Mutations that leave no change in the feed and move no clock."""
