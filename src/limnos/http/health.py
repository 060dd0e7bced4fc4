"""Health, as Gravitino spells it: alive, ready, both. Served under `/api` and at the root.

May import `store`, `telemetry`, `services` and this package's shared modules. Looks at no credential.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from limnos.http.response import Response, json_response
from limnos.store.changes import EPOCH
from limnos.store.sql import once
from limnos.telemetry.logs import get_logger

if TYPE_CHECKING:
    from limnos.http.request import Request
    from limnos.services.context import Context

    Check = dict[str, object]

log = get_logger("limnos.health")


async def live(_request: Request, _ctx: Context) -> Response:
    """Answer that the process serves."""
    return _told([_check("process", fault=None)])


async def ready(_request: Request, ctx: Context) -> Response:
    """Answer whether the store does: it is asked what has changed."""
    return _told([await _store(ctx)])


async def health(_request: Request, ctx: Context) -> Response:
    """Answer both."""
    return _told([_check("process", fault=None), await _store(ctx)])


async def _store(ctx: Context) -> Check:
    try:
        await ctx.look_up(once(EPOCH))  # a statement of its own: the gate may need none
    except Exception as error:  # noqa: BLE001 - whatever is wrong with the store, the answer is that it is
        log.warning("store does not answer", error=repr(error))
        return _check("store", fault="The store does not answer: see the server's log")
    return _check("store", fault=None)


def _check(name: str, *, fault: str | None) -> Check:
    return {"name": name, "status": "DOWN" if fault else "UP", "details": {"reason": fault} if fault else {}}


def _told(checks: list[Check]) -> Response:
    up = all(check["status"] == "UP" for check in checks)
    return json_response({"code": 0, "status": "UP" if up else "DOWN", "checks": checks}, 200 if up else 503)
