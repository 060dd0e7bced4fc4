# SPDX-License-Identifier: Apache-2.0
"""The property of a dataset's table by which its owner allows writers other than SQL++."""

from __future__ import annotations

from typing import Final

OUTSIDE_WRITERS: Final = "sqlpp.outside-writers"
"""The table property that allows clients other than SQL++ to write its rows."""
ALLOWED, REFUSED = "allowed", "refused"
