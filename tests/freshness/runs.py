# SPDX-License-Identifier: Apache-2.0
"""Random operations on pipelines and their runs for the freshness tests: declare, rename, drop, grant, run and end.

Runs are read from the store each time. Views cache the existence of a pipeline, its name, and the privileges on it.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import TYPE_CHECKING

from limnos.access.actions import Action
from limnos.model.decisions import ChainLink
from limnos.model.kinds import Kind
from limnos.services.request.property_edits import PropertyEdits
from limnos.services.runs import job_templates, pipelines, runs
from tests.installed import has_room, room_part

if TYPE_CHECKING:
    from limnos.services.request.context import Context
    from limnos.services.request.request_view import RequestView
    from tests.freshness.world import StoryWorld, Work

_SERVICES = "limnos.rooms.pipelines.services"
_declare = room_part(f"{_SERVICES}.declarations:pipeline_put")
_drop = room_part(f"{_SERVICES}.declarations:pipeline_drop")
_begin = room_part(f"{_SERVICES}.run_attempts:RunBegin")
_start = room_part(f"{_SERVICES}.run_attempts:run_start")
_finish = room_part(f"{_SERVICES}.run_attempts:run_finish")
PIPELINES = ("daily", "hourly")
_LEASE_MS = 5_000


def pipeline_declare(world: StoryWorld, ctx: Context) -> Work:
    """Declare a pipeline, new or unchanged."""
    work: Work = _declare(
        ctx,
        metalake=world.metalake(),
        name=pipeline(world),
        declaration=b'{"n": %d}' % world.dice.randint(1, 3),
        comment=None,
    )
    return work


def pipeline_rename(world: StoryWorld, ctx: Context) -> Work:
    """Rename a pipeline, possibly to the name of the other one."""
    edits = PropertyEdits(name=pipeline(world))
    return job_templates.template_alter(ctx, metalake=world.metalake(), name=pipeline(world), edits=edits)


def pipeline_drop(world: StoryWorld, ctx: Context) -> Work:
    """Drop a pipeline without running runs."""
    work: Work = _drop(ctx, metalake=world.metalake(), name=pipeline(world))
    return work


def run_start(world: StoryWorld, ctx: Context) -> Work:
    """Start a run. It is refused while another one is running."""
    begin = _begin(
        uuid=str(uuid.UUID(int=world.dice.getrandbits(128))),
        holder="node:1",
        lease_ms=_LEASE_MS,
        parameters="{}",
        options="{}",
        steps=(),
    )
    work: Work = _start(ctx, metalake=world.metalake(), pipeline=pipeline(world), begin=begin)
    return work


def run_end(world: StoryWorld, ctx: Context) -> Work:
    """End a run as its user, or cancel it as another user with the privilege."""
    run_rows = world.sql("SELECT uuid FROM pipeline_run ORDER BY id")
    run = str(world.dice.choice(run_rows)[0]) if run_rows else str(uuid.UUID(int=1))
    if world.dice.random() < 0.5:
        return runs.run_cancel(ctx, metalake=world.metalake(), uuid=run)
    state = world.dice.choice(("failed", "held", "discarded"))
    work: Work = _finish(ctx, metalake=world.metalake(), uuid=run, attempt=1, state=state, message=None)
    return work


def pipeline(world: StoryWorld) -> str:
    """Return a pipeline's name, existing or not."""
    return world.dice.choice(PIPELINES)


def list_pipeline_questions(name: str) -> tuple[Callable[[RequestView], object], ...]:
    """Return questions for views: listed names, one pipeline, and whether the caller may run it."""

    def may_run(request_view: RequestView) -> object:
        request_view.require_in_metalake_use()
        node, chain = request_view.find_outside(Kind.JOB_TEMPLATE, (name,))
        return request_view.decide(
            Action.JOB_RUN, chain if node is not None else (ChainLink.absent(Kind.JOB_TEMPLATE, name), *chain)
        )

    return (
        lambda request_view: [each.node.name for each in pipelines.pipelines_list(request_view)],
        lambda request_view: pipelines.pipeline_find(request_view, name),
        may_run,
    )


MUTATIONS: dict[Callable[[StoryWorld, Context], Work], int] = (
    {pipeline_declare: 5, pipeline_rename: 2, pipeline_drop: 1, run_start: 4, run_end: 3}
    if has_room("pipelines")
    else {}
)
"""The operations with their weights; none without the room."""
