# SPDX-License-Identifier: Apache-2.0
"""Every operation that accepts an `Idempotency-Key`: how it is prepared and sent."""

from __future__ import annotations

from collections.abc import Callable

from tests.faults.joint_mutations import joint_transaction
from tests.faults.mutations import file_of, run_publish, set_body
from tests.faults.rig import Rig
from tests.http.iceberg.wire import replaced_by, view_body, view_version
from tests.nodes.wire import (
    PREFIX,
    namespace_body,
    namespace_path,
    properties_body,
    rename_body,
    table_body,
    table_path,
)

Asked = tuple[str, str, object]
"""Method, path and body of a request."""


def _space(rig: Rig) -> str:
    tag = rig.tag()
    rig.admin.do("POST", f"{PREFIX}/namespaces", namespace_body(tag))
    return tag


def _table(rig: Rig) -> str:
    tag = _space(rig)
    rig.admin.do("POST", f"{namespace_path(tag)}/tables", table_body("t"))
    return tag


def namespace_create(rig: Rig) -> Asked:
    """Create a namespace and its parent."""
    return "POST", f"{PREFIX}/namespaces", namespace_body(rig.tag(), "b")


def namespace_drop(rig: Rig) -> Asked:
    """Drop a namespace."""
    return "DELETE", namespace_path(_space(rig)), None


def properties_update(rig: Rig) -> Asked:
    """Set and remove properties."""
    return "POST", f"{namespace_path(_space(rig))}/properties", {"updates": {"k": "v"}, "removals": ["none"]}


def table_create(rig: Rig) -> Asked:
    """Create a table."""
    return "POST", f"{namespace_path(_space(rig))}/tables", table_body("t")


def table_register(rig: Rig) -> Asked:
    """Register a table from the metadata file of a dropped one."""
    tag = _table(rig)
    location = file_of(rig, tag, "t").as_uri()
    rig.admin.do("DELETE", table_path(tag, "t"))
    return "POST", f"{namespace_path(tag)}/register", {"name": "u", "metadata-location": location}


def table_commit(rig: Rig) -> Asked:
    """Commit to a table."""
    tag = _table(rig)
    return "POST", table_path(tag, "t"), properties_body(mark=tag)


def table_drop(rig: Rig) -> Asked:
    """Drop a table."""
    return "DELETE", table_path(_table(rig), "t"), None


def table_unregister(rig: Rig) -> Asked:
    """Unregister a table."""
    return "POST", f"{table_path(_table(rig), 't')}/unregister", None


def table_rename(rig: Rig) -> Asked:
    """Rename a table."""
    tag = _table(rig)
    return "POST", f"{PREFIX}/tables/rename", rename_body((tag, "t"), (tag, "u"))


def tables_commit(rig: Rig) -> Asked:
    """Commit to two tables and create a third."""
    tag = _table(rig)
    rig.admin.do("POST", f"{namespace_path(tag)}/tables", table_body("u"))
    location = str(rig.admin.do("GET", table_path(tag, "t")).body["metadata"]["location"])  # type: ignore[index]
    body = set_body(tag, properties_body(mark=tag), f"{location.rpartition('/')[0]}/made-{tag}")
    return "POST", f"{PREFIX}/transactions/commit", body


def _views(tag: str) -> str:
    return f"{namespace_path(tag)}/views"


def _view(rig: Rig) -> str:
    tag = _space(rig)
    rig.admin.do("POST", _views(tag), view_body("v"))
    return tag


def view_create(rig: Rig) -> Asked:
    """Create a view."""
    return "POST", _views(_space(rig)), view_body("v")


def view_register(rig: Rig) -> Asked:
    """Register a view from the metadata file of a dropped one."""
    tag = _view(rig)
    location = rig.admin.do("GET", f"{_views(tag)}/v").body["metadata-location"]
    rig.admin.do("DELETE", f"{_views(tag)}/v")
    return "POST", f"{namespace_path(tag)}/register-view", {"name": "w", "metadata-location": location}


def view_replace(rig: Rig) -> Asked:
    """Replace the text of a view."""
    return "POST", f"{_views(_view(rig))}/v", replaced_by(view_version("select 2 as id"))


def view_drop(rig: Rig) -> Asked:
    """Drop a view."""
    return "DELETE", f"{_views(_view(rig))}/v", None


def view_rename(rig: Rig) -> Asked:
    """Rename a view."""
    tag = _view(rig)
    return "POST", f"{PREFIX}/views/rename", rename_body((tag, "v"), (tag, "w"))


def published_run(rig: Rig) -> Asked:
    """Commit to two tables and publish the run that wrote them."""
    case = run_publish(rig)
    return case.method, case.path, case.body


def joint(rig: Rig) -> Asked:
    """Commit to an Iceberg table and a Lance table of two catalogs, and publish the run that wrote them."""
    case = joint_transaction(rig)
    return case.method, case.path, case.body


CASES: dict[str, Callable[[Rig], Asked]] = {
    "create-namespace": namespace_create,
    "drop-namespace": namespace_drop,
    "update-properties": properties_update,
    "create-table": table_create,
    "register-table": table_register,
    "commit-table": table_commit,
    "drop-table": table_drop,
    "unregister-table": table_unregister,
    "rename-table": table_rename,
    "commit-transaction": tables_commit,
    "create-view": view_create,
    "register-view": view_register,
    "replace-view": view_replace,
    "drop-view": view_drop,
    "rename-view": view_rename,
    "transaction": published_run,
    "joint-transaction": joint,
}
