# SPDX-License-Identifier: Apache-2.0
"""The pages of the room `sqlpp` in the console's navigation."""

from __future__ import annotations

from typing import Final

from limnos.rooms.console.http.navigation.console_page import ConsolePage

PAGES: Final = (
    ConsolePage(
        path="/worksheet",
        text="Worksheet",
        icon="function",
        section="worksheet",
        words="sql query statements",
        place=12,
    ),
)
