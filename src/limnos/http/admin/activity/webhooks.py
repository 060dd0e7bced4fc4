# SPDX-License-Identifier: Apache-2.0
"""Webhooks: list, create, drop, retry. A webhook's secret is only in the response that creates it.

Must not know deliveries.
"""

from __future__ import annotations

from limnos.http.admin.bodies import AdminRequestBody, names_of
from limnos.http.admin.numbers import number_of
from limnos.http.cloudevents import SECRET_PREFIX
from limnos.http.request import Request
from limnos.http.response import Response, json_response
from limnos.http.route_targets import Handler
from limnos.http.routing import Route
from limnos.http.times import instant
from limnos.model.entities import Webhook
from limnos.services.activity import webhooks
from limnos.services.request.context import Context


class WebhookCreate(AdminRequestBody, frozen=True):
    """A webhook to create. It delivers the changes after its creation, or after the feed position `after`; `oldest`
    starts at the oldest retained revision. With `operations` it delivers the changes with these operations alone.
    """

    url: str
    after: str | None = None
    operations: tuple[str, ...] = ()


class WebhookRetry(AdminRequestBody, frozen=True):
    """The position from which a retried webhook continues: its old one, unless `after` is a position, `oldest` or
    `now`.
    """

    after: str | None = None


async def webhooks_list(request: Request, ctx: Context) -> Response:
    """Return a metalake's webhooks, each with its number of undelivered revisions and its last error."""
    (metalake,) = names_of(request)
    statuses = await webhooks.webhooks_list(ctx, metalake)
    return json_response({"webhooks": [_encode(each.webhook) | {"behind": each.behind} for each in statuses]})


async def webhook_create(request: Request, ctx: Context) -> Response:
    """Create a webhook, and return its secret."""
    (metalake,) = names_of(request)
    body = Request.decode(await request.body(), WebhookCreate)
    webhook = await webhooks.webhook_create(
        ctx, metalake=metalake, url=body.url, after=body.after, operations=body.operations
    )
    return json_response(_encode(webhook) | {"secret": f"{SECRET_PREFIX}{webhook.secret}"})


async def webhook_drop(request: Request, ctx: Context) -> Response:
    """Drop a webhook. Only a delivery that is already in progress is still sent."""
    metalake, webhook_id = _names(request)
    await webhooks.webhook_drop(ctx, metalake=metalake, webhook_id=webhook_id)
    return json_response({"dropped": webhook_id})


async def webhook_retry(request: Request, ctx: Context) -> Response:
    """Make a webhook's next delivery due immediately, even if it was stopped; with `after`, from that position."""
    metalake, webhook_id = _names(request)
    data = await request.body()
    body = Request.decode(data, WebhookRetry) if data.strip() else WebhookRetry()
    await webhooks.webhook_retry(ctx, metalake=metalake, webhook_id=webhook_id, after=body.after)
    return json_response({"retried": webhook_id})


def _names(request: Request) -> tuple[str, int]:
    """Parse a metalake's name and a webhook's id. An invalid id becomes -1, which no webhook has."""
    metalake, text = names_of(request)
    number = number_of(text)
    return metalake, -1 if number is None else number


def _encode(webhook: Webhook) -> dict[str, object]:
    state = "stopped" if webhook.stopped else "failing" if webhook.error is not None else "well"
    return {
        "id": webhook.id,
        "url": webhook.url,
        "user": webhook.user,
        "operations": list(webhook.operations),
        "state": state,
        "created_at": instant(webhook.created_at),
        "delivered_at": instant(webhook.delivered_at),
        "attempts": webhook.attempts,
        "error": webhook.error,
        "due_at": instant(webhook.due_at) if state == "failing" else None,
    }


ROUTES: tuple[Route[Handler], ...] = (
    Route(method="GET", path="/api/limnos/v1/metalakes/{m}/webhooks", handler=webhooks_list, operation="list-webhooks"),
    Route(
        method="POST", path="/api/limnos/v1/metalakes/{m}/webhooks", handler=webhook_create, operation="create-webhook"
    ),
    Route(
        method="DELETE",
        path="/api/limnos/v1/metalakes/{m}/webhooks/{id}",
        handler=webhook_drop,
        operation="drop-webhook",
    ),
    Route(
        method="POST",
        path="/api/limnos/v1/metalakes/{m}/webhooks/{id}/retry",
        handler=webhook_retry,
        operation="retry-webhook",
    ),
)
