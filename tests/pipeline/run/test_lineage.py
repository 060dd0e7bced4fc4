# SPDX-License-Identifier: Apache-2.0
"""Lineage of tables is reported when they are published, for every publisher and every attempt."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from limnos.client import Client
from limnos.pipeline.run.held_runs import publish_held
from limnos.pipeline.run.options import RunOptions
from limnos.pipeline.run.resume import resume
from tests.integration.live import LiveServer
from tests.pipeline.run.conftest import PipelineRig
from tests.pipeline.run.test_runner import failing

pytestmark = pytest.mark.integration

RIGHTS = ("use_catalog", "use_schema", "create_table", "modify_table", "select_table")
JOBS = ("register_job_template", "use_job_template", "run_job")


def sources(rig: PipelineRig, name: str) -> set[str]:
    """Return the tables of the test that are sources of a table."""
    graph = rig.client.lineage.up(rig.table(name))
    return {node.path[-1] for node in graph.nodes if node.path is not None} - {name}


def test_lineage_of_published_run_is_reported(rig: PipelineRig) -> None:
    """Each table's sources are the tables that its step read."""
    ended = rig.run(rig.pipeline(a="", b="a", c="a b"))

    assert ended.state == "published", ended.message
    assert [sources(rig, name) for name in "abc"] == [set(), {"a"}, {"a", "b"}]


def test_lineage_of_held_run_is_reported_at_publication(rig: PipelineRig) -> None:
    """Lineage of a held run is reported when it is published, from its record, because its process has ended."""
    held_run = rig.run(rig.pipeline(a="", b="a"), hold=True)
    before = sources(rig, "b")

    published = publish_held(rig.client, held_run.run)

    assert published.state == "published", published.message
    assert (before, sources(rig, "b")) == (set(), {"a"})


def test_lineage_of_earlier_attempt_is_reported(rig: PipelineRig) -> None:
    """The lineage of a step that finished before the kill comes from the record, because the step is not repeated."""
    rig.engine.before = failing("c")
    ended = rig.run(rig.pipeline(a="", b="a", c="b"))
    again = rig.renewed()

    means, options = again.means(), RunOptions(lease_s=2)
    second = resume(rig.pipeline(a="", b="a", c="b"), means, run_id=ended.run, directory=Path(), options=options)

    assert second.state == "published", second.message
    assert [name for name, _ in again.engine.carried] == [f"{rig.space}.c"]
    assert [sources(rig, name) for name in "abc"] == [set(), {"a"}, {"b"}]


def test_lineage_in_record_is_reported_only_by_runs_own_user(rig: PipelineRig, server: LiveServer) -> None:
    """If another user publishes a run, the message names the user who can report the lineage; if the run's own user
    publishes, it is reported.
    """
    admin = rig.client
    user, role = f"ana_{rig.space}", f"role_{rig.space}"
    admin.users.add(user)
    admin.roles.create(role)
    admin.roles.allow(role, RIGHTS, on="main", kind="catalog")
    admin.roles.allow(role, JOBS, on="lake", kind="metalake")
    admin.roles.grant_to_user(user, [role])
    with Client(server.uri, token=admin.tokens.create(user=user).token) as ana:
        theirs = replace(rig, client=ana, heartbeat_client=ana, engine=replace(rig.engine, client=ana))
        held_run = theirs.run(rig.pipeline(a="", b="a"), hold=True)
        published = publish_held(admin, held_run.run)
        after_admin = sources(rig, "b")
        own = publish_held(ana, theirs.run(rig.pipeline(a="", b="a"), hold=True).run)

    assert (published.state, own.state) == ("published", "published")
    assert f"only {user} can report the run's inputs" in published.message
    assert (after_admin, sources(rig, "b")) == (set(), {"a"})
