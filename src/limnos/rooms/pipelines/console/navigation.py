# SPDX-License-Identifier: Apache-2.0
"""The pages of the room `pipelines` in the console's navigation."""

from __future__ import annotations

from typing import Final

from limnos.rooms.console.http.navigation.console_page import ConsolePage

PAGES: Final = (
    ConsolePage(
        path="/pipelines", text="Pipelines", icon="run", section="pipelines", key="g p", words="runs", place=11
    ),
)
