"""What is read of a Lance table itself: who reads it is for `app` to choose, and what its storage needs to be told.

May import `sources` for the shapes of questions and answers, and `model`. Never imports Lance's library.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol

import msgspec

from limnos.model.errors import Unsupported
from limnos.sources.lance import questions

if TYPE_CHECKING:
    from collections.abc import Mapping

    from limnos.services.chores import Chores
    from limnos.sources.lance.questions import Describe, Described

_OPTIONS: Final = {
    "s3.endpoint": "aws_endpoint",
    "s3.region": "aws_region",
    "client.region": "aws_region",
    "s3.access-key-id": "aws_access_key_id",
    "s3.secret-access-key": "aws_secret_access_key",
    "s3.session-token": "aws_session_token",
}
"""Properties of catalogs, and what Lance calls the same."""


class LanceReader(Protocol):
    """Whoever reads Lance tables."""

    async def describe(self, asked: Describe) -> Described | None:
        """Describe a table; None when nothing was written to its location yet. Raises NotFound, InvalidTable, StorageFailed."""
        ...

    def close(self) -> None:
        """End whatever is under way."""
        ...


class NoReader:
    """Reads nothing: for services that nobody asks for a Lance table's contents."""

    async def describe(self, asked: Describe) -> Described | None:
        """Refuse."""
        raise Unsupported(f"Nobody reads the table at {asked.location} here")

    def close(self) -> None:
        """Nothing is under way."""


class ProcessReader:
    """Reads Lance tables in processes of their own."""

    def __init__(self, processes: Chores) -> None:
        self._processes = processes

    async def describe(self, asked: Describe) -> Described | None:
        """Ask a process."""
        (answer,) = await self._processes.do(questions.DESCRIBE, msgspec.json.encode(asked))
        return msgspec.json.decode(answer, type=questions.Described | None)

    def close(self) -> None:
        """End the processes."""
        self._processes.close()


def options_of(properties: Mapping[str, str]) -> dict[str, str]:
    """Return what Lance is told of a catalog's object store."""
    found = {_OPTIONS[key]: value for key, value in properties.items() if key in _OPTIONS}
    if found.get("aws_endpoint", "").startswith("http://"):
        found["allow_http"] = "true"
    if properties.get("s3.path-style-access", "").lower() == "false":
        found["aws_virtual_hosted_style_request"] = "true"
    return found
