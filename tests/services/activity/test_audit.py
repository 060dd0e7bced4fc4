# SPDX-License-Identifier: Apache-2.0
"""Audit: every change has a record with its user and privilege. Each caller reads only the records that it may read."""

from __future__ import annotations

from typing import Any

import pytest

from limnos.model.audit import AuditRecord, rights_of
from limnos.model.errors import PermissionDenied
from limnos.model.kinds import Kind
from limnos.model.privileges import Privilege
from limnos.services.activity.audit import audit_read
from limnos.services.identity.owners import owner_set
from limnos.services.identity.users import user_enable
from limnos.services.request.audit_lines import AuditLines
from limnos.store.activity import audit as audit_store
from limnos.store.activity.audit import AuditFilter
from tests.inprocess import LAKE
from tests.services.conftest import ServiceDesk

LAKES = {"metalake": LAKE, "kind": Kind.METALAKE, "full_name": "lake", "owner_kind": Kind.USER}


def lines(desk: ServiceDesk, user: str = "admin", **criteria: object) -> list[AuditRecord]:
    """Return the records that `audit_read` answers to a user, oldest first."""
    filters = AuditFilter(after=0, **criteria)  # type: ignore[arg-type]
    return desk.run(audit_read(desk.ctx(user), LAKE, filters=filters, limit=1000)).lines


def test_record_has_user_object_and_allowing_role(desk: ServiceDesk) -> None:
    """The record of a created table has the user, the object, and the role that allowed it."""
    desk.allow("ana", Kind.CATALOG, "main", Privilege.USE_CATALOG, Privilege.USE_SCHEMA, Privilege.CREATE_TABLE)
    desk.namespace("a")
    desk.table("a", "t", user="ana")

    (line,) = lines(desk, user="admin", path="main.a.t")

    assert (line.user, line.change, line.kind, line.action) == ("ana", "create", "table", "table_create")
    assert any(factor.role == "of ana" for right in rights_of(line.rights) for factor in right.factors)


def test_repeated_reads_return_the_same_records(desk: ServiceDesk) -> None:
    """Reading twice returns the same records: none is written twice."""
    desk.namespace("a")

    assert lines(desk) == lines(desk)
    assert [(each.change, each.kind, each.path) for each in lines(desk)][-1] == ("create", "namespace", "main.a")


def test_exact_paths_leave_out_other_objects(desk: ServiceDesk) -> None:
    """Exact paths select the records of these objects, without those of objects below; a user who is not the owner
    reads their own among them.
    """
    desk.allow("ana", Kind.CATALOG, "main", Privilege.USE_CATALOG, Privilege.USE_SCHEMA, Privilege.CREATE_SCHEMA)
    desk.namespace("a")
    desk.table("a", "t")
    desk.namespace("b", user="ana")
    paths = ("main.a", "main.b", "main.absent")

    assert [each.path for each in lines(desk, exact=paths)] == ["main.a", "main.b"]
    assert [each.path for each in lines(desk, exact=paths, path="main.b")] == ["main.b"]
    assert [each.path for each in lines(desk, "ana", exact=paths)] == ["main.b"]
    assert lines(desk, "bob", exact=paths) == []


def test_user_reads_only_their_own_records(desk: ServiceDesk) -> None:
    """A user who is not the owner reads only their own records; strangers and disabled users read none."""
    desk.allow("ana", Kind.CATALOG, "main", Privilege.USE_CATALOG, Privilege.CREATE_SCHEMA)
    desk.namespace("hers", user="ana")
    desk.namespace("other")

    assert [each.path for each in lines(desk, "ana")] == ["main.hers"]
    assert lines(desk, "bob") == []
    with pytest.raises(PermissionDenied):
        lines(desk, "stranger")
    desk.run(user_enable(desk.ctx(), metalake=LAKE, name="ana", enabled=False))
    with pytest.raises(PermissionDenied, match="disabled"):
        lines(desk, "ana")


def test_ownership_lost_during_read_hides_new_records(desk: ServiceDesk, monkeypatch: pytest.MonkeyPatch) -> None:
    """If the metalake's owner loses the ownership while records are written, the answer contains none of the new
    records.
    """
    desk.namespace("a")
    desk.run(owner_set(desk.ctx(), owner="ana", **LAKES))
    caught_up = AuditLines.catch_up

    async def meanwhile(audit_lines: AuditLines) -> None:
        await owner_set(desk.ctx("ana"), owner="admin", **LAKES)
        await caught_up(audit_lines)

    assert "main.a" in [each.path for each in lines(desk, "ana")]
    monkeypatch.setattr(AuditLines, "catch_up", meanwhile)

    assert [(each.user, each.kind) for each in lines(desk, "ana")] == [("ana", "metalake")], "own records only"


@pytest.mark.parametrize("examined", [1, 2, 7])
@pytest.mark.parametrize("order", ["after", "before"])
def test_filters_without_an_index_are_read_in_parts(
    desk: ServiceDesk, monkeypatch: pytest.MonkeyPatch, examined: int, order: str
) -> None:
    """A read by action, outcome, time, user id or a path with many records examines a few records at a time. It
    returns the same pages as one read of all records.
    """
    desk.allow("ana", Kind.CATALOG, "main", Privilege.USE_CATALOG, Privilege.CREATE_SCHEMA)
    for name in "abcd":
        desk.namespace(name, user="ana")
        desk.namespace(f"{name}{name}")
    every = lines(desk)
    ana = next(each.user_id for each in every if each.user == "ana")
    criteria: list[dict[str, Any]] = [
        {"action": "namespace_create"},
        {"action": "create", "path": "main"},
        {"path": "main"},
        {"path": "main.aa"},
        {"exact": ("main.a", "main.bb", "main.absent")},
        {"exact": ("main", "lake"), "action": "create"},
        {"path": "main.absent", "since": every[0].at},
        {"outcome": "done"},
        {"outcome": "failed"},
        {"user_id": ana},
        {"since": every[4].at, "until": every[-2].at},
        {"action": "create", "user": "admin"},
    ]
    ends = {"after": 0, "before": every[-1].id + 1}
    asks = [(AuditFilter(**{order: ends[order]}, **each), limit) for each in criteria for limit in (2, 3, 100)]
    whole = [desk.run(audit_read(desk.ctx(), LAKE, filters=each, limit=limit)) for each, limit in asks]

    monkeypatch.setattr(audit_store, "SCANNED_AT_ONCE", examined)
    before = desk.node.store.statements
    parts = [desk.run(audit_read(desk.ctx(), LAKE, filters=each, limit=limit)) for each, limit in asks]

    assert parts == whole
    assert any(page.more for page in whole)
    assert desk.node.store.statements - before > len(asks) * len(every) // examined // 2
