# SPDX-License-Identifier: Apache-2.0
"""The commands of the server process: start, check, migrate, janitor.

Standard output has only text for users and scripts: `ready URL` and how to connect. Logs go to standard error.
"""

from __future__ import annotations

import asyncio
import os
import shlex
import socket
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import TypeVar, cast

import msgspec

from limnos.app.authentication_mode import with_authentication
from limnos.app.certificates import certificates_of
from limnos.app.forced_exit import exit_now
from limnos.app.job_confinement import job_notes
from limnos.app.listening import can_listen, listen, listen_together, url_of
from limnos.app.node_builder import allowed_of, database_of, make_data_directory, open_store
from limnos.app.packages import require_driver, require_packages
from limnos.app.request_defaults import metalakes_named, warehouse_of
from limnos.app.room_parts import room_notes
from limnos.app.sealing_keys import keys_origin, keys_text, missing_keys, warn_of_keys
from limnos.app.serving import serve, settle_memory
from limnos.app.slow_start import log_slow_start
from limnos.app.startup_errors import damaged_store_error, explain_startup_errors, masked_address
from limnos.app.upkeep import LEASE_MS
from limnos.app.worker_supervisor import Supervisor
from limnos.config.active_rooms import rooms_of
from limnos.config.loading import LoadedSettings
from limnos.config.local_server import TOKEN_FILE, write_address
from limnos.config.secrets import secrets_of
from limnos.config.settings import Settings
from limnos.files import is_within
from limnos.model.errors import CannotStart, StartWarning
from limnos.model.extras import install_hint
from limnos.model.permits import upkeep_permit
from limnos.services.iceberg.unreadable_documents import UnreadableDocuments
from limnos.services.lookup.principal_names import invalid_names
from limnos.services.request.task_context import TaskContext
from limnos.services.storage.location_reconciliation import describe_conflicts, is_unsettled
from limnos.services.upkeep.janitors import JANITOR, JanitorPayload, janitor_run
from limnos.services.upkeep.released_locations import FREE_PLACES, ReleasedLocations
from limnos.store.backends.backups import BadBackup
from limnos.store.backends.damage import find_damage
from limnos.store.backends.migrate import (
    current_revision,
    head_revision,
    is_in_use,
    may_create_tables,
    renew_epoch,
    revoke_tokens,
)
from limnos.store.backends.migrate import migrate as migrate_store
from limnos.store.objects.setting_names import setting_names_read
from limnos.store.sql import drive_load
from limnos.store.tx import Tx
from limnos.telemetry.logs import configure, get_logger

T = TypeVar("T")

_NAMED_MAX = 3
log = get_logger("limnos.server")


def start(loaded: LoadedSettings) -> int:
    """Serve until SIGTERM or SIGINT. Returns the supervisor's exit code; without several workers it does not return.

    Raises CannotStart for a startup error.
    """
    settings = loaded.settings
    _configure_logs(settings)
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


def _configure_logs(settings: Settings) -> None:
    log_settings = settings.log
    configure(log_settings.level, log_settings.format, hidden=secrets_of(settings), libraries=log_settings.libraries)


def check(settings: Settings) -> list[CannotStart]:
    """Return all errors that would keep a server from starting, damage of the store, and StartWarnings for defects that
    would not.
    """
    _configure_logs(settings)
    problems: list[CannotStart] = []
    for look in (can_listen, certificates_of, require_packages, _can_write, _can_open):
        try:
            with explain_startup_errors(settings, database_of(settings)):
                look(settings)
        except CannotStart as result:
            problems.append(result)
    unreadable = UnreadableDocuments()
    if all(isinstance(each, StartWarning) for each in problems):
        problems += _damage(settings, unreadable)
    if all(isinstance(each, StartWarning) for each in problems):
        problems += _mode_warnings(settings)
        problems += _location_warnings(settings)
        problems += _name_warnings(settings)
        problems += _metalake_warnings(settings)
        problems += _reader_warnings(settings, unreadable)
        problems += _worker_warnings(settings)
    return problems


def startup_notes(settings: Settings) -> list[str]:
    """Return one sentence for each optional component that the server would start without, such as engine files, one
    if this machine cannot confine jobs, and one if there is no store yet.
    """
    database = database_of(settings)
    is_first = "://" not in database and not Path(database).is_file()
    first = [f"there is no store {database} yet: a start creates it; if one should be there, correct --data"]
    return [
        *(first if is_first else []),
        *room_notes(settings),
        *job_notes(settings),
    ]


def _damage(settings: Settings, unreadable: UnreadableDocuments) -> list[CannotStart]:
    """Return an error for each damaged part of the store, and collect the documents that readers refuse. Reads the
    whole store.
    """
    if not _has_store(settings):
        return []
    damage = find_damage(database_of(settings), inspect=unreadable.inspect)
    return [damaged_store_error(each, database_of(settings)) for each in damage]


def _reader_warnings(settings: Settings, unreadable: UnreadableDocuments) -> list[StartWarning]:
    """Return warnings about tables and views that an earlier release stored, and that some readers refuse."""
    if not unreadable.problems:
        return []
    names = asyncio.run(_read_store(settings, lambda tx: {key: tx.places.path_of(key) for key in unreadable.problems}))
    return [
        StartWarning(f"Some readers refuse {names[node_id]}", why=problem.reason, advice=problem.remedy)
        for node_id, problems in unreadable.problems.items()
        for problem in problems
    ]


def _worker_warnings(settings: Settings) -> list[StartWarning]:
    """Return a warning if there are more server processes than cores."""
    workers, cores = settings.server.workers, os.cpu_count() or 1
    if workers <= cores:
        return []
    return [
        StartWarning(
            f"{workers} workers are more than the {cores} cores of this machine",
            why="each one takes memory, and they wait for one another",
            advice=f"set --workers {cores}, or less",
        )
    ]


def _mode_warnings(settings: Settings) -> list[StartWarning]:
    """Return a warning if callers are not authenticated."""
    mode = settings.access.authentication
    if mode is None and _has_store(settings):
        mode = with_authentication(settings, database_of(settings)).access.authentication
    if mode != "simple":
        return []
    return [
        StartWarning(
            "Callers are not authenticated",
            why="access.authentication is simple: every program that reaches the server acts as any user",
            advice="give users and programs tokens ('limnos create token'), then set access.authentication to token",
        )
    ]


def _location_warnings(settings: Settings) -> list[StartWarning]:
    """Return warnings about overlapping storage locations that were stored before a release that refuses them."""
    if not _has_store(settings):
        return []
    if asyncio.run(_read_store(settings, is_unsettled)):
        return [
            StartWarning(
                "The storage locations of this store were not checked",
                why=(
                    "it comes from a release that allowed overlapping locations, which this one refuses; the first"
                    " start searches for them"
                ),
                advice="run 'limnos server check' again after a server of this release has started",
            )
        ]
    entries = asyncio.run(_read_store(settings, describe_conflicts))
    released = asyncio.run(_read_store(settings, _released_read))
    roots = asyncio.run(_read_store(settings, lambda tx: tx.places.catalog_roots()))
    return [*map(_location_warning, entries), *_released_warnings(released), *_root_warnings(settings, roots)]


def _root_warnings(settings: Settings, roots: Sequence[str]) -> list[StartWarning]:
    """Return a warning if the server does not allow roots of catalogs, as after a restore into another directory."""
    allowed = allowed_of(settings).roots
    outside = [root for root in roots if not is_within(root, allowed)]
    if not outside:
        return []
    return [
        StartWarning(
            f"Catalogs have locations that this server does not allow: {', '.join(outside[:_NAMED_MAX])}"
            f"{', …' if len(outside) > _NAMED_MAX else ''}",
            why="their tables cannot be read; a restore into another data directory leaves the files where they were",
            advice=f"start the server with {_allow_flags(outside)}, or with the former --data",
        )
    ]


def _allow_flags(roots: Sequence[str]) -> str:
    """Return the flags that allow roots: one for a directory `warehouse` that has all of them, else one for each."""
    above = {root.rpartition("/")[0] for root in roots}
    named = above if len(above) == 1 and all(each.endswith("/warehouse") for each in above) else roots
    return " ".join(f"--allow-root {shlex.quote(each)}" for each in named)


def _released_warnings(locations: ReleasedLocations) -> list[StartWarning]:
    """Return a warning if locations of dropped objects still have files, by the last run of the task that checks
    them.
    """
    if not locations.kept:
        return []
    named = ", ".join(locations.kept_first)
    return [
        StartWarning(
            f"Locations of dropped objects still contain files, or cannot be listed: {locations.kept}",
            why=(
                "only the last owner of each may create an object there:"
                f" {named}{', …' if locations.kept > len(locations.kept_first) else ''}"
            ),
            advice="delete the files there if they are not needed: a task frees empty locations once a day",
        )
    ]


def _released_read(tx: Tx) -> ReleasedLocations:
    stated = tx.tasks.waiting_payload(FREE_PLACES)
    return ReleasedLocations() if stated is None else msgspec.json.decode(stated, type=ReleasedLocations)


def _location_warning(fields: Mapping[str, object]) -> StartWarning:
    other = cast("Mapping[str, object]", fields["other"])
    return StartWarning(
        f"{_display_name(fields)} overlaps {_display_name(other)}",
        why=(
            f"{fields['location']} and {other['location']} overlap since an earlier release, which did not refuse this:"
            f" {fields['effect']}"
        ),
        advice=str(fields["mend"]),
    )


def _display_name(fields: Mapping[str, object]) -> str:
    return f"{str(fields['kind']).replace('_', ' ').capitalize()} {fields['name']} (id {fields['id']})"


def _name_warnings(settings: Settings) -> list[StartWarning]:
    """Return warnings about stored names of users, groups and roles that this release would refuse."""
    if not _has_store(settings):
        return []
    admins = frozenset({settings.server.admin, *settings.access.service_admins})
    return [
        StartWarning(
            f"The name of {name.kind.word} {name.name!a} of metalake {name.metalake} would be refused by this release",
            why=name.problem,
            advice=(
                f"it stays valid; add a {name.kind.word} with another name, give it the roles and objects, and remove"
                " this one"
            ),
        )
        for name in asyncio.run(_read_store(settings, lambda tx: invalid_names(tx, admins=admins)))
    ]


def _metalake_warnings(settings: Settings) -> list[StartWarning]:
    """Return warnings about metalakes of the settings that were renamed, or whose name another metalake has."""
    if not _has_store(settings):
        return []
    names = asyncio.run(_read_store(settings, lambda tx: drive_load(setting_names_read(), tx.rows)))
    listed = metalakes_named(settings)
    renamed = {name: now for name, (_, now) in names.items() if now != name and name in listed}
    return [
        StartWarning(
            f"The metalake that was created as {name} has the name {now}",
            why=f"it still counts as {name} in storages and issuers; no other metalake of that name does",
            advice=(
                f"set server.metalake to {now}: requests that name no metalake do not find it"
                if name == settings.server.metalake
                else f"nothing, if {name} in the settings means this metalake"
            ),
        )
        for name, now in renamed.items()
    ]


def _has_store(settings: Settings) -> bool:
    database = database_of(settings)
    return ("://" in database or Path(database).exists()) and current_revision(database) == head_revision()


async def _read_store(settings: Settings, read: Callable[[Tx], T]) -> T:
    store = open_store(settings)
    try:
        return await store.submit(upkeep_permit("limnos"), read)
    finally:
        await store.close()


def _can_write(settings: Settings) -> None:
    """Write a file into the data directory. A directory that a check has made is removed again."""
    is_new = not Path(settings.server.data).exists()
    directory = make_data_directory(settings)
    probe = directory / ".check"
    probe.touch()
    probe.unlink()
    if is_new:
        with suppress(OSError):
            directory.rmdir()


def _can_open(settings: Settings) -> None:
    database = database_of(settings)
    if "://" not in database and not Path(database).is_file():
        return  # a start creates it; the check of the data directory reports a directory that cannot be written
    revision = current_revision(database)
    if revision == head_revision():
        warn_of_keys(settings, database)
        return
    if revision is None:
        if "://" in database:
            raise _no_tables(database)
        return
    raise CannotStart(
        f"The store {masked_address(database)} has another schema than this release needs",
        why=f"it has schema {revision}, this release needs {head_revision()}",
        advice="run 'limnos server migrate' if it is an older one; start the newer release if it is not",
    )


def _no_tables(database: str) -> CannotStart:
    """Return the error for a database of PostgreSQL without tables; a warning if a start may create them."""
    message = f"The store {masked_address(database)} has no tables"
    if may_create_tables(database):
        return StartWarning(
            message,
            why="the database is empty, or its tables are in another schema or database",
            advice="'limnos server migrate' creates them, as a start does; if there should be some, correct --database",
        )
    return CannotStart(
        message,
        why="the database is empty, or its tables are elsewhere, and this user may not create tables in its schema",
        advice=(
            "run 'limnos server migrate' with the --database of the owner, then grant this user the rights on the tables;"
            " if there should be some, correct --database"
        ),
    )


def migrate(
    settings: Settings, *, restored: bool = False, keeps_tokens: bool = False, beside_servers: bool = False
) -> str:
    """Migrate the store to this release's schema. Returns a report.

    `restored`: the store comes from a backup. All nodes then start with an empty view, and ids are never reused. All
    tokens are revoked, because later revocations are lost, unless `keeps_tokens`. Raises CannotStart, and BadBackup if
    a server uses the restored store, unless `beside_servers`; nothing is changed then.
    """
    _configure_logs(settings)
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
    done = f"schema {after}: nothing to do" if before == after else f"schema {before or 'none'} -> {after}"
    if not restored:
        return done
    lacking = missing_keys(settings, database_of(settings))
    if lacking:
        done = f"{done}; secrets are sealed under keys that {keys_origin(settings)} lacks: {keys_text(lacking)}"
    renew_epoch(database_of(settings))
    revoked = 0 if keeps_tokens else revoke_tokens(database_of(settings))
    return (
        f"{done}; every node reloads the store, and new ids are greater than all earlier ones; tokens revoked:"
        f" {revoked}"
    )


def janitor(settings: Settings, *, dry_run: bool) -> list[str]:
    """Remove orphaned metadata files and empty directories now. Returns their paths; `dry_run` only lists them."""
    _configure_logs(settings)
    with explain_startup_errors(settings, database_of(settings)):
        make_data_directory(settings)
        return asyncio.run(_clean(settings, dry_run=dry_run))


async def _clean(settings: Settings, *, dry_run: bool) -> list[str]:
    store = open_store(settings)
    permit = upkeep_permit("limnos")
    try:
        stated = await store.submit(permit, lambda tx: tx.tasks.waiting_payload(JANITOR))
        payload = JanitorPayload() if stated is None else msgspec.json.decode(stated, type=JanitorPayload)
        work = TaskContext(
            0,
            store=store,
            permit=permit,
            allowed=allowed_of(settings),
            warehouse=warehouse_of(settings),
            lease_ms=LEASE_MS,
            debris_ms=settings.lance.debris_age_s * 1000,
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
    url = url_of(sockets[0], scheme="http" if settings.tls.certificate is None else "https")
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
{_shared_store_note(settings)}
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


def _shared_store_note(settings: Settings) -> str:
    """Return a warning if nodes may share the store while its tables are on this machine's disk; else ""."""
    if "://" not in database_of(settings) or not warehouse_of(settings).startswith("file:"):
        return ""
    return f"""
  Note: tables are stored in {warehouse_of(settings)}, a disk of this machine. Another node on this database needs the
  same files at the same path: mount them there, or give every node --warehouse s3://BUCKET/PATH before the first start.
"""
