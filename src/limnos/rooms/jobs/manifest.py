# SPDX-License-Identifier: Apache-2.0
"""The manifest of the room `jobs`."""

from __future__ import annotations

from typing import Final

from limnos.manifests.manifest import (
    ClientEntry,
    Command,
    CommandOperation,
    Manifest,
    PagesEntry,
    RoutesEntry,
    SectionEntry,
)

MANIFEST: Final = Manifest(
    name="jobs",
    about="jobs",
    routes=(
        RoutesEntry(
            protocol="admin",
            routes="limnos.rooms.jobs.http.jobs:ROUTES",
            paths=("/api/limnos/v1/metalakes/{m}/jobs",),
        ),
        RoutesEntry(
            protocol="gravitino", routes="limnos.rooms.gravitino.http.jobs:ROUTES", paths=("/api/metalakes/{m}/jobs",)
        ),
    ),
    kinds=(
        "job_template",
        "job",
    ),
    tables=("template_job",),
    notes="limnos.rooms.jobs.app.job_confinement:job_notes",
    parts="limnos.rooms.jobs.server:register_rules",
    loops=("limnos.rooms.jobs.server:executor_loop",),
    settings=(SectionEntry(name="jobs", section="limnos.config.jobs:JobsSection"),),
    client=(
        ClientEntry(attribute="job_templates", resource="limnos.client.activity.jobs:JobTemplates"),
        ClientEntry(attribute="jobs", resource="limnos.client.activity.jobs:Jobs"),
    ),
    commands=(
        Command(
            name="job",
            topic="Work",
            place=2,
            summary="Programs and Spark applications that the server runs.",
            code="limnos.rooms.jobs.cli.jobs:app",
            group=(
                "register",
                "templates",
                "run",
                "list",
                "show",
                "cancel",
                "delete",
            ),
            aliases=(("job create", "job register"),),
        ),
    ),
    operations=(
        CommandOperation(
            verb="create", kind="template", arguments="NAME EXECUTABLE", command="job register", place=141
        ),
        CommandOperation(verb="list", kind="job", arguments="[TEMPLATE]", command="job list", place=343),
        CommandOperation(verb="list", kind="template", arguments="", command="job templates", place=344),
        CommandOperation(verb="show", kind="job", arguments="JOB", command="job show", place=553),
        CommandOperation(verb="delete", kind="template", arguments="TEMPLATE", command="job delete", place=942),
    ),
    pages=(
        PagesEntry(
            routes="limnos.rooms.jobs.console.jobs:ROUTES",
            paths=(
                "/jobs",
                "/job",
            ),
            navigation="limnos.rooms.jobs.console.navigation:PAGES",
        ),
    ),
    docs=("guides/jobs.md",),
)
