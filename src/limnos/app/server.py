# SPDX-License-Identifier: Apache-2.0
"""The commands of the server process: start, migrate, janitor. Its checks are in `server_checks`.

Standard output has only text for users and scripts: `ready URL` and how to connect. Logs go to standard error.
"""

from __future__ import annotations

import asyncio
import socket
import sys
from importlib.util import find_spec
from pathlib import Path

import msgspec

from limnos.app.authentication_mode import with_authentication
from limnos.app.certificates import certificates_of
from limnos.app.forced_exit import exit_now
from limnos.app.listening import listen, listen_together, url_of
from limnos.app.node_builder import allowed_storage_of, database_of, make_data_directory, open_store
from limnos.app.packages import require_driver, require_packages
from limnos.app.request_defaults import warehouse_of
from limnos.app.room_parts import cleanups_of
from limnos.app.sealing_keys import keys_origin, keys_text, missing_keys
from limnos.app.server_checks import configure_logs
from limnos.app.serving import serve, settle_memory
from limnos.app.slow_start import log_slow_start
from limnos.app.startup_errors import explain_startup_errors, masked_address
from limnos.app.upkeep import LEASE_MS
from limnos.app.worker_supervisor import Supervisor
from limnos.config.active_rooms import rooms_of
from limnos.config.loading import LoadedSettings
from limnos.config.local_server import TOKEN_FILE, write_address
from limnos.config.settings import Settings
from limnos.model.errors import CannotStart
from limnos.model.extras import install_hint
from limnos.model.permits import upkeep_permit
from limnos.services.request.task_context import TaskContext
from limnos.services.upkeep.janitors import JANITOR, JanitorPayload, janitor_run
from limnos.store.backends.backups import BadBackup
from limnos.store.backends.migrate import is_in_use, renew_epoch, revoke_tokens
from limnos.store.backends.migrate import migrate as migrate_store
from limnos.telemetry.logs import get_logger

log = get_logger("limnos.server")


def start(loaded: LoadedSettings) -> int:
    """Serve until SIGTERM or SIGINT. Returns the supervisor's exit code; without several workers it does not return.

    Raises CannotStart for a startup error.
    """
    settings = loaded.settings
    configure_logs(settings)
    with explain_startup_errors(settings, database_of(settings)) as phase:
        require_packages(settings)
        certificates = certificates_of(settings)
        count = settings.server.workers
        groups = [listen(settings)] if count == 1 else listen_together(settings, count)

        def announce() -> None:
            phase.is_over = True
            _announce(settings, groups[0])

        if count == 1:
            serve(loaded, groups[0], announce, certificates=certificates)
            exit_now(0)
        make_data_directory(settings)
        with log_slow_start():
            migrate_store(database_of(settings))  # once, in the supervisor, so that an error is reported in full
        with_authentication(settings, database_of(settings))
        settle_memory()
        return Supervisor(loaded=loaded, sockets=groups, announce=announce, certificates=certificates).run()


def migrate(
    settings: Settings, *, restored: bool = False, keeps_tokens: bool = False, beside_servers: bool = False
) -> str:
    """Migrate the store to this release's schema. Returns a report.

    `restored`: the store comes from a backup. All nodes then start with an empty view, and ids are never reused. All
    tokens are revoked, because later revocations are lost, unless `keeps_tokens`. Raises CannotStart, and BadBackup if
    a server uses the restored store, unless `beside_servers`; nothing is changed then.
    """
    configure_logs(settings)
    with explain_startup_errors(settings, database_of(settings)):
        require_driver(settings)
        make_data_directory(settings)
        if restored and not beside_servers and is_in_use(database_of(settings)):
            effect = "make each node reload it" if keeps_tokens else "revoke all tokens, also those in use"
            raise BadBackup(
                f"A server uses the store {masked_address(database_of(settings))}: --restored would {effect}."
                " Stop every server, then repeat the command; --force does it beside running servers"
            )
        with log_slow_start():
            before, after = migrate_store(database_of(settings))
    summary = f"schema {after}: nothing to do" if before == after else f"schema {before or 'none'} -> {after}"
    if not restored:
        return summary
    missing_key_names = missing_keys(settings, database_of(settings))
    if missing_key_names:
        summary = f"{summary}; secrets are sealed under keys that {keys_origin(settings)} lacks: {keys_text(missing_key_names)}"
    renew_epoch(database_of(settings))
    revoked = 0 if keeps_tokens else revoke_tokens(database_of(settings))
    return (
        f"{summary}; every node reloads the store, and new ids are greater than all earlier ones; tokens revoked:"
        f" {revoked}"
    )


def janitor(settings: Settings, *, dry_run: bool) -> list[str]:
    """Remove orphaned metadata files and empty directories now. Returns their paths; `dry_run` only lists them.

    Raises CannotStart if there is no store: the command creates none.
    """
    configure_logs(settings)
    database = database_of(settings)
    if "://" not in database and not Path(database).exists():
        raise CannotStart(
            f"There is no store at {database}",
            why="a start of a server creates one",
            advice="name the server's directory with --data",
        )
    with explain_startup_errors(settings, database_of(settings)):
        make_data_directory(settings)
        return asyncio.run(_clean(settings, dry_run=dry_run))


async def _clean(settings: Settings, *, dry_run: bool) -> list[str]:
    store = open_store(settings)
    permit = upkeep_permit("limnos")
    try:
        waiting_payload = await store.submit(permit, lambda tx: tx.tasks.waiting_payload(JANITOR))
        payload = (
            JanitorPayload() if waiting_payload is None else msgspec.json.decode(waiting_payload, type=JanitorPayload)
        )
        work = TaskContext(
            0,
            store=store,
            permit=permit,
            allowed=allowed_storage_of(settings),
            warehouse=warehouse_of(settings),
            lease_ms=LEASE_MS,
            debris_ms=settings.lance.debris_age_s * 1000,
            cleanups=cleanups_of(rooms_of(settings).on),
        )
        _, names = await janitor_run(work, payload, dry=dry_run)
    finally:
        await store.close()
    return names


def _announce(settings: Settings, sockets: list[socket.socket]) -> None:
    """Print to standard output that the server is ready, and how to connect."""
    settings = with_authentication(settings, database_of(settings))
    if settings.access.authentication == "simple":
        log.warning("every program that reaches this server acts as any user: set access.authentication to token")
    scheme = "http" if settings.tls.certificate is None else "https"
    url = url_of(sockets[0], scheme=scheme, hosts=settings.server.hosts if scheme == "https" else ())
    write_address(Path(settings.server.data), url)
    sys.stdout.write(f"ready {url}\n{how_to_connect(settings, url)}")
    sys.stdout.flush()
    log.info(
        "serving", url=url, extra=[s.getsockname()[1] for s in sockets[1:]], store=masked_address(database_of(settings))
    )


_SIMPLE = "NOT AUTHENTICATED: every program that reaches this server acts as any user (simple)"


def how_to_connect(settings: Settings, url: str) -> str:
    """Return the text about clients that a start prints."""
    server, access = settings.server, settings.access
    token = Path(server.data) / TOKEN_FILE
    return f"""
  Admin token     {token}   (user {server.admin})
  Access control  {"on" if access.enabled else "off: every request is allowed"}
  Callers         {_SIMPLE if access.authentication == "simple" else "tokens only"}

{_console_line(settings, url)}  Spark           limnos.spark.session("{url}", token=open("{token}").read().strip())
  PyIceberg       load_catalog("{server.catalog}", type="rest", uri="{url}/iceberg", warehouse="{server.catalog}", token=...)
{_lance_line(settings, url)}  Gravitino       GravitinoClient("{url}", "{server.metalake}", auth_data_provider=BasicAuthProvider("{server.admin}", ...))
  Command line    limnos login --local --data {server.data}
{_bare_note(settings)}{_shared_store_note(settings)}
"""


def _lance_line(settings: Settings, url: str) -> str:
    """Return the line with LanceDB's connection; without the extra, what installs it."""
    if find_spec("lance") is None:
        return f"  LanceDB         not before {install_hint('server', 'lance')}\n"
    catalog = settings.lance.catalog or "CATALOG"
    return f'  LanceDB         lancedb.connect("db://{catalog}", api_key=..., host_override="{url}/lance")\n'


def _console_line(settings: Settings, url: str) -> str:
    """Return the line with the console's URL; "" if the console is disabled."""
    if not rooms_of(settings).is_on("console"):
        return ""
    return f"  Console         {settings.server.public_url or url}/console/   (limnos console opens it signed in)\n"


def _bare_note(settings: Settings) -> str:
    """Return what to create before the lines above work; "" if the start creates it."""
    if not settings.server.bare:
        return ""
    return f"""
  Note: this start creates no objects (server.bare). If the lines above name what is not there: limnos create metalake
  {settings.server.metalake}, then limnos create catalog {settings.server.catalog}; or limnos import FILE
"""


def _shared_store_note(settings: Settings) -> str:
    """Return a warning if nodes may share the store while its tables are on this machine's disk; else ""."""
    if "://" not in database_of(settings) or not warehouse_of(settings).startswith("file:"):
        return ""
    return f"""
  Note: tables are stored in {warehouse_of(settings)}, a disk of this machine. Another node on this database needs the
  same files at the same path: mount them there, or give every node --warehouse s3://BUCKET/PATH before the first start.
"""
