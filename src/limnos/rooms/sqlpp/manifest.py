# SPDX-License-Identifier: Apache-2.0
"""The manifest of the room `sqlpp`."""

from __future__ import annotations

from typing import Final

from limnos.manifests.manifest import (
    ClientEntry,
    Command,
    Manifest,
    OffloadedEntry,
    PagesEntry,
    ProtocolEntry,
    SectionEntry,
    TasksEntry,
)

MANIFEST: Final = Manifest(
    name="sqlpp",
    about="SQL++",
    switch="sqlpp.enabled",
    protocols=(
        ProtocolEntry(
            name="asterix",
            protocol="limnos.rooms.sqlpp.server:protocol",
            paths=(
                "/query/service",
                "/connector",
                "/admin",
            ),
            error="limnos.rooms.sqlpp.http.errors:error_response",
        ),
    ),
    kinds=(
        "datatype",
        "synonym",
        "external_dataset",
    ),
    tables=(
        "sqlpp_lock",
        "sqlpp_request",
    ),
    tasks=(
        TasksEntry(
            kinds="limnos.rooms.sqlpp.tasks:KINDS",
            names=(
                "compact-dataset",
                "tend-dataset",
                "drop-unfinished-dataset",
            ),
        ),
    ),
    offloaded=(OffloadedEntry(prefix="sqlpp-", functions="limnos.rooms.sqlpp.language.offloaded_work:OFFLOADED_WORK"),),
    statements="limnos.rooms.sqlpp.services.definitions.stored_statements:STATEMENTS",
    notes="limnos.rooms.sqlpp.server:notes",
    parts="limnos.rooms.sqlpp.server:register_processes",
    loops=("limnos.rooms.sqlpp.server:engine_loop",),
    close="limnos.rooms.sqlpp.server:close",
    settings=(
        SectionEntry(name="sqlpp", section="limnos.config.engine:SqlppSection"),
        SectionEntry(name="engine", section="limnos.config.engine:EngineSection"),
    ),
    client=(ClientEntry(attribute="sqlpp", resource="limnos.client.operation.sqlpp:Statements"),),
    commands=(
        Command(
            name="sql",
            topic="Work",
            place=3,
            summary="Run SQL++ statements, or an SQL++ shell.",
            code="limnos.rooms.sqlpp.cli.sql:sql",
        ),
    ),
    pages=(
        PagesEntry(
            routes="limnos.rooms.sqlpp.console.statements:ROUTES",
            paths=("/worksheet",),
            navigation="limnos.rooms.sqlpp.console.navigation:PAGES",
        ),
    ),
    docs=(
        "reference/sqlpp.md",
        "reference/sqlpp-decisions.md",
        "reference/sqlpp-conformance.md",
        "reference/sqlpp-exports.md",
        "reference/sqlpp-random-queries.md",
        "explain/datasets.md",
        "guides/from-asterixdb.md",
    ),
)
