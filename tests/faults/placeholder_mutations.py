# SPDX-License-Identifier: Apache-2.0
"""Mutations of placeholder nodes for the kill tests: created, created with the external object, moved and dropped.

The external source keeps running.
"""

from __future__ import annotations

from tests.faults.mutations import Case
from tests.faults.rig import Rig
from tests.nodes.wire import GRAVITINO, rename_body, table_body
from tests.scripted_server import ScriptedAnswer

TABLES = "/v1/namespaces/a/tables"


def _far(rig: Rig) -> str:
    """Create a connector catalog with a source that has table `a.t` and accepts every change. Returns its name."""
    name, source = f"far{rig.tag()}", rig.source
    table_answer = ScriptedAnswer(body={"metadata-location": "x", "metadata": {}})
    source.answers |= {
        "GET /v1/config": ScriptedAnswer(body={}),
        "GET /v1/namespaces/a": ScriptedAnswer(body={"namespace": ["a"]}),
        f"GET {TABLES}/t": table_answer,
        f"POST {TABLES}": table_answer,
        "POST /v1/tables/rename": ScriptedAnswer(204),
        f"DELETE {TABLES}/t": ScriptedAnswer(204),
    }
    properties = {"uri": f"http://127.0.0.1:{source.port}"}
    rig.admin.do(
        "POST",
        f"{GRAVITINO}/catalogs",
        {"name": name, "type": "relational", "provider": "iceberg-rest", "properties": properties},
    )
    return name


def _owned(rig: Rig) -> str:
    """Create the same catalog, with a placeholder node for the table."""
    far = _far(rig)
    rig.admin.do("PUT", f"{GRAVITINO}/owners/table/{far}.a.t", {"name": "admin", "type": "USER"})
    return far


def _names(rig: Rig, far: str) -> list[object]:
    """Return the names of all placeholder nodes."""
    (catalog,) = rig.rows(f"SELECT id FROM node WHERE name = '{far}' AND deleted = 0")
    return [
        name for (name,) in rig.rows(f"SELECT name FROM node WHERE zone = {catalog[0]} AND deleted = 0 ORDER BY name")
    ]


def _is(rig: Rig, far: str, *, before: list[str], after: list[str]) -> bool:
    names = _names(rig, far)
    assert names in (before, after), f"half: {names}"
    return names == after


def placeholder_insert(rig: Rig) -> Case:
    """Create placeholder nodes for a table and its namespace by setting an owner."""
    far = _far(rig)
    body = {"name": "admin", "type": "USER"}
    done = lambda: _is(rig, far, before=[], after=["a", "t"])  # noqa: E731 - short
    return Case(method="PUT", path=f"{GRAVITINO}/owners/table/{far}.a.t", body=body, is_done=done)


def placeholder_create(rig: Rig) -> Case:
    """Create a table in the source; its creator becomes the owner of its placeholder node."""
    far = _far(rig)
    done = lambda: _is(rig, far, before=[], after=["a", "t"])  # noqa: E731 - short
    return Case(method="POST", path=f"/iceberg/v1/lake.{far}/namespaces/a/tables", body=table_body("t"), is_done=done)


def placeholder_move(rig: Rig) -> Case:
    """Rename a table in the source; its placeholder node is renamed, too."""
    far = _owned(rig)

    def done() -> bool:
        """Return whether the rename is done. After it, the source answers 404 for the old name."""
        is_done = _is(rig, far, before=["a", "t"], after=["a", "u"])
        if is_done:
            lost = {"error": {"message": "Table does not exist: a.t", "type": "NoSuchTableException", "code": 404}}
            rig.source.answers["POST /v1/tables/rename"] = ScriptedAnswer(404, body=lost)
        return is_done

    return Case(
        method="POST",
        path=f"/iceberg/v1/lake.{far}/tables/rename",
        body=rename_body(("a", "t"), ("a", "u")),
        is_done=done,
        again=(404,),
    )


def placeholder_drop(rig: Rig) -> Case:
    """Drop a table in the source, with its placeholder node."""
    far = _owned(rig)
    done = lambda: _is(rig, far, before=["a", "t"], after=["a"])  # noqa: E731 - short
    return Case(
        method="DELETE", path=f"/iceberg/v1/lake.{far}/namespaces/a/tables/t", body=None, is_done=done, again=(204,)
    )


MUTATIONS = (placeholder_insert, placeholder_create, placeholder_move, placeholder_drop)
