"""The server process: start, check, migrate.

May import every room below, uvicorn and uvloop. Standard output carries only what users and scripts read: `ready URL`
and how to connect; logs go to standard error.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from limnos.app.bootstrap import TOKEN_FILE
from limnos.app.building import database_of, make_data_directory
from limnos.app.listening import listen, url_of
from limnos.app.serving import serve
from limnos.store.migrate import current_revision, head_revision, renew_epoch
from limnos.store.migrate import migrate as migrate_store
from limnos.telemetry.logs import configure, get_logger

if TYPE_CHECKING:
    import socket

    from limnos.config.settings import Settings

log = get_logger("limnos.server")


@dataclass(frozen=True, slots=True)
class Problem:
    """Something that would keep a server from starting."""

    message: str

    def __str__(self) -> str:
        return self.message


def start(settings: Settings) -> int:
    """Serve until SIGTERM or SIGINT; returns the exit code."""
    configure(settings.log.level, settings.log.format)
    sockets = listen(settings)
    serve(settings, sockets, lambda: _announce(settings, sockets))
    return 0


def check(settings: Settings) -> list[Problem]:
    """Look whether a server could start."""
    problems = []
    data = Path(settings.server.data)
    try:
        make_data_directory(settings)
        (data / ".check").touch()
        (data / ".check").unlink()
    except OSError as error:
        problems.append(Problem(f"Directory {data} cannot be written: {error}"))
    try:
        revision = current_revision(database_of(settings))
        if revision not in (None, head_revision()):
            problems.append(
                Problem(f"The store has schema {revision}, this release needs {head_revision()}: run server migrate")
            )
    except Exception as error:  # noqa: BLE001 - whatever it is, it is a problem
        problems.append(Problem(f"The store {_shown(database_of(settings))} cannot be opened: {error}"))
    return problems


def migrate(settings: Settings, *, restored: bool = False) -> str:
    """Bring the store to this release's schema; says what was done.

    `restored`: it was put back from a backup, so no node may go on with what it knows, and no id may come back.
    """
    make_data_directory(settings)
    before, after = migrate_store(database_of(settings))
    done = f"schema {after}: nothing to do" if before == after else f"schema {before or 'none'} -> {after}"
    if not restored:
        return done
    renew_epoch(database_of(settings))
    return f"{done}; every node reads the store afresh, and new ids follow all that were ever given"


def _shown(database: str) -> str:
    return database.rpartition("@")[2] if "@" in database else database


def _announce(settings: Settings, sockets: list[socket.socket]) -> None:
    """Say on standard output that it serves, and how to connect."""
    url = url_of(sockets[0])
    sys.stdout.write(f"ready {url}\n{_how_to_connect(settings, url)}")
    sys.stdout.flush()
    log.info("serving", url=url, extra=[s.getsockname()[1] for s in sockets[1:]], store=_shown(database_of(settings)))


def _how_to_connect(settings: Settings, url: str) -> str:
    server, access = settings.server, settings.access
    token = Path(server.data) / TOKEN_FILE
    believed = access.authentication == "simple"
    return f"""
  Admin token     {token}   (user {server.admin})
  Access control  {"on" if access.enabled else "off: everyone may do everything"}
  Callers         {"the user named by Basic is believed (simple), tokens are checked" if believed else "tokens only"}

  Spark           limnos.spark.session("{url}", token=open("{token}").read().strip())
  PyIceberg       load_catalog("{server.catalog}", type="rest", uri="{url}/iceberg", warehouse="{server.catalog}", token=...)
  Gravitino       GravitinoClient(uri="{url}", metalake_name="{server.metalake}")
  Command line    limnos --uri {url} --token-file {token} ls

"""
