# SPDX-License-Identifier: Apache-2.0
"""The deadline of a statement of the SQL++ engine while its results are being sent to a client.

Must not know engines.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable


class SendingDeadline:
    """The deadline of a statement while its results are being sent, for the body of each `with`.

    A client that reads slowly would otherwise keep the statement in its engine after the deadline, because the
    statement is only continued for further results. At the deadline `end` is called, and the body that is left after it
    raises TimeoutError.
    """

    def __init__(self, at: float, end: Callable[[], None]) -> None:
        self._at, self._end = at, end
        self.is_over = False

    def __enter__(self) -> None:
        self._timer = asyncio.get_running_loop().call_at(self._at, self._pass)

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._timer.cancel()
        if self.is_over and kind is None:
            raise TimeoutError

    def _pass(self) -> None:
        self.is_over = True
        self._end()
