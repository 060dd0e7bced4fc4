# SPDX-License-Identifier: Apache-2.0
"""The manifest of the room `weather`."""

from __future__ import annotations

from limnos.manifests.manifest import ClientEntry, Command, Manifest, RoutesEntry, SectionEntry, TasksEntry

MANIFEST = Manifest(
    name="weather",
    about="the weather",
    routes=(RoutesEntry(protocol="admin", routes="limnos_weather.routes:ROUTES", paths=("/api/weather",)),),
    tables=("weather_report",),
    migrations="limnos_weather.migrations",
    tasks=(TasksEntry(kinds="limnos_weather.work:KINDS", names=("look-at-the-sky",)),),
    loops=("limnos_weather.work:loop",),
    settings=(SectionEntry(name="weather", section="limnos_weather.settings:WeatherSection"),),
    client=(ClientEntry(attribute="weather", resource="limnos_weather.commands:Weather"),),
    commands=(
        Command(
            name="weather", topic="Work", place=1000, summary="Show the weather.", code="limnos_weather.commands:show"
        ),
    ),
)
