# SPDX-License-Identifier: Apache-2.0
"""Settings of the room."""

from __future__ import annotations

from limnos.config.section import SettingsSection


class WeatherSection(SettingsSection):
    """The weather."""

    place: str = "hills"
    """The place whose weather is shown."""
