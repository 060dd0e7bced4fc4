# SPDX-License-Identifier: Apache-2.0
"""Open results: what the results that a node is sending may use of its memory, for each user.

Must not know any wire format. A client that reads slowly keeps its result open. Without these limits, one user's
clients could fill the memory of the node.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from limnos.model.errors import TooManyAttempts
from limnos.services.request.node_services import ComponentKey

RETRY_AFTER_S: Final = 10


class OpenResults:
    """The streamed results of each user of this node, and the bytes of results that it has in memory for the user."""

    def __init__(self, *, streams_max: int, bytes_max: int) -> None:
        self._streams_max, self._bytes_max = streams_max, bytes_max
        self._streams: Counter[str] = Counter()
        self._bytes: Counter[str] = Counter()

    def open(self, user: str) -> OpenResult:
        """Count a result that will be streamed, until it is closed. Raises TooManyAttempts."""
        if self._streams[user] >= self._streams_max:
            raise TooManyAttempts(
                f"You have {self._streams_max} open results on this node (sqlpp.streams_max): read their responses to "
                "the end, or close the connections, and try again",
                retry_after_s=RETRY_AFTER_S,
            )
        self._streams[user] += 1
        return OpenResult(self, user)

    def forget(self, user: str) -> None:
        """Stop counting a result. Only for `OpenResult`."""
        self._subtract(self._streams, user, count=1)

    @contextmanager
    def hold(self, user: str, size: int) -> Iterator[None]:
        """Count bytes of a result in memory for the body of a `with`. Raises TooManyAttempts, also for a single result
        above the limit.
        """
        if self._bytes[user] + size > self._bytes_max:
            raise TooManyAttempts(
                f"The results that this node has in memory for you would exceed {self._bytes_max} bytes "
                "(sqlpp.streams_bytes_max): read the responses to other statements to the end, or close their "
                "connections, and try again; or select less",
                retry_after_s=RETRY_AFTER_S,
            )
        self._bytes[user] += size
        try:
            yield
        finally:
            self._subtract(self._bytes, user, count=size)

    @staticmethod
    def _subtract(counts: Counter[str], user: str, *, count: int) -> None:
        counts[user] -= count
        if not counts[user]:
            del counts[user]


class OpenResult:
    """A result that counts for its user until it is closed."""

    def __init__(self, results: OpenResults, user: str) -> None:
        self._results, self._user = results, user
        self._is_open = True

    def close(self) -> None:
        """Stop counting the result. A second call does nothing."""
        if self._is_open:
            self._is_open = False
            self._results.forget(self._user)


OPEN_RESULTS: ComponentKey[OpenResults] = ComponentKey(
    "open_results",
    lambda services: OpenResults(
        streams_max=services.defaults.sqlpp_streams_max, bytes_max=services.defaults.sqlpp_streams_bytes_max
    ),
)
