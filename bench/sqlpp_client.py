# SPDX-License-Identifier: Apache-2.0
"""A client of SQL++ for benchmarks: one connection, statements one after the other.

Imports the standard library only.
"""

from __future__ import annotations

import http.client
import json
import time
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from collections.abc import Callable


STATEMENT_S: Final = 3600
"""Maximum seconds of a statement on a busy machine."""
LONG: Final = {"LIMNOS__SQLPP__TIMEOUT_S": str(STATEMENT_S)}
"""The server's setting for such long statements."""


class StatementRefused(Exception):
    """A statement was refused."""


class Client:
    """One connection."""

    def __init__(self, uri: str, token: str) -> None:
        self._to = urlsplit(uri).netloc
        self._headers = {"authorization": f"Bearer {token}", "content-type": "application/json"}
        self._connection = http.client.HTTPConnection(self._to, timeout=STATEMENT_S)

    def say(self, statement: str, **more: str) -> list[Any]:
        """Run statements and return the results. Raises Refused."""
        body = json.dumps({"statement": statement, **more})
        self._connection.request("POST", "/query/service", body, self._headers)
        response = json.loads(self._connection.getresponse().read())
        if response["status"] != "success":
            raise StatementRefused(f"{statement[:80]}: {response.get('errors')}")
        results: list[Any] = response.get("results", [])
        return results

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()


def took_ms(work: Callable[[], object]) -> float:
    """Return an action's duration."""
    began = time.perf_counter()
    work()
    return (time.perf_counter() - began) * 1000
