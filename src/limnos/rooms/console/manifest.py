# SPDX-License-Identifier: Apache-2.0
"""The manifest of the room `console`."""

from __future__ import annotations

from typing import Final

from limnos.manifests.manifest import Command, Manifest, ProtocolEntry, RoutesEntry, SectionEntry

MANIFEST: Final = Manifest(
    name="console",
    about="the console",
    switch="console.enabled",
    protocols=(
        ProtocolEntry(
            name="console",
            protocol="limnos.rooms.console.server:protocol",
            paths=("/console",),
            error="limnos.rooms.console.refusals:error_response",
        ),
    ),
    routes=(
        RoutesEntry(
            protocol="admin",
            routes="limnos.rooms.console.http.credentials.console_codes:ROUTES",
            paths=("/api/limnos/v1/console",),
        ),
    ),
    settings=(SectionEntry(name="console", section="limnos.config.server:ConsoleSection"),),
    commands=(
        Command(
            name="console",
            topic="Users and access",
            place=171,
            summary="Open the console in a browser, signed in.",
            code="limnos.rooms.console.cli.console:console",
        ),
    ),
    offers=(
        "limnos.rooms.console.http.addresses",
        "limnos.rooms.console.http.connect",
        "limnos.rooms.console.http.errors",
        "limnos.rooms.console.http.frame",
        "limnos.rooms.console.http.home_needs",
        "limnos.rooms.console.http.navigation.console_page",
        "limnos.rooms.console.http.navigation.heading_words",
        "limnos.rooms.console.http.navigation.palette",
        "limnos.rooms.console.http.page_requests",
        "limnos.rooms.console.http.pictures",
        "limnos.rooms.console.http.rendering",
        "limnos.rooms.console.http.responses",
        "limnos.rooms.console.http.sheets",
        "limnos.rooms.console.http.table_metadata",
        "limnos.rooms.console.http.table_parts.lance_columns",
        "limnos.rooms.console.http.tabs",
    ),
    docs=("guides/console.md",),
)
