# SPDX-License-Identifier: Apache-2.0
"""Webhooks of a metalake: URLs to which its changes are sent.

Operations: create, list, drop, retry, and read the next changes to send.

Must not know any wire format, and sends nothing. Only a caller with the metalake owner's rights manages webhooks. A
webhook gets the changes that its creator may see when they are sent, like any reader of the feed.
"""

from __future__ import annotations

import base64
import re
import secrets
from collections.abc import Callable, Sequence
from difflib import get_close_matches
from typing import Final, NamedTuple
from urllib.parse import unquote, urlsplit

import msgspec

from limnos.access.actions import Action
from limnos.access.authentication import Credential
from limnos.access.subjects import principal_of
from limnos.model.audit import CHANGES, OTHER
from limnos.model.entities import Webhook
from limnos.model.errors import BadRequest, NotFound, PermissionDenied
from limnos.model.kinds import ROOT_ID, Kind
from limnos.model.permits import Permit
from limnos.model.privileges import escape_percent
from limnos.services.activity.feed import NOW, OLDEST_WORD, FeedPage, page_read, position_restrict
from limnos.services.activity.feed_positions import position_of
from limnos.services.request.context import Context
from limnos.services.request.node_services import NodeServices
from limnos.services.request.request_scope import RequestScope
from limnos.services.request.request_view import RequestView
from limnos.store.activity.feed import NEWEST, ZoneClock, clocks_read
from limnos.store.activity.webhooks import SECRET_PROPERTY, webhooks_read
from limnos.store.tx import Tx
from limnos.view.cache_miss import require_fact
from limnos.view.keys import node_key

Decide = Callable[[RequestView], Permit["WebhookChange"]]

URL_MAX: Final = 2_000
DECODINGS_MAX: Final = 4
"""The maximum number of times that a path is decoded; one that is still encoded then is refused."""
WEBHOOKS_MAX: Final = 100
"""The maximum number of webhooks of one metalake, so that each metalake gets its share of a node."""
_URL = re.compile(r"https?://[!-~]+")
_OF_GRANTS: Final = frozenset({"grant", "revoke"})
"""Words that only the audit has: in the feed, a role is altered, given and taken."""
OPERATIONS: Final = tuple(word for word in CHANGES if word not in {*_OF_GRANTS, OTHER})
"""The operations of changes in the feed."""


class WebhookCreate(msgspec.Struct, frozen=True, kw_only=True):
    """The command to create a webhook for the changes of a metalake after a position. The secret is encrypted if the
    server has encryption keys.
    """

    metalake_id: int
    url: str
    secret: str
    position: str
    operations: tuple[str, ...] = ()


class WebhookChange(msgspec.Struct, frozen=True):
    """The command to drop a webhook, or to retry it immediately, from its position or from another one."""

    metalake_id: int
    webhook_id: int
    position: str | None = None


class WebhookStatus(NamedTuple):
    """A webhook, and the count of revisions of its zones that were not delivered to it yet."""

    webhook: Webhook
    behind: int


def url_check(url: str, allowed: tuple[str, ...]) -> None:
    """Raise BadRequest for a webhook URL that is malformed or not allowed by the server's settings."""
    if len(url) > URL_MAX or not _URL.fullmatch(url) or "#" in url or not _is_plain(url):
        raise BadRequest(
            "A webhook's url must be an http or https URL of at most 2000 characters, without user or fragment"
        )
    if not any(_is_below(url, root) for root in allowed):
        raise BadRequest(
            f"Changes may not be sent to {url}: it is not below a URL of the server's setting events.allowed_urls; "
            "the server's operator can add one"
        )


def operations_check(operations: Sequence[str]) -> tuple[str, ...]:
    """Return the operations of a webhook, each once. Raises BadRequest for one that no change has."""
    for word in operations:
        if word in _OF_GRANTS:
            raise BadRequest(
                f"No change has the operation '{word}': privileges of a role change by alter, roles are assigned by"
                " give and removed by take"
            )
        if word not in OPERATIONS:
            similar_words = get_close_matches(word.lower()[:100], OPERATIONS, n=1, cutoff=0.5)
            hint = f": did you mean {similar_words[0]}?" if similar_words else f": they are {', '.join(OPERATIONS)}"
            raise BadRequest(f"No change has the operation '{escape_percent(word[:100])}'{hint}")
    return tuple(dict.fromkeys(operations))


def _is_plain(url: str) -> bool:
    """Return whether a URL can be parsed, and has neither a user nor a password."""
    try:
        return "@" not in urlsplit(url).netloc
    except ValueError:
        return False


def _is_below(url: str, root: str) -> bool:
    """Return whether a URL has the scheme, host and port of `root`, and the same path or one below it."""
    one, other = urlsplit(url), urlsplit(root)
    if (one.scheme, one.netloc.lower()) != (other.scheme, other.netloc.lower()):
        return False
    path, above = one.path or "/", other.path.rstrip("/")
    return not _is_path_traversal(path) and (path == above or path.startswith(f"{above}/"))


def _is_path_traversal(path: str) -> bool:
    """Return whether a path may lead to a parent directory (path traversal): by `..`, encoded once or more often, or
    with parameters at a segment.

    Also true for a path that is still encoded after DECODINGS_MAX decodings, since a receiver may decode it further.
    """
    for _ in range(DECODINGS_MAX):
        path, before = unquote(path), path
        if ".." in (step.partition(";")[0] for step in path.replace("\\", "/").split("/")):
            return True
        if path == before:
            return False
    return True


def may_manage_webhooks(request_view: RequestView) -> bool:
    """Return whether the caller may manage the metalake's webhooks. No refusal is recorded in the audit."""
    return request_view.decide(Action.WEBHOOK_MANAGE, request_view.settled.outer).allowed


async def webhook_create(
    ctx: Context, *, metalake: str, url: str, after: str | None, operations: Sequence[str] = ()
) -> Webhook:
    """Create a webhook; only this response contains its secret. Raises BadRequest for an invalid URL, position or
    operation, or too many webhooks, PositionPruned, NotFound, NotInUse, PermissionDenied.

    `after` is a position in the metalake's changes, `oldest`, or None for changes from now on. `operations` are those
    of the changes to send; without any, all changes are sent.
    """

    def require(request_view: RequestView) -> None:
        request_view.require(Action.WEBHOOK_MANAGE, request_view.settled.outer)
        request_view.require_in_metalake_use()

    await ctx.read(RequestScope(metalake), require)
    url_check(url, ctx.services.defaults.allowed_urls)
    operations = operations_check(operations)
    position = await _start(ctx, metalake, after or NOW)
    secret = base64.b64encode(secrets.token_bytes(32)).decode()

    def decide(request_view: RequestView) -> Permit[WebhookCreate]:
        request_view.require_in_metalake_use()
        decision = request_view.require(Action.WEBHOOK_MANAGE, request_view.settled.outer)
        sealed = ctx.services.defaults.storages.keys.sealed_text(SECRET_PROPERTY, secret)
        command = WebhookCreate(
            metalake_id=request_view.metalake.id, url=url, secret=sealed, position=position, operations=operations
        )
        return request_view.permit(command, decision)

    webhook = await ctx.write(RequestScope(metalake), decide, webhook_insert)
    ctx.services.wake_deliveries()
    return msgspec.structs.replace(webhook, secret=secret)


async def _start(ctx: Context, metalake: str, after: str) -> str:
    """Return the string of the starting position: `after`, or the newest or oldest position. Raises BadRequest for a
    malformed position or one of another feed, PositionPruned for a pruned one.
    """
    feed_position = None if after in (NOW, OLDEST_WORD) else position_of(after)
    page = await page_read(ctx, RequestScope(metalake), feed_position, limit=1, start=NEWEST)
    if feed_position is not None:
        return (await position_restrict(ctx, feed_position)).text()
    position = page.position
    if after == OLDEST_WORD:
        _, clocks = await ctx.look_up(lambda: clocks_read(position.zones))
        position = msgspec.structs.replace(position, zones={zone: clock.pruned_to for zone, clock in clocks.items()})
    return position.text()


def webhook_insert(tx: Tx, permit: Permit[WebhookCreate]) -> Webhook:
    """Insert the webhook. Raises BadRequest if the metalake has `WEBHOOKS_MAX` webhooks."""
    command = permit.command
    if tx.webhooks.count(command.metalake_id) >= WEBHOOKS_MAX:
        raise BadRequest(f"A metalake has at most {WEBHOOKS_MAX} webhooks: drop one first, see 'limnos list webhooks'")
    return tx.webhooks.create(
        metalake_id=command.metalake_id,
        user_id=permit.actor_id or 0,
        url=command.url,
        secret=command.secret,
        position=command.position,
        operations=command.operations,
    )


async def webhooks_list(ctx: Context, metalake: str) -> list[WebhookStatus]:
    """Return a metalake's webhooks by id, each with the count of undelivered revisions. Raises NotFound,
    PermissionDenied.
    """

    def decide(request_view: RequestView) -> int:
        request_view.require(Action.WEBHOOK_MANAGE, request_view.settled.outer)
        return request_view.metalake.id

    async def read(metalake_id: int) -> list[WebhookStatus]:
        webhooks = await ctx.look_up(lambda: webhooks_read(metalake_id))
        zones = {zone for webhook in webhooks for zone in position_of(webhook.position).zones}
        _, clocks = await ctx.look_up(lambda: clocks_read(zones))
        return [WebhookStatus(webhook, count_revisions_behind(webhook, clocks)) for webhook in webhooks]

    _, webhooks = await ctx.read_confirmed(RequestScope(metalake), decide, work=read)
    return webhooks


def count_revisions_behind(webhook: Webhook, clocks: dict[int, ZoneClock]) -> int:
    """Return the count of revisions in a webhook's zones that were not delivered to it yet. `clocks` are the zones'
    current clocks.
    """
    zones = position_of(webhook.position).zones
    return sum(max(0, clocks[zone].revision - at) for zone, at in zones.items() if zone in clocks)


async def webhook_drop(ctx: Context, *, metalake: str, webhook_id: int) -> None:
    """Drop a webhook. Raises NotFound, PermissionDenied."""
    if not await ctx.write(RequestScope(metalake), _changes(webhook_id, None), webhook_delete):
        raise webhook_missing_error(webhook_id)


async def webhook_retry(ctx: Context, *, metalake: str, webhook_id: int, after: str | None) -> None:
    """Schedule the next delivery of a webhook immediately, also if it has stopped. It continues from the position
    `after`, by default from its own position.

    Raises NotFound, BadRequest for a malformed position or one of another feed, PositionPruned, PermissionDenied, and
    NotInUse if `after` is given.
    """

    def require(request_view: RequestView) -> None:
        request_view.require(Action.WEBHOOK_MANAGE, request_view.settled.outer)

    await ctx.read(RequestScope(metalake), require)
    position = None if after is None else await _start(ctx, metalake, after)
    if not await ctx.write(RequestScope(metalake), _changes(webhook_id, position), webhook_reschedule):
        raise webhook_missing_error(webhook_id)
    ctx.services.wake_deliveries()


def _changes(webhook_id: int, position: str | None) -> Decide:
    def decide(request_view: RequestView) -> Permit[WebhookChange]:
        decision = request_view.require(Action.WEBHOOK_MANAGE, request_view.settled.outer)
        return request_view.permit(WebhookChange(request_view.metalake.id, webhook_id, position), decision)

    return decide


def webhook_delete(tx: Tx, permit: Permit[WebhookChange]) -> bool:
    """Delete the webhook. Returns whether it existed."""
    return tx.webhooks.drop(permit.command.metalake_id, permit.command.webhook_id)


def webhook_reschedule(tx: Tx, permit: Permit[WebhookChange]) -> bool:
    """Set the webhook's next delivery to now. Returns whether the webhook exists."""
    command = permit.command
    return tx.webhooks.retry(command.metalake_id, command.webhook_id, position=command.position)


def webhook_missing_error(webhook_id: int | str) -> NotFound:
    """Return the error for a webhook that does not exist."""
    return NotFound(f"Webhook {webhook_id} does not exist: see 'limnos list webhooks'", kind="webhook")


class WebhookBatch(NamedTuple):
    """The next changes for a webhook, and the metalake's present name."""

    metalake: str
    page: FeedPage


async def webhook_next(services: NodeServices, webhook: Webhook, position: str, *, limit: int) -> WebhookBatch:
    """Read the next changes for a webhook that are visible to its creator now.

    Raises as `changes_read`, BadRequest also if the webhook's URL is no longer allowed, NotFound if its metalake was
    dropped, PermissionDenied if its creator was removed.
    """
    url_check(webhook.url, services.defaults.allowed_urls)
    ctx = Context(services, Credential(user=webhook.user), f"webhook-{webhook.id}")
    node = await ctx.read(
        RequestScope(),
        lambda request_view: require_fact(request_view.view, node_key(webhook.metalake_id), zone=ROOT_ID),
    )
    if node is None:
        raise NotFound("The metalake was dropped", kind="metalake")

    def is_maker(request_view: RequestView) -> bool:
        principal = principal_of(request_view.view, request_view.metalake.id, Kind.USER, webhook.user)
        return principal is not None and principal.id == webhook.user_id

    if services.rules.access_enabled and not await ctx.read(RequestScope(node.name), is_maker):
        raise PermissionDenied(
            f"User {webhook.user}, who created this webhook, was removed from metalake {node.name}: create a new one"
        )
    page = await page_read(ctx, RequestScope(node.name), position_of(position), limit=limit)
    if webhook.operations:
        page = page._replace(changes=[each for each in page.changes if each.operation in webhook.operations])
    return WebhookBatch(node.name, page)
