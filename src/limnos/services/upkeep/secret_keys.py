# SPDX-License-Identifier: Apache-2.0
"""Secret keys: lists the keys that encrypt the secrets of catalogs and webhooks, and encrypts every secret under the
newest key.

Must not know any wire format. A rotation encrypts the secrets of one object after the other, each in its own
transaction. After an interruption another call continues, and secrets under an older key stay readable until then.
Decision record 0099.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple, TypeVar, cast

import msgspec

from limnos.access.actions import Action
from limnos.model.errors import ServiceUnavailable, StateUnknown, UnsupportedOperation
from limnos.model.permits import Permit
from limnos.model.records import CatalogRecord
from limnos.model.sealed_secrets import keys_of
from limnos.services.request.context import Context
from limnos.services.request.multi_catalog_reads import read_of_server, refuse_former
from limnos.services.request.request_scope import RequestScope
from limnos.services.request.request_view import RequestView
from limnos.services.request.secret_sealing import SealingKeys, is_unsealed_secret
from limnos.store.activity.webhooks import SECRET_PROPERTY, webhook_secrets_read
from limnos.store.objects.catalogs import catalog_records_read
from limnos.store.tx import Tx
from limnos.telemetry.logs import get_logger

log = get_logger("limnos.storage")
SealCommand = TypeVar("SealCommand", bound="SecretsSeal | WebhookSeal")


class KeyInventory(NamedTuple):
    """A server's keys, oldest first, and the counts of catalogs and webhooks that use each key.

    `current` is the key that encrypts; `makes` states whether this server creates its keys. `lacking` are keys in use
    that the server does not have; `plain` is the count of objects with unencrypted secrets.
    """

    names: tuple[str, ...]
    current: str | None
    makes: bool
    catalogs: Mapping[str, int]
    webhooks: Mapping[str, int]
    lacking: tuple[str, ...]
    plain: int


class SecretsSeal(msgspec.Struct, frozen=True):
    """The command to encrypt a catalog's secrets under the newest key."""

    catalog_id: int
    metalake_id: int
    keys: SealingKeys


class WebhookSeal(msgspec.Struct, frozen=True):
    """The command to store a webhook's secret, encrypted under the newest key."""

    webhook_id: int
    metalake_id: int
    before: str
    sealed: str


def _require(request_view: RequestView) -> None:
    request_view.require(Action.KEYS_MANAGE, ())


async def keys_list(ctx: Context) -> KeyInventory:
    """Return the inventory of keys, by id. Catalogs in the trash do not count: their secrets are re-encrypted when they
    are written.

    Raises PermissionDenied.
    """
    return await read_of_server(ctx, require=_require, work=lambda: keys_inventory(ctx))


async def keys_inventory(ctx: Context) -> KeyInventory:
    """Return the result of `keys_list` without an access decision.

    At its start the server uses it to log secrets that it cannot decrypt.
    """
    catalogs = [record.properties for _, _, record in await ctx.look_up(catalog_records_read)]
    webhooks = [secret for _, _, secret in await ctx.look_up(webhook_secrets_read)]
    return _key_inventory(keys_of_server(ctx), catalogs, webhooks=webhooks)


async def keys_rotate(ctx: Context) -> tuple[KeyInventory, int]:
    """Create a new key if this server creates its keys, and encrypt all secrets under the newest one.

    Returns the inventory of keys, and the count of re-encrypted catalogs and webhooks. Raises UnsupportedOperation
    without any key, PermissionDenied, ServiceUnavailable if the store is unavailable before the first secret is
    re-encrypted, and StateUnknown if it is after that.
    """
    keys = keys_of_server(ctx)
    await refuse_former(ctx)
    await ctx.read(RequestScope(), _require)
    results, webhooks = await ctx.look_up(catalog_records_read), await ctx.look_up(webhook_secrets_read)
    is_new = keys.renew()
    if keys.current is None:
        raise UnsupportedOperation(
            "This server has no key to seal secrets with: its operator must set storage.key_file or storage.keys, the"
            " same on every node"
        )
    rotated_count, now, secrets = 0, [], []
    try:
        for catalog_id, metalake_id, record in results:
            now.append(keys.seal_properties(record.properties))
            if now[-1] != record.properties:
                rotated_count += await _seal(ctx, SecretsSeal(catalog_id, metalake_id, keys), mutation=secrets_seal)
        for webhook_id, metalake_id, before in webhooks:
            secrets.append(keys.sealed_text(SECRET_PROPERTY, before))
            if secrets[-1] != before:
                rotated_count += await _seal(
                    ctx, WebhookSeal(webhook_id, metalake_id, before, secrets[-1]), mutation=webhook_seal
                )
    except ServiceUnavailable as error:
        if not rotated_count:
            raise
        raise StateUnknown(
            f"{rotated_count} secrets are sealed under the newest key, others not yet: repeat the request to continue"
        ) from error
    log.info("secrets are sealed under the newest key", key=keys.current, made=is_new, sealed=rotated_count)
    # Do not read the store after the last commit: the work is done and must be reported.
    return _key_inventory(keys, now, webhooks=secrets), rotated_count


def keys_of_server(ctx: Context) -> SealingKeys:
    """Return the keys that encrypt and decrypt secrets on this server."""
    return ctx.services.defaults.storages.keys


async def _seal(ctx: Context, command: SealCommand, *, mutation: Callable[[Tx, Permit[SealCommand]], bool]) -> bool:
    def decide(request_view: RequestView) -> Permit[SealCommand]:
        return request_view.permit(command, request_view.require(Action.KEYS_MANAGE, ()), zone=command.metalake_id)

    return await ctx.write(RequestScope(), decide, mutation)


def secrets_seal(tx: Tx, permit: Permit[SecretsSeal]) -> bool:
    """Encrypt the secrets of a catalog's current record under the newest key.

    Returns whether the record changed. A dropped catalog is not changed.
    """
    command = permit.command
    node = tx.nodes.live(command.catalog_id)
    if node is None:
        return False
    record = cast("CatalogRecord", node.record)
    sealed = command.keys.seal_properties(record.properties)
    if sealed == record.properties:
        return False
    tx.nodes.write_record(node, replace(record, properties=sealed))
    return True


def webhook_seal(tx: Tx, permit: Permit[WebhookSeal]) -> bool:
    """Store a webhook's secret under the newest key. Returns False if the secret was changed since it was read."""
    command = permit.command
    return tx.webhooks.seal(command.webhook_id, before=command.before, sealed=command.sealed)


def _key_inventory(
    keys: SealingKeys, catalogs: Sequence[Mapping[str, str]], *, webhooks: Sequence[str]
) -> KeyInventory:
    counts: Counter[str] = Counter()
    webhook_keys: Counter[str] = Counter(name for secret in webhooks for name in keys_of(secret))
    unsealed_count = sum(is_unsealed_secret(SECRET_PROPERTY, secret) for secret in webhooks)
    for properties in catalogs:
        counts.update(frozenset[str]().union(*map(keys_of, properties.values())))
        unsealed_count += any(is_unsealed_secret(name, value) for name, value in properties.items())
    names = keys.names
    return KeyInventory(
        names=names,
        current=keys.current,
        makes=keys.makes,
        catalogs=counts,
        webhooks=webhook_keys,
        lacking=tuple(sorted({*counts, *webhook_keys} - {*names})),
        plain=unsealed_count,
    )
