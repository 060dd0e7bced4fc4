# SPDX-License-Identifier: Apache-2.0
"""The formats of tables that a harvest of directories recognizes, and those of which the server registers tables."""

from __future__ import annotations

from typing import Final

ICEBERG: Final = "iceberg"
LANCE: Final = "lance"
DELTA: Final = "delta"
PARQUET: Final = "parquet"
HARVEST_FORMATS: Final = (ICEBERG, LANCE, DELTA, PARQUET)
REGISTRABLE_FORMATS: Final = (ICEBERG, LANCE)
