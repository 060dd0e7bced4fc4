# SPDX-License-Identifier: Apache-2.0
"""The end of a session: what is left of a Spark whose Java has ended."""

from __future__ import annotations

from typing import Any, cast

import pytest

from limnos.spark.machine import end_session


class EndedSpark:
    """A session that fails as one whose Java has ended does."""

    def __init__(self, error: Exception) -> None:
        self.error = error

    def stop(self) -> None:
        """Raise the error."""
        raise self.error


def test_session_of_ended_java_is_closed_without_error() -> None:
    """A signal to all processes of a terminal ends Java, too, so nothing is left to stop. Other errors are raised."""
    end_session(cast("Any", EndedSpark(ConnectionRefusedError(111, "Connection refused"))))

    with pytest.raises(ValueError, match="another"):
        end_session(cast("Any", EndedSpark(ValueError("another"))))
