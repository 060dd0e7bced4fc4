# SPDX-License-Identifier: Apache-2.0
"""Builds a server node from settings: store, view, freshness gate, services, protocols.

The only module that chooses the implementations of interfaces.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

from limnos.access.authentication import Authenticator, TimeSource, accepted_trusts
from limnos.app.authentication_mode import with_authentication
from limnos.app.deliveries import WebhookDeliveries
from limnos.app.fair_queue import FairQueue
from limnos.app.offload_processes import OffloadProcesses
from limnos.app.public_url import public_url_of
from limnos.app.request_defaults import defaults_of, warehouse_of
from limnos.app.room_parts import (
    cleanups_of,
    close_parts,
    migrations_of,
    protocols_of,
    register_parts,
    require_usable_rooms,
)
from limnos.app.setting_lines import setting_lines
from limnos.app.startup_errors import damaged_store_error
from limnos.app.task_kinds import kinds_of, names_of
from limnos.app.upkeep import Upkeep
from limnos.config.active_rooms import rooms_of
from limnos.config.local_server import TOKEN_FILE
from limnos.config.settings import Settings
from limnos.config.values import split_listen
from limnos.files import ENDPOINTS, AllowedStorage, is_within, root_of
from limnos.http.application import Application
from limnos.http.client_timeouts import client_timeouts_of
from limnos.http.head_admission import HeadAdmission
from limnos.manifests.switches import RoomSet
from limnos.model.sealed_secrets import parse_key
from limnos.services.iceberg.continued_rewrites import CONTINUED_REWRITES
from limnos.services.iceberg.reports import REPORTS
from limnos.services.iceberg.running_plans import RUNNING_PLANS
from limnos.services.iceberg.scan_queue import SCAN_OFFLOADER, SCAN_QUEUE
from limnos.services.identity.issuer import ISSUER, Issuer
from limnos.services.lookup.location_holders import name_location_holder
from limnos.services.request.concurrency.previews import PREVIEW_OFFLOADER
from limnos.services.request.context import LOCATION_HOLDERS
from limnos.services.request.defaults import AccessSettings
from limnos.services.request.files import FileOperations
from limnos.services.request.named_storages import NamedStorages, read_storages
from limnos.services.request.node_services import NodeServices
from limnos.services.request.secret_sealing import SealingKeys
from limnos.services.upkeep.effective_settings import EFFECTIVE_SETTINGS
from limnos.services.vending.credentials import VENDOR, CredentialVendor
from limnos.store.backends.damage import first_damage
from limnos.store.backends.migrate import migrate, migrate_rooms
from limnos.store.file_modes import private_directory
from limnos.store.interface import Store
from limnos.telemetry.logs import get_logger, request_log
from limnos.view.freshness_gate import FreshnessGate, InlineFreshnessGate, SharedFreshnessGate
from limnos.view.view import StoreView

log = get_logger("limnos.storage")
DATABASE_FILE = "limnos.db"
_NO_ORIGINS: Mapping[str, str] = MappingProxyType({})
KEY_FILE = "secrets.key"
LAST_REPORTS_S = 0.5
SCANS_HELD, SCANS_HELD_OWN, SCANS_WAITING_OWN = 6, 2, 32
"""The maximum numbers of restricted scans: running ones with files in memory (in all and per caller), and waiting ones
per caller.
"""


class ServerNode(NamedTuple):
    """A server node: the application, and the components that must be closed."""

    application: Application
    services: NodeServices
    upkeep: Upkeep
    deliveries: WebhookDeliveries
    rooms: RoomSet
    """The rooms that are on, and those that are off."""

    async def close(self) -> None:
        """Close the node: end requests and processes, write buffered reports and audit records, close the store."""
        services = self.services
        self.application.stop()
        await close_parts(self.rooms.on, services)
        services.offloader.close()
        VENDOR.of(services).close()
        RUNNING_PLANS.of(services).close()
        CONTINUED_REWRITES.of(services).close()
        SCAN_OFFLOADER.of(services).close()
        PREVIEW_OFFLOADER.of(services).close()
        with suppress(TimeoutError):
            await asyncio.wait_for(REPORTS.of(services).flush(), LAST_REPORTS_S)
        with suppress(TimeoutError):
            await asyncio.wait_for(services.audit.flush(), LAST_REPORTS_S)
        await services.store.close()
        services.files.close()


def database_of(settings: Settings) -> str:
    """Return the store's database: a `postgresql://` URL with its password, or the path of an SQLite file."""
    if settings.database.url is None:
        return str(Path(settings.server.data).absolute() / DATABASE_FILE)
    url = settings.database.url.reveal()
    if url.startswith("sqlite:"):
        return unquote(urlsplit(url).path)
    return url


def _listens_on(settings: Settings) -> tuple[str, ...]:
    """Return the host of the listen address as a tuple; empty if the settings have no listen address."""
    return () if settings.server.listen is None else split_listen(settings.server.listen)[:1]


def allowed_storage_of(settings: Settings) -> AllowedStorage:
    """Return the storage that catalogs may use: the server's warehouse and the allowed roots, but not its data
    directory.

    A warehouse in the data directory remains allowed if new tables are created elsewhere, because it may have older
    tables.
    """
    warehouse = root_of(warehouse_of(settings))
    data = Path(settings.server.data)
    entries = dict.fromkeys(root_of(f"file://{path}") for path in (data.absolute(), data.resolve()))
    inner = [root_of(f"{path}/warehouse") for path in entries]
    directories = dict.fromkeys(
        [*inner, *([] if any(is_within(path, [warehouse]) for path in entries) else [warehouse])]
    )
    roots = dict.fromkeys((warehouse, *inner, *map(root_of, settings.storage.allowed_roots)))
    named_endpoints = [
        secrets[name].reveal() for secrets in settings.storage.named.values() for name in ENDPOINTS if name in secrets
    ]
    endpoints = tuple(dict.fromkeys([*settings.storage.allowed_endpoints, *named_endpoints]))
    return AllowedStorage(tuple(roots), endpoints, tuple(entries), tuple(directories))


def key_file_of(settings: Settings) -> Path | None:
    """Return the file of the sealing keys; None if the settings have the keys, or a shared store has no key file."""
    section = settings.storage
    if section.key_file is not None:
        return Path(section.key_file)
    return None if is_shared(settings) or section.keys else Path(settings.server.data) / KEY_FILE


def storages_of(settings: Settings) -> NamedStorages:
    """Return the named storages and the sealing keys. Creates a missing key file in the data directory.

    Raises CannotStart for keys that cannot be used, BadRequest for an invalid location.
    """
    section = settings.storage
    keys = SealingKeys(
        tuple(parse_key(each.reveal()) for each in section.keys),
        file=key_file_of(settings),
        makes=section.key_file is None,
    )
    keys.begin()
    if keys.current is None:
        log.warning(
            "secrets of catalogs are not sealed in the database: set storage.key_file or storage.keys, the same on"
            " every node"
        )
    named_properties = {
        name: {key: text.reveal() for key, text in each.items()} for name, each in section.named.items()
    }
    return NamedStorages(read_storages(named_properties), keys)


def is_shared(settings: Settings) -> bool:
    """Return whether other nodes may use the same store."""
    return "://" in database_of(settings)


def open_store(settings: Settings) -> Store:
    """Migrate the store to this release's schema if needed, and open it. Raises CannotStart if it is damaged at the
    beginning of a table: only `limnos server check` reads all of it.
    """
    database = database_of(settings)
    migrate(database)
    migrate_rooms(database, migrations_of(rooms_of(settings)))
    if "://" in database:
        from limnos.store.backends.postgres import PostgresStore

        return PostgresStore(database, pool_max=settings.database.pool_max, silence_s=settings.database.silence_s)
    from limnos.store.backends.sqlite import SqliteStore

    damage = first_damage(Path(database))
    if damage is not None:
        raise damaged_store_error(damage, database)
    return SqliteStore(Path(database))


def make_data_directory(settings: Settings) -> Path:
    """Create the server's data directory, with mode 700. Raises OSError."""
    data = Path(settings.server.data)
    private_directory(data, marks=(DATABASE_FILE, TOKEN_FILE))
    return data


def _rules_of(settings: Settings) -> AccessSettings:
    access = settings.access
    admins = frozenset({settings.server.admin, *access.service_admins})
    trusts = accepted_trusts(access_enabled=access.enabled, believes_basic=access.authentication == "simple")
    return AccessSettings(access.enabled, admins, trusts, access.catalog_enable == "users")


def _issuer_of(settings: Settings, clock: TimeSource) -> Issuer | None:
    """Return the verifier of the external issuer's tokens; None if no issuer is set."""
    if settings.oidc.issuer is None:
        return None
    from limnos.app.issuer_keys import IssuerKeys

    return IssuerKeys(settings.oidc, clock, is_behind_proxy=settings.server.public_url is not None)


def _public_hosts(settings: Settings) -> tuple[str, ...]:
    """Return the host and port of the server's public URL as a tuple, which requests through a proxy have as their
    Host.
    """
    host = urlsplit(settings.server.public_url or "").netloc
    return (host,) if host else ()


def _put_components(services: NodeServices, settings: Settings, *, origins: Mapping[str, str]) -> None:
    """Register the node's components that need settings. The services create the other components on first use."""
    scan_offloader = OffloadProcesses(processes_max=settings.planning.workers_max)
    SCAN_OFFLOADER.put(services, scan_offloader)
    PREVIEW_OFFLOADER.put(services, scan_offloader)
    LOCATION_HOLDERS.put(services, name_location_holder)
    VENDOR.put(services, CredentialVendor(timeout_s=settings.storage.timeout_s, time=services.store.time))
    EFFECTIVE_SETTINGS.put(services, setting_lines(settings, origins))
    if (issuer := _issuer_of(settings, services.store.time)) is not None:
        ISSUER.put(services, issuer)
    SCAN_QUEUE.put(
        services, FairQueue(SCANS_HELD, limits={"caller": SCANS_HELD_OWN}, waits={"caller": SCANS_WAITING_OWN})
    )


def build(settings: Settings, origins: Mapping[str, str] = _NO_ORIGINS) -> ServerNode:
    """Build a node: create the data directory, migrate and open the store. No sockets are opened yet.

    `origins` maps a setting to its origin, which is only shown.
    """
    rooms = require_usable_rooms(settings)
    make_data_directory(settings)
    store = open_store(settings)
    settings = with_authentication(settings, database_of(settings))
    view = StoreView(bytes_max=settings.view.bytes_max)
    gate: FreshnessGate = (
        InlineFreshnessGate(view, store)  # type: ignore[arg-type]
        if store.inline
        else SharedFreshnessGate(view, store, cold_reads_max=settings.view.cold_reads_max)  # type: ignore[arg-type]
    )
    allowed_storage = allowed_storage_of(settings)
    files = FileOperations(allowed_storage, timeout_s=settings.storage.timeout_s)
    believes_basic = settings.access.authentication == "simple"
    upkeep = Upkeep(
        store,
        gate,
        keep_ms=settings.store.change_retention_s * 1000,
        allowed=allowed_storage,
        warehouse=warehouse_of(settings),
        keep_runs_ms=settings.store.run_retention_s * 1000,
        debris_ms=settings.lance.debris_age_s * 1000,
        cleanups=cleanups_of(rooms.on),
        kinds=kinds_of(rooms.on),
        others=names_of(each.manifest for each in rooms.off),
    )
    url = public_url_of(settings)
    services = NodeServices(
        store=store,
        gate=gate,
        rules=_rules_of(settings),
        authenticator=Authenticator(believes_basic=believes_basic, has_issuer=settings.oidc.issuer is not None),
        defaults=defaults_of(settings, allowed_storage, storages=storages_of(settings), is_tls=url.is_tls),
        files=files,
        wake_worker=upkeep.wake,
        offloader=OffloadProcesses(processes_max=settings.server.chore_processes_max),
    )
    _put_components(services, settings, origins=origins)
    register_parts(rooms.on, services, settings=settings)
    upkeep.services = services
    application = Application(
        services,
        protocols_of(settings, rooms),
        body_bytes_max=settings.server.body_bytes_max,
        request_timeout_s=settings.server.request_timeout_s,
        admission=HeadAdmission(
            hosts=(*settings.server.hosts, *_public_hosts(settings)),
            listens_on=_listens_on(settings),
            origins=settings.server.origins,
            is_tls=settings.tls.certificate is not None,
            own_origin=url.origin,
        ),
        client_timeouts=client_timeouts_of(settings.server.head_timeout_s, settings.server.body_timeout_s),
        request_log=request_log(settings.telemetry.request_log, settings.telemetry.request_log_sample),
        kept_bytes_max=settings.server.kept_bytes_max,
    )
    deliveries = WebhookDeliveries(services, timeout_s=settings.events.timeout_s)
    services.wake_deliveries = deliveries.wake
    return ServerNode(application=application, services=services, upkeep=upkeep, deliveries=deliveries, rooms=rooms)
