"""A plugin of pytest that lowers one use from the start: `-p conformance.lesser.planted`, its number in `LIMNOS_LESSER_PLANT`."""

from __future__ import annotations

from pathlib import Path

from conformance.lesser.sites import install

install(Path(__file__).resolve().parents[2] / "src")
