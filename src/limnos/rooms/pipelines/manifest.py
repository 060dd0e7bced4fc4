# SPDX-License-Identifier: Apache-2.0
"""The manifest of the room `pipelines`."""

from __future__ import annotations

from typing import Final

from limnos.manifests.manifest import (
    ClientEntry,
    Command,
    CommandOperation,
    HomeEntry,
    Manifest,
    PagesEntry,
    ProcessEntry,
    RoutesEntry,
    TasksEntry,
)

MANIFEST: Final = Manifest(
    name="pipelines",
    about="pipelines and lineage",
    routes=(
        RoutesEntry(
            protocol="admin",
            routes="limnos.rooms.pipelines.http.pipelines:ROUTES",
            paths=("/api/limnos/v1/metalakes/{m}/pipelines",),
        ),
        RoutesEntry(
            protocol="admin",
            routes="limnos.rooms.pipelines.http.schedules:ROUTES",
            paths=("/api/limnos/v1/metalakes/{m}/schedules",),
        ),
        RoutesEntry(
            protocol="admin",
            routes="limnos.rooms.pipelines.http.runs:ROUTES",
            paths=(
                "/api/limnos/v1/metalakes/{m}/pipelines/{p}/runs",
                "/api/limnos/v1/metalakes/{m}/runs",
            ),
        ),
        RoutesEntry(
            protocol="admin",
            routes="limnos.rooms.pipelines.http.lineage:ROUTES",
            paths=(
                "/api/limnos/v1/metalakes/{m}/lineage",
                "/api/lineage",
                "/api/v1/lineage",
            ),
        ),
    ),
    tables=(
        "pipeline_version",
        "pipeline_schedule",
        "pipeline_run",
        "run_step",
        "run_finding",
        "lineage_edge",
        "lineage_column",
    ),
    loops=("limnos.rooms.pipelines.server:schedules_loop",),
    tasks=(TasksEntry(kinds="limnos.rooms.pipelines.tasks:KINDS", names=("prune-runs",)),),
    client=(
        ClientEntry(attribute="pipelines", resource="limnos.client.activity.runs:Pipelines"),
        ClientEntry(attribute="schedules", resource="limnos.client.activity.schedules:Schedules"),
        ClientEntry(attribute="runs", resource="limnos.client.activity.runs:Runs"),
        ClientEntry(attribute="lineage", resource="limnos.client.activity.lineage:Lineage"),
    ),
    commands=(
        Command(
            name="lineage",
            topic="Objects",
            place=121,
            summary="Show where an object's data comes from, and goes.",
            code="limnos.rooms.pipelines.cli.lineage:app",
            group=(
                "up",
                "down",
            ),
        ),
        Command(
            name="pipeline",
            topic="Work",
            place=1,
            summary="Pipelines and their runs.",
            code="limnos.rooms.pipelines.cli.pipelines:app",
            group=(
                "check",
                "watch",
                "plan",
                "test",
                "schema",
                "graph",
                "docs",
                "run",
                "promote",
                "resume",
                "publish",
                "discard",
                "diff",
                "list",
                "runs",
                "show",
                "cancel",
                "findings",
                "schedule",
                "calendar",
                "shipped",
                "drop",
            ),
            aliases=(("pipeline delete", "pipeline drop"),),
        ),
        Command(
            name="schedule",
            topic="Work",
            place=3,
            summary="Pipelines that the server runs at their due times.",
            code="limnos.rooms.pipelines.cli.schedules:app",
            group=(
                "list",
                "show",
                "pause",
                "resume",
                "delete",
            ),
            aliases=(("schedule create", "pipeline schedule"),),
        ),
    ),
    operations=(
        CommandOperation(verb="list", kind="pipeline", arguments="", command="pipeline list", place=261),
        CommandOperation(verb="list", kind="run", arguments="[PIPELINE]", command="pipeline runs", place=341),
        CommandOperation(verb="list", kind="finding", arguments="PIPELINE", command="pipeline findings", place=342),
        CommandOperation(verb="list", kind="schedule", arguments="", command="schedule list", place=345),
        CommandOperation(verb="show", kind="schedule", arguments="PIPELINE", command="schedule show", place=554),
        CommandOperation(verb="delete", kind="schedule", arguments="PIPELINE", command="schedule delete", place=944),
        CommandOperation(verb="show", kind="lineage", arguments="PATH", command="lineage up", place=551),
        CommandOperation(verb="show", kind="run", arguments="RUN", command="pipeline show", place=552),
        CommandOperation(verb="delete", kind="pipeline", arguments="PIPELINE", command="pipeline drop", place=941),
        CommandOperation(verb="delete", kind="run", arguments="RUN", command="pipeline discard", place=943),
    ),
    processes=(ProcessEntry(word="__pipeline-helper__", serve="limnos.rooms.pipelines.cli.helper.process:serve"),),
    pages=(
        PagesEntry(routes="limnos.rooms.pipelines.console.lineage_graph:ROUTES", paths=("/lineage",)),
        PagesEntry(
            routes="limnos.rooms.pipelines.console.pipelines:ROUTES",
            paths=(
                "/pipelines",
                "/pipeline",
            ),
            navigation="limnos.rooms.pipelines.console.navigation:PAGES",
        ),
        PagesEntry(routes="limnos.rooms.pipelines.console.runs:ROUTES", paths=("/run",)),
        PagesEntry(routes="limnos.rooms.pipelines.console.schedules:ROUTES", paths=("/schedules",)),
    ),
    home=(HomeEntry(needs="limnos.rooms.pipelines.console.home_needs:pipeline_needs", place=10),),
    drop_sheets="limnos.rooms.pipelines.console.readers:readers_sheets",
    docs=(
        "start/pipelines.md",
        "guides/run-pipelines.md",
        "guides/pipeline-sources.md",
        "guides/verification.md",
        "guides/expectations.md",
        "guides/lineage.md",
        "guides/from-pipeline-tools.md",
        "reference/pipeline-file.md",
        "reference/run-records.md",
        "explain/increments.md",
    ),
)
