# SPDX-License-Identifier: Apache-2.0
"""Client calls about access: the exact request of each, and an answer."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from limnos.client import Client
from limnos.client.governance.access_requests import AccessRequest

OWN = "/api/limnos/v1"
REQUEST = {
    "id": "3f9a0c1d2e4b5a69",
    "user": "ana",
    "preset": "reader",
    "kind": "table",
    "path": ["main", "a", "t"],
    "requested_at": "2026-11-27T07:56:38.316Z",
    "reason": "the monthly report",
}
ANSWER = {"user": "ana", "kind": "table", "path": ["main", "a", "t"], "preset": "reader"}
ACCESS_CALLS: list[tuple[str, Callable[[Client], object], str, str, object, object]] = [
    (
        "access-holders",
        lambda c: c.access.holders("main.a.t", action="table_load", after="ana", limit=2),
        "GET",
        f"{OWN}/metalakes/lake/access/holders?path=main.a.t&action=table_load&after=ana&limit=2",
        None,
        {
            "kind": "table",
            "asked": ["table_load"],
            "holders": [
                {
                    "user": "ben",
                    "may": {"table_load": [{"kind": "allow", "privilege": "SELECT_TABLE", "role": "r"}]},
                    "restrictions": [{"name": "eu", "object": {"kind": "table", "name": "main.a.t"}}],
                }
            ],
        },
    ),
    (
        "access-rules",
        lambda c: c.access.rules("main", limit=5),
        "GET",
        f"{OWN}/metalakes/lake/access/rules?path=main&after=0&limit=5",
        None,
        {
            "kind": "catalog",
            "owners": [{"kind": "user", "name": "ana", "object": {"kind": "catalog", "name": "main"}}],
            "rules": [
                {
                    "role": "r",
                    "privilege": "USE_CATALOG",
                    "condition": "allow",
                    "object": {"kind": "catalog", "name": "main"},
                }
            ],
        },
    ),
    (
        "access-reach",
        lambda c: c.access.reach("main.a", user="ben"),
        "GET",
        f"{OWN}/metalakes/lake/access/reach?path=main.a&user=ben&limit=100",
        None,
        {"user": "ben", "counts": {"read": {"table": 2}}, "objects": [{"kind": "table", "path": ["main", "a", "t"]}]},
    ),
    (
        "access-diff",
        lambda c: c.access.diff("ana", "ben", path="main.a", limit=5),
        "GET",
        f"{OWN}/metalakes/lake/access/diff?user=ana&other=ben&path=main.a&limit=5",
        None,
        {
            "objects": [{"kind": "table", "path": ["main", "a", "t"], "user": {"may": ["read"]}}],
            "differing": 1,
        },
    ),
    (
        "missing-privileges",
        lambda c: c.access.missing("writer", "main.a.t", user="ana", kind="table"),
        "GET",
        f"{OWN}/metalakes/lake/access/missing?preset=writer&user=ana&path=main.a.t&kind=table",
        None,
        {
            "user": "ana",
            "kind": "table",
            "missing": [{"privilege": "MODIFY_TABLE", "object": {"kind": "table", "name": "main.a.t"}}],
        },
    ),
    (
        "what-if-granted",
        lambda c: c.access.what_if_granted("r", ["select_table"], path="main.a.t", kind="table", grants=False),
        "POST",
        f"{OWN}/metalakes/lake/access/what-if",
        {
            "change": "revoke",
            "role": "r",
            "kind": "table",
            "path": ["main", "a", "t"],
            "privileges": [{"name": "select_table", "condition": "allow"}],
        },
        {"users": 1, "lines": [{"level": "read", "kind": "table", "gains": False, "users": 1, "objects": 1}]},
    ),
    (
        "what-if-assigned",
        lambda c: c.access.what_if_assigned(["r"], group="g"),
        "POST",
        f"{OWN}/metalakes/lake/access/what-if",
        {"change": "assign", "roles": ["r"], "group": "g"},
        {"users": 3},
    ),
    (
        "grant-preset",
        lambda c: c.access.grant_preset("reader", "main.a.t", kind="table", user="ana"),
        "POST",
        f"{OWN}/metalakes/lake/access/presets",
        {"change": "grant", "preset": "reader", "kind": "table", "path": ["main", "a", "t"], "user": "ana"},
        {
            "role": "user:ana",
            "created": True,
            "changed": [{"privilege": "USE_CATALOG", "object": {"kind": "catalog", "name": "main"}}],
        },
    ),
    (
        "revoke-preset",
        lambda c: c.access.revoke_preset("admin", kind="metalake", role="r"),
        "POST",
        f"{OWN}/metalakes/lake/access/presets",
        {"change": "revoke", "preset": "admin", "kind": "metalake", "path": [], "role": "r"},
        {"role": "r"},
    ),
    (
        "what-if-preset",
        lambda c: c.access.what_if_preset("reader", "main.a.t", kind="table", user="ana"),
        "POST",
        f"{OWN}/metalakes/lake/access/what-if",
        {"change": "grant", "preset": "reader", "kind": "table", "path": ["main", "a", "t"], "user": "ana"},
        {"users": 1, "gaining": 1},
    ),
    (
        "access-requests",
        lambda c: c.access_requests.list(limit=5),
        "GET",
        f"{OWN}/metalakes/lake/access/requests?limit=5",
        None,
        {"requests": [REQUEST]},
    ),
    (
        "own-access-requests",
        lambda c: c.access_requests.own(),
        "GET",
        f"{OWN}/metalakes/lake/access/requests?own=true",
        None,
        {"requests": []},
    ),
    (
        "request-access",
        lambda c: c.access_requests.create("main.a.t", kind="table", preset="writer"),
        "POST",
        f"{OWN}/metalakes/lake/access/requests",
        {"kind": "table", "path": ["main", "a", "t"], "preset": "writer"},
        {"requested": True},
    ),
    (
        "request-access-for-a-reason",
        lambda c: c.access_requests.create("main.a.t", kind="table", reason="the report"),
        "POST",
        f"{OWN}/metalakes/lake/access/requests",
        {"kind": "table", "path": ["main", "a", "t"], "preset": "reader", "reason": "the report"},
        {"requested": True},
    ),
    (
        "withdraw-access-request",
        lambda c: c.access_requests.withdraw(msgspec.convert(REQUEST, AccessRequest)),
        "POST",
        f"{OWN}/metalakes/lake/access/requests/withdraw",
        {"kind": "table", "path": ["main", "a", "t"]},
        {"withdrawn": True},
    ),
    (
        "decline-access-request-with-a-note",
        lambda c: c.access_requests.decline(msgspec.convert(REQUEST, AccessRequest), note="no"),
        "POST",
        f"{OWN}/metalakes/lake/access/requests/answer",
        {**ANSWER, "answer": "decline", "note": "no"},
        {"existed": False},
    ),
    (
        "grant-access-request",
        lambda c: c.access_requests.grant(msgspec.convert(REQUEST, AccessRequest)),
        "POST",
        f"{OWN}/metalakes/lake/access/requests/answer",
        {"answer": "grant", "user": "ana", "kind": "table", "path": ["main", "a", "t"], "preset": "reader"},
        {"existed": True, "role": "user:ana"},
    ),
    (
        "decline-access-request",
        lambda c: c.access_requests.decline(msgspec.convert(REQUEST, AccessRequest)),
        "POST",
        f"{OWN}/metalakes/lake/access/requests/answer",
        {"answer": "decline", "user": "ana", "kind": "table", "path": ["main", "a", "t"], "preset": "reader"},
        {"existed": False},
    ),
]
