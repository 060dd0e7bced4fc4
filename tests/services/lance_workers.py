"""Processes that work on Lance tables, as tests of whoever asks them have them: they keep what they are asked, and write no rows."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable
from pathlib import Path

import msgspec

from limnos.services.lance.work import Errand
from limnos.sources.lance.questions import Written

DONE = Written(1, "uuid", inserted=3)


class Workers:
    """Processes that write a manifest, or do as a test has them; each errand is kept."""

    def __init__(self, act: Callable[[Errand], Awaitable[None]] | None = None) -> None:
        self._act = act
        self.asked: list[dict[str, object]] = []

    async def _done(self, errand: Errand) -> None:
        self.asked.append({"name": errand.name.decode(), **msgspec.json.decode(errand.question)})
        await errand.begin()
        if self._act is not None:
            await self._act(errand)

    async def ask(self, errand: Errand) -> bytes:
        """Answer as the question wants."""
        await self._done(errand)
        return b"3" if errand.name == b"Count" else msgspec.json.encode(DONE)

    async def feed(self, errand: Errand, body: AsyncGenerator[bytes, None]) -> bytes:
        """Take the body, then have a version there."""
        async for _ in body:
            pass
        await self._done(errand)
        (Path(errand.table) / "_versions").mkdir(parents=True, exist_ok=True)
        return msgspec.json.encode(DONE)

    async def stream(self, errand: Errand) -> AsyncGenerator[bytes, None]:
        """Give two pieces, and then another one as the test has it."""
        self.asked.append({"name": errand.name.decode()})
        yield b"one"
        yield b"two"
        if self._act is not None:
            await self._act(errand)
            yield b"three"

    def close(self) -> None:
        """Nothing is under way."""


def lay(root: Path, name: str) -> Path:
    """Lay what looks like a table; returns where."""
    (root / name / "_versions").mkdir(parents=True)
    return root / name
