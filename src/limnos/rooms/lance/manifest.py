# SPDX-License-Identifier: Apache-2.0
"""The manifest of the room `lance`."""

from __future__ import annotations

from typing import Final

from limnos.manifests.manifest import ClientEntry, Command, Manifest, ProtocolEntry, SectionEntry, TasksEntry

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
            error="limnos.http.lance.errors:error_response",
        ),
    ),
    tables=("lance_version",),
    tasks=(TasksEntry(kinds="limnos.rooms.lance.tasks:KINDS", names=("purge-lance-table",)),),
    parts="limnos.rooms.lance.server:register_workers",
    close="limnos.rooms.lance.server:close",
    settings=(SectionEntry(name="lance", section="limnos.config.settings:LanceSection"),),
    client=(ClientEntry(attribute="lance", resource="limnos.client.catalog.lance_libraries:Lance"),),
    commands=(
        Command(
            name="lance",
            topic="Work",
            place=5,
            summary="List, serve or register directories of Lance tables.",
            code="limnos.cli.catalog.lance:app",
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
    docs=(
        "guides/lance.md",
        "guides/lance-directories.md",
        "guides/lance-spark.md",
    ),
)
