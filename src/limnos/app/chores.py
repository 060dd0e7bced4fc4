"""The processes that do chores: started when there is one to do, ended at its deadline, replaced when they die.

May import `model`, `telemetry`, the wire of `sources` and the standard library. Knows no chore: it passes names and bytes. They are
spawned, not forked, with an environment that holds no secret, and leave by themselves when this process is gone. How much
memory one has is looked at from here, where a limit of its own would end it in the middle of a library that cannot bear that.
"""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from limnos.model.errors import BadRequest, CommitConflict, LimnosError, TooLarge, Unavailable
from limnos.sources.wire import COUNT, LENGTH, pack
from limnos.telemetry.logs import get_logger
from limnos.telemetry.metrics import Counter

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

log = get_logger("limnos.chores")
IDLE_S = 60.0
WAITING_MAX = 64
WAITING_BYTES_MAX = 256 << 20
DONE = Counter(
    "limnos_chores_total", "Heavy work done in processes of its own, by kind and outcome.", ("kind", "outcome")
)
REFUSALS: Mapping[str, Callable[[str], LimnosError]] = {
    BadRequest.code: BadRequest,
    CommitConflict.code: CommitConflict,
}
CHORE = "limnos.app.chore"
LOOK_S = 0.2
"""How often a process at work is looked at that may only have so much memory."""
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
PASSED_ON = ("LANG", "LC_ALL", "PATH", "PYTHONPATH", "TMPDIR")


class Hand:
    """One process, and the socket to it."""

    def __init__(self, module: str) -> None:
        ours, theirs = socket.socketpair()
        ours.setblocking(False)
        environment = {key: os.environ[key] for key in PASSED_ON if key in os.environ}
        command = [sys.executable, "-P", "-m", module]
        with theirs:
            actions = [(os.POSIX_SPAWN_DUP2, theirs.fileno(), 0), (os.POSIX_SPAWN_DUP2, 2, 1)]
            self.pid = os.posix_spawn(sys.executable, command, environment, file_actions=actions)
        self._wire = ours
        self.used_at = 0.0

    async def ask(self, parts: list[bytes]) -> list[bytes]:
        """Send a chore and wait for what comes of it. Raises ConnectionError when the process is gone."""
        loop = asyncio.get_running_loop()
        await loop.sock_sendall(self._wire, pack(parts))
        (count,) = COUNT.unpack(await self._exactly(COUNT.size))
        return [await self._exactly(LENGTH.unpack(await self._exactly(LENGTH.size))[0]) for _ in range(count)]

    async def _exactly(self, size: int) -> bytes:
        loop, chunks, left = asyncio.get_running_loop(), [], size
        while left:
            chunk = await loop.sock_recv(self._wire, min(left, 1 << 20))
            if not chunk:
                raise ConnectionResetError("The process has ended")
            chunks.append(chunk)
            left -= len(chunk)
        return b"".join(chunks)

    def resident_bytes(self) -> int:
        """Return how much memory the process has; 0 when nobody can tell."""
        try:
            return int(Path(f"/proc/{self.pid}/statm").read_text().split()[1]) * PAGE_BYTES
        except (OSError, ValueError, IndexError):
            return 0

    def end(self) -> None:
        """End the process, whatever it is at, and see it off."""
        self._wire.close()
        with suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)
        with suppress(ChildProcessError):
            os.waitpid(self.pid, 0)  # it was killed: that takes no time


class ChoreProcesses:
    """Does chores in a few processes; who finds them all busy waits, and who finds too many waiting is told so."""

    def __init__(
        self, *, processes_max: int, module: str = CHORE, refusals: Mapping[str, Callable[[str], LimnosError]] = REFUSALS,
        resident_bytes_max: int | None = None,
    ) -> None:  # fmt: skip
        self._module = module
        self._refusals = refusals
        self._resident_bytes_max = resident_bytes_max
        self._free = asyncio.Semaphore(processes_max)
        self._idle: list[Hand] = []
        self._busy: set[Hand] = set()
        self._waiting = 0
        self._bytes = 0
        self._timer: asyncio.TimerHandle | None = None

    async def do(self, name: str, *parts: bytes) -> list[bytes]:
        """Do a chore; whoever cancels ends it. Raises what it raises, Unavailable when there is no room or it died."""
        size = sum(map(len, parts))
        if self._waiting >= WAITING_MAX or self._bytes + size > WAITING_BYTES_MAX:
            DONE[name, "no room"] += 1
            raise Unavailable("Too much heavy work at once; nothing was changed: try again", retry_after_s=1)
        self._waiting += 1
        self._bytes += size
        try:
            async with self._free:
                answer = await self._ask([name.encode(), *parts])
        finally:
            self._waiting -= 1
            self._bytes -= size
        return self._taken(name, answer)

    async def _ask(self, parts: list[bytes]) -> list[bytes]:
        """Ask a process; one that died while it was idle is replaced without a word."""
        while self._idle:
            try:
                return await self._ask_one(self._idle.pop(), parts)
            except ConnectionError:
                continue
        try:
            return await self._ask_one(Hand(self._module), parts)
        except (ConnectionError, OSError) as error:
            DONE[parts[0].decode(), "died"] += 1
            log.warning("a process that did a chore has died", chore=parts[0].decode(), error=str(error))
            raise Unavailable("This was too much work, and nothing was changed: make it smaller") from error

    async def _ask_one(self, hand: Hand, parts: list[bytes]) -> list[bytes]:
        self._busy.add(hand)
        try:
            answer = await (hand.ask(parts) if self._resident_bytes_max is None else self._watched(hand, parts))
        except BaseException as error:
            if isinstance(error, asyncio.CancelledError):
                DONE[parts[0].decode(), "ended"] += 1
                log.warning("a chore was ended at its deadline", chore=parts[0].decode(), pid=hand.pid)
            hand.end()
            raise
        finally:
            self._busy.discard(hand)
        self._rest(hand)
        return answer

    async def _watched(self, hand: Hand, parts: list[bytes]) -> list[bytes]:
        """Ask a process that is ended when it takes more memory than it may have. Raises TooLarge."""
        asked = asyncio.create_task(hand.ask(parts))
        try:
            while not (await asyncio.wait({asked}, timeout=LOOK_S))[0]:
                if hand.resident_bytes() > (self._resident_bytes_max or 0):
                    DONE[parts[0].decode(), "too large"] += 1
                    raise TooLarge(
                        "This takes more memory than a request may have; nothing was changed: ask for less at once"
                    )
            return asked.result()
        finally:
            asked.cancel()

    def _taken(self, name: str, answer: list[bytes]) -> list[bytes]:
        outcome, *parts = answer
        DONE[name, outcome.decode()] += 1
        if outcome == b"done":
            return parts
        if outcome == b"refused":
            raise self._refusals.get(parts[0].decode(), BadRequest)(parts[1].decode())
        raise RuntimeError(f"Chore {name} failed: {parts[0].decode()}")

    def _rest(self, hand: Hand) -> None:
        """Keep a process for the next chore, and let it go when there is none for a while."""
        loop = asyncio.get_running_loop()
        if self._resident_bytes_max is not None and hand.resident_bytes() > self._resident_bytes_max // 2:
            hand.end()  # what it has grown to it does not give back
            return
        hand.used_at = loop.time()
        self._idle.append(hand)
        if self._timer is None:
            self._timer = loop.call_later(IDLE_S, self._dismiss)

    def _dismiss(self) -> None:
        loop = asyncio.get_running_loop()
        for hand in [each for each in self._idle if loop.time() - each.used_at >= IDLE_S]:
            self._idle.remove(hand)
            hand.end()
        self._timer = loop.call_later(IDLE_S, self._dismiss) if self._idle else None

    def pids(self) -> list[int]:
        """Return the processes that are there."""
        return [hand.pid for hand in (*self._busy, *self._idle)]

    def close(self) -> None:
        """End every process."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        for hand in (*self._busy, *self._idle):
            hand.end()
        self._idle.clear()
