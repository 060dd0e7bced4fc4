# SPDX-License-Identifier: Apache-2.0
"""Errors of Lance's library as the errors by which the runner decides what to do next."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from limnos.pipeline.engine.connection import client_errors
from limnos.pipeline.failures import StepAway

_AWAY: Final = re.compile(
    r"error sending request|Connection refused|Connection reset|ServiceUnavailable|timed out", re.IGNORECASE
)


@contextmanager
def lance_errors() -> Iterator[None]:
    """Convert errors of the client and of Lance's library in the body of a `with` to StepErrors."""
    try:
        with client_errors():
            yield
    except (OSError, RuntimeError) as error:
        if type(error) in (OSError, RuntimeError) and _AWAY.search(str(error)):
            raise StepAway(str(error)) from error
        raise
