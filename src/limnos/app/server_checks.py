# SPDX-License-Identifier: Apache-2.0
"""The checks of `limnos server check`: what would keep a server from starting, and what its users would miss."""

from __future__ import annotations

import asyncio
import os
import shlex
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TypeVar, cast

import msgspec

from limnos.app.authentication_mode import with_authentication
from limnos.app.certificates import certificates_of
from limnos.app.listening import can_listen
from limnos.app.node_builder import allowed_storage_of, database_of, make_data_directory, open_store
from limnos.app.packages import require_packages
from limnos.app.request_defaults import metalakes_named
from limnos.app.room_parts import room_notes
from limnos.app.sealing_keys import warn_of_keys
from limnos.app.startup_errors import damaged_store_error, explain_startup_errors, masked_address
from limnos.config.secrets import secrets_of
from limnos.config.settings import Settings
from limnos.files import is_within
from limnos.model.errors import CannotStart, StartWarning
from limnos.model.permits import upkeep_permit
from limnos.services.iceberg.unreadable_documents import UnreadableDocuments
from limnos.services.lookup.principal_names import invalid_names
from limnos.services.storage.location_reconciliation import describe_conflicts, is_unsettled
from limnos.services.upkeep.released_locations import FREE_PLACES, ReleasedLocations
from limnos.store.backends.damage import find_damage
from limnos.store.backends.migrate import may_create_tables
from limnos.store.backends.schema_revisions import current_revision, head_revision
from limnos.store.objects.setting_names import setting_names_read
from limnos.store.sql import drive_load
from limnos.store.tx import Tx
from limnos.telemetry.logs import configure

T = TypeVar("T")

_NAMED_MAX = 3


def configure_logs(settings: Settings) -> None:
    """Write logs as the settings say, without their secrets."""
    log_settings = settings.log
    configure(log_settings.level, log_settings.format, hidden=secrets_of(settings), libraries=log_settings.libraries)


def check(settings: Settings) -> list[CannotStart]:
    """Return all errors that would keep a server from starting, damage of the store, and StartWarnings for defects that
    would not.
    """
    configure_logs(settings)
    problems: list[CannotStart] = []
    for look in (can_listen, certificates_of, require_packages, _can_write, _can_open):
        try:
            with explain_startup_errors(settings, database_of(settings)):
                look(settings)
        except CannotStart as result:
            problems.append(result)
    unreadable = UnreadableDocuments()
    if all(isinstance(each, StartWarning) for each in problems):
        problems += _damaged_documents(settings, unreadable)
    if all(isinstance(each, StartWarning) for each in problems):
        problems += _mode_warnings(settings)
        problems += _location_warnings(settings)
        problems += _name_warnings(settings)
        problems += _metalake_warnings(settings)
        problems += _reader_warnings(settings, unreadable)
        problems += _worker_warnings(settings)
    return problems


def startup_notes(settings: Settings) -> list[str]:
    """Return one sentence for each optional component that the server would start without, such as engine files, and
    one if there is no store yet.
    """
    database = database_of(settings)
    is_first = "://" not in database and not Path(database).is_file()
    first = [f"there is no store {database} yet: a start creates it; if one should be there, correct --data"]
    return [
        *(first if is_first else []),
        *room_notes(settings),
    ]


def _damaged_documents(settings: Settings, unreadable: UnreadableDocuments) -> list[CannotStart]:
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


def _root_warnings(settings: Settings, roots: Sequence[tuple[str, int]]) -> list[StartWarning]:
    """Return a warning if the server does not allow roots of catalogs, as after a restore into another directory.

    A catalog without a location of its own has the directory of its id in the server's warehouse. If the warehouse was
    another one, an allowed root is not enough for its tables.
    """
    storage = allowed_storage_of(settings)
    own_roots = (storage.roots[0], *storage.open_within)  # the warehouse is the first root
    outside = [
        root
        for root, catalog_id in roots
        if not is_within(root, storage.roots) or (root.endswith(f"/{catalog_id}") and not is_within(root, own_roots))
    ]
    if not outside:
        return []
    return [
        StartWarning(
            f"Catalogs have locations that this server does not allow: {', '.join(outside[:_NAMED_MAX])}"
            f"{', …' if len(outside) > _NAMED_MAX else ''}",
            why="their tables cannot be read; a restore into another data directory leaves the files where they were",
            advice=f"start the server with {_allow_flags(outside)}",
        )
    ]


def _allow_flags(roots: Sequence[str]) -> str:
    """Return the flags that allow roots: the former warehouse for those in it, and a flag for each other one."""
    above = {parent for root in roots if (parent := root.rpartition("/")[0]).endswith("/warehouse")}
    former = above.pop() if len(above) == 1 else None
    others = [root for root in roots if former is None or root.rpartition("/")[0] != former]
    flags = [f"--allow-root {shlex.quote(each)}" for each in others]
    return " ".join([f"--warehouse {shlex.quote(former)}", *flags] if former is not None else flags)


def _released_warnings(locations: ReleasedLocations) -> list[StartWarning]:
    """Return a warning if locations of dropped objects still have files, by the last run of the task that checks
    them.
    """
    if not locations.kept:
        return []
    location_names = ", ".join(locations.kept_first)
    return [
        StartWarning(
            f"Locations of dropped objects still contain files, or cannot be listed: {locations.kept}",
            why=(
                "only the last owner of each may create an object there:"
                f" {location_names}{', …' if locations.kept > len(locations.kept_first) else ''}"
            ),
            advice="delete the files there if they are not needed: a task frees empty locations once a day",
        )
    ]


def _released_read(tx: Tx) -> ReleasedLocations:
    payload = tx.tasks.waiting_payload(FREE_PLACES)
    return ReleasedLocations() if payload is None else msgspec.json.decode(payload, type=ReleasedLocations)


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
    metalake_names = metalakes_named(settings)
    renamed = {name: now for name, (_, now) in names.items() if now != name and name in metalake_names}
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
            "run 'limnos server migrate' with the --database of the owner, then grant this user the rights on the"
            " tables; if there should be some, correct --database"
        ),
    )
