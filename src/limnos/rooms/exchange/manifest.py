# SPDX-License-Identifier: Apache-2.0
"""The manifest of the room `exchange`."""

from __future__ import annotations

from typing import Final

from limnos.manifests.manifest import ClientEntry, Command, Manifest, RoutesEntry, TasksEntry

MANIFEST: Final = Manifest(
    name="exchange",
    about="exports and imports of metalakes, and the tree as tables",
    close="limnos.rooms.exchange.parts:close",
    routes=(
        RoutesEntry(
            protocol="admin",
            routes="limnos.rooms.exchange.http.exchange:ROUTES",
            paths=(
                "/api/limnos/v1/metalakes/{m}/export",
                "/api/limnos/v1/imports",
            ),
        ),
        RoutesEntry(
            protocol="admin",
            routes="limnos.rooms.exchange.http.system_tables:ROUTES",
            paths=("/api/limnos/v1/metalakes/{m}/system-tables",),
        ),
    ),
    tables=(
        "metalake_import",
        "import_object",
    ),
    tasks=(
        TasksEntry(
            kinds="limnos.rooms.exchange.tasks:KINDS",
            names=(
                "prune-import",
                "prune-imports",
            ),
        ),
    ),
    client=(
        ClientEntry(attribute="imports", resource="limnos.client.activity.exchange:Imports"),
        ClientEntry(attribute="system_tables", resource="limnos.client.activity.system_tables:SystemTables"),
    ),
    commands=(
        Command(
            name="ask",
            topic="Objects",
            place=150,
            summary="Query objects, owners, tags, grants and access in SQL.",
            code="limnos.rooms.exchange.cli.ask:ask",
        ),
        Command(
            name="export",
            topic="Objects",
            place=151,
            summary="Export a metalake to a file.",
            code="limnos.rooms.exchange.cli.exchange:export",
        ),
        Command(
            name="import",
            topic="Objects",
            place=152,
            summary="Create a metalake from an export.",
            code="limnos.rooms.exchange.cli.exchange:import_",
        ),
    ),
    docs=("guides/export.md", "guides/ask.md"),
)
