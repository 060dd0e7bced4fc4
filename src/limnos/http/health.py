# SPDX-License-Identifier: Apache-2.0
"""Health checks with Gravitino's bodies: liveness, readiness, both. Served under `/api` and at the root.

Checks no credential, so a check names a failing loop and the time, and the error is in the log. A node with failing
background loops serves requests, so it is ready: 200, with `"state": "degraded"` (decision record 0185).
"""

from __future__ import annotations

import asyncio

from limnos.http.request import Request
from limnos.http.response import Response, json_response
from limnos.http.times import instant
from limnos.model.kinds import ROOT_ID
from limnos.services.catalog.nested_namespaces import OTHER_SEPARATOR
from limnos.services.request.context import Context
from limnos.services.runs.job_rules import JOB_RULES
from limnos.store.changes import EPOCH
from limnos.store.sql import read_rows
from limnos.store.time_sources import OFF_MS
from limnos.telemetry.logs import get_logger

Check = dict[str, object]

log = get_logger("limnos.health")
OPERATIONS = frozenset({"health", "health-html", "health-live", "health-ready"})
"""The names of the operations of this module. They never wait for a turn on the event loop."""
ANSWER_S = 1.8
"""The timeout in seconds after which the store is reported as down."""


async def live(_request: Request, _ctx: Context) -> Response:
    """Return 200 while the process serves requests."""
    return _health_response([_check("process")])


async def ready(_request: Request, ctx: Context) -> Response:
    """Return 200 if the store answers and this node's last write succeeded, else 503. A note for each background loop
    says since when it fails.
    """
    return _health_response([await _store(ctx), *_loops(ctx)])


async def health(_request: Request, ctx: Context) -> Response:
    """Return liveness and readiness: 200 if the node is ready, else 503. A note says if this node refuses all jobs,
    if another node has another separator, and if callers are not authenticated.
    """
    return _health_response(
        [_check("process"), await _store(ctx), *_loops(ctx), *_names(ctx), *_jobs(ctx), *_authentication_checks(ctx)]
    )


def _loops(ctx: Context) -> list[Check]:
    """Return a check for each background loop of this node whose last step failed or does not end."""
    now_ms = ctx.services.store.time.now_ms()
    return [
        _check(
            each.name,
            note=f"{'Has not ended' if each.is_stuck else 'Failing'} since"
            f" {instant(now_ms - round(each.failing_s * 1000))}: see the server's log",
        )
        | {"state": "degraded"}
        for each in ctx.services.loops.failures()
    ]


def _names(ctx: Context) -> list[Check]:
    other = OTHER_SEPARATOR.of(ctx.services).key
    note = "Another node of this store uses another separator: set names.separator to one value on all nodes"
    return [_check("names", note=note)] if other else []


def _jobs(ctx: Context) -> list[Check]:
    if JOB_RULES.of(ctx.services).is_confinable:
        return []
    return [_check("jobs", note="This node refuses jobs, because its machine cannot confine them: see its log")]


def _authentication_checks(ctx: Context) -> list[Check]:
    if not ctx.services.authenticator.believes_basic:
        return []
    note = "Any program that reaches this server acts as any user (access.authentication = simple)"
    return [_check("authentication", note=note)]


async def _store(ctx: Context) -> Check:
    """Check the store with a read of the freshness gate, as every request does, and with a short load, as after a cache
    miss.
    """
    services = ctx.services
    try:
        await asyncio.create_task(_ask(ctx))  # fast-path reads run in no task, and a timeout needs one
    except Exception as error:  # noqa: BLE001 - every failure of the store is reported as DOWN
        log.warning("store does not answer", error=repr(error))
        return _check("store", fault="The store does not answer: see the server's log")
    if services.store.last_write_failed:  # heartbeats find out when writes succeed again
        return _check("store", fault="The store can be read, but not written: see the server's log")
    ahead_ms = services.store.time.offset_ms
    if abs(ahead_ms) > OFF_MS:
        return _check("store", note=f"This node's clock is {ahead_ms / 1000:+.0f} s from the store's: correct it")
    return _check("store")


async def _ask(ctx: Context) -> None:
    async with asyncio.timeout(ANSWER_S):
        await asyncio.gather(ctx.services.gate.refresh((ROOT_ID,), "health"), ctx.look_up(lambda: read_rows(EPOCH)))


def _check(name: str, *, fault: str = "", note: str = "") -> Check:
    reason = fault or note
    return {"name": name, "status": "DOWN" if fault else "UP", "details": {"reason": reason} if reason else {}}


def _health_response(checks: list[Check]) -> Response:
    up = all(check["status"] == "UP" for check in checks)
    state = {"state": "degraded"} if any("state" in check for check in checks) else {}
    return json_response({"code": 0, "status": "UP" if up else "DOWN", **state, "checks": checks}, 200 if up else 503)
