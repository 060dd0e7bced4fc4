# SPDX-License-Identifier: Apache-2.0
"""The manifest of the room `maintenance`."""

from __future__ import annotations

from typing import Final

from limnos.manifests.manifest import (
    ClientEntry,
    Command,
    CommandOperation,
    HomeEntry,
    Manifest,
    OffloadedEntry,
    PagesEntry,
    RoutesEntry,
    SectionEntry,
    TabEntry,
    TasksEntry,
)

MANIFEST: Final = Manifest(
    name="maintenance",
    about="maintenance of tables",
    routes=(
        RoutesEntry(
            protocol="admin",
            routes="limnos.rooms.maintenance.http.maintenance:ROUTES",
            paths=("/api/limnos/v1/metalakes/{m}/catalogs/{c}/maintenance",),
        ),
        RoutesEntry(
            protocol="admin",
            routes="limnos.rooms.maintenance.http.spans:ROUTES",
            paths=("/api/limnos/v1/metalakes/{m}/catalogs/{c}/maintenance/operations/{o}",),
        ),
        RoutesEntry(
            protocol="admin",
            routes="limnos.rooms.maintenance.http.rewrites:ROUTES",
            paths=("/api/limnos/v1/metalakes/{m}/maintenance",),
        ),
        RoutesEntry(
            protocol="gravitino",
            routes="limnos.rooms.maintenance.http.table_operations:ROUTES",
            paths=("/api/maintenance",),
        ),
    ),
    tables=(
        "maintenance_finding",
        "maintenance_checkpoint",
        "maintenance_operation",
        "maintenance_orphan_file",
        "maintenance_orphan_check",
        "maintenance_rewrite",
        "maintenance_lease",
    ),
    tasks=(
        TasksEntry(
            kinds="limnos.rooms.maintenance.tasks:KINDS",
            names=(
                "assess-tables",
                "expire-snapshots",
                "maintain-tables",
                "maintain-lance-table",
                "maintain-lance-tables",
                "check-orphan-files",
                "remove-orphan-files",
            ),
        ),
    ),
    offloaded=(
        OffloadedEntry(prefix="maintenance-", functions="limnos.rooms.maintenance.formats.offloaded:OFFLOADED_WORK"),
    ),
    parts="limnos.rooms.maintenance.server:register_parts",
    loops=(
        "limnos.rooms.maintenance.server:executor_loop",
        "limnos.rooms.maintenance.server:pauses_loop",
    ),
    settings=(SectionEntry(name="maintenance", section="limnos.config.maintenance:MaintenanceSection"),),
    client=(ClientEntry(attribute="maintenance", resource="limnos.client.operation.maintenance:Maintenance"),),
    commands=(
        Command(
            name="maintenance",
            topic="Work",
            place=4,
            summary="Show and run the maintenance that tables need.",
            code="limnos.rooms.maintenance.cli.maintenance:app",
            group=(
                "plan",
                "explain",
                "run",
                "cancel",
                "work",
                "status",
            ),
        ),
    ),
    operations=(
        CommandOperation(verb="list", kind="operation", arguments="CATALOG", command="maintenance status", place=371),
        CommandOperation(verb="show", kind="maintenance", arguments="TABLE", command="maintenance explain", place=561),
    ),
    pages=(
        PagesEntry(
            routes="limnos.rooms.maintenance.console.health:ROUTES",
            paths=(
                "/maintain",
                "/maintain-cancel",
            ),
        ),
        PagesEntry(
            routes="limnos.rooms.maintenance.console.maintenance_overview:ROUTES",
            paths=("/maintenance",),
            navigation="limnos.rooms.maintenance.console.navigation:PAGES",
        ),
    ),
    tabs=(
        TabEntry(
            name="maintenance",
            text="Maintenance",
            before=("scans", "properties"),
            content="limnos.rooms.maintenance.console.health:health_tab",
        ),
    ),
    home=(HomeEntry(needs="limnos.rooms.maintenance.console.home_lines:table_needs", place=20),),
    docs=("guides/maintenance.md",),
)
