# SPDX-License-Identifier: Apache-2.0
"""The manifest of the room `lance`."""

from __future__ import annotations

from typing import Final

from limnos.manifests.manifest import ClientEntry, Command, Manifest, ProtocolEntry, SectionEntry, TabEntry, TasksEntry

MANIFEST: Final = Manifest(
    name="lance",
    about="Lance REST",
    protocols=(
        ProtocolEntry(
            name="lance",
            protocol="limnos.rooms.lance.server:protocol",
            paths=(
                "/lance",
                "/v1/namespace",
                "/v1/table",
                "/v1/transaction",
                "/v1/materialized_view",
            ),
            error="limnos.rooms.lance.http.errors:error_response",
        ),
    ),
    tables=("lance_version",),
    tasks=(TasksEntry(kinds="limnos.rooms.lance.tasks:KINDS", names=("purge-lance-table",)),),
    cleanups=("limnos.rooms.lance.services.debris:debris_run",),
    parts="limnos.rooms.lance.server:register_parts",
    close="limnos.rooms.lance.server:close",
    settings=(SectionEntry(name="lance", section="limnos.config.settings:LanceSection"),),
    client=(ClientEntry(attribute="lance", resource="limnos.client.catalog.lance_libraries:Lance"),),
    commands=(
        Command(
            name="lance",
            topic="Work",
            place=5,
            summary="List, serve or register directories of Lance tables.",
            code="limnos.rooms.lance.cli.lance:app",
            group=(
                "list",
                "describe",
                "import",
                "serve",
            ),
            aliases=(
                ("lance ls", "lance list"),
                ("lance show", "lance describe"),
            ),
        ),
    ),
    tabs=(
        TabEntry(
            name="versions",
            text="Versions",
            before=("properties",),
            content="limnos.rooms.lance.console.table_tabs:versions_tab",
            is_lance=True,
        ),
        TabEntry(
            name="indexes",
            text="Indexes",
            before=("properties",),
            content="limnos.rooms.lance.console.table_tabs:indexes_tab",
            is_lance=True,
        ),
    ),
    docs=(
        "guides/lance.md",
        "guides/lance-directories.md",
        "guides/lance-spark.md",
    ),
)
