"""The server process: start, check, migrate.

May import every room below, uvicorn and uvloop. Standard output carries only what users and scripts read: `ready URL`
and how to connect; logs go to standard error.
"""

from __future__ import annotations

import asyncio
import gc
import signal
import socket
import sys
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import uvicorn
import uvloop

from limnos.app.bootstrap import TOKEN_FILE, bootstrap
from limnos.app.building import build, database_of, make_data_directory
from limnos.config.settings import split_listen
from limnos.http.connection import GatheringProtocol, LaneProtocol
from limnos.model.errors import LimnosError
from limnos.store.migrate import current_revision, head_revision, renew_epoch
from limnos.store.migrate import migrate as migrate_store
from limnos.telemetry.logs import configure, get_logger

if TYPE_CHECKING:
    from collections.abc import Iterator

    from limnos.app.building import Built
    from limnos.config.settings import Settings

log = get_logger("limnos.server")
DEFAULT_LISTEN = "127.0.0.1:8090"
EXTRA_PORT = 9001
BACKLOG = 2048


class CannotListen(LimnosError):
    """The address is taken, or not ours."""

    code = "cannot-listen"


@dataclass(frozen=True, slots=True)
class Problem:
    """Something that would keep a server from starting."""

    message: str

    def __str__(self) -> str:
        return self.message


def start(settings: Settings) -> int:
    """Serve until SIGTERM or SIGINT; returns the exit code."""
    configure(settings.log.level, settings.log.format)
    sockets = _listen(settings)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_serve(settings, sockets))
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


def _listen(settings: Settings) -> list[socket.socket]:
    """Bind the address that was asked for; by default also the customary Iceberg port, when it is free."""
    address = settings.server.listen or DEFAULT_LISTEN
    host, port = split_listen(address)
    sockets = [_bind(host, port)]
    if settings.server.listen is None:
        with suppress(CannotListen):
            sockets.append(_bind(host, EXTRA_PORT))
    return sockets


def _bind(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    found = socket.socket(family, socket.SOCK_STREAM)
    found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        found.bind((host, port))
    except OSError as error:
        found.close()
        raise CannotListen(
            f"Cannot listen on {host}:{port}: {error.strerror}. Choose another address with --listen HOST:PORT"
        ) from None
    found.listen(BACKLOG)
    found.setblocking(False)
    return found


class _Server(uvicorn.Server):
    """Uvicorn's server, stopped by our own signal handlers: a stop that was asked for ends with exit code 0."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        loop = asyncio.get_running_loop()
        for name in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(name, self._stop)
        yield

    def _stop(self) -> None:
        self.force_exit = self.should_exit
        self.should_exit = True


async def _serve(settings: Settings, sockets: list[socket.socket]) -> None:
    built = build(settings)
    upkeep: asyncio.Task[None] | None = None
    try:
        await bootstrap(built.services, settings)
        upkeep = asyncio.create_task(built.upkeep.run())
        server = _Server(_config(built, settings))
        announcing = asyncio.create_task(_announce(server, settings, sockets))
        await server.serve(sockets=sockets)
        announcing.cancel()
    finally:
        if upkeep is not None:
            upkeep.cancel()
            with suppress(asyncio.CancelledError):
                await upkeep
        await built.services.store.close()
        built.services.files.close()


def _config(built: Built, settings: Settings) -> uvicorn.Config:
    return uvicorn.Config(
        built.application, http=LaneProtocol if settings.server.lane else GatheringProtocol, loop="none",
        lifespan="off", log_config=None, access_log=False, server_header=False, date_header=False,
        timeout_keep_alive=75, proxy_headers=False, timeout_graceful_shutdown=max(1, round(settings.server.drain_timeout_s)),
    )  # fmt: skip


def settle_memory() -> None:
    """What start-up made lives for ever, and requests leave few cycles: let the collector look seldom, at new objects."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)


async def _announce(server: uvicorn.Server, settings: Settings, sockets: list[socket.socket]) -> None:
    """Say on standard output that it serves, and how to connect."""
    while not server.started:  # noqa: ASYNC110 - uvicorn has a flag, no event
        await asyncio.sleep(0.01)
    settle_memory()
    host, port = sockets[0].getsockname()[:2]
    url = f"http://{f'[{host}]' if ':' in host else host}:{port}"
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
