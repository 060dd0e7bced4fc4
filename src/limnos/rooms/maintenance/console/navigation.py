# SPDX-License-Identifier: Apache-2.0
"""The pages of the room `maintenance` in the console's navigation."""

from __future__ import annotations

from typing import Final

from limnos.rooms.console.http.navigation.console_page import ConsolePage

PAGES: Final = (
    ConsolePage(
        path="/maintenance",
        text="Maintenance",
        icon="wrench",
        section="maintenance",
        key="g m",
        words="compaction snapshots",
        place=14,
    ),
)
