# SPDX-License-Identifier: Apache-2.0
"""The pages of the room `jobs` in the console's navigation."""

from __future__ import annotations

from typing import Final

from limnos.rooms.console.http.navigation.console_page import ConsolePage

PAGES: Final = (ConsolePage(path="/jobs", text="Jobs", icon="list", section="jobs", place=13),)
