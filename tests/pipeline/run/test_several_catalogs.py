# SPDX-License-Identifier: Apache-2.0
"""Runs whose tables are in several catalogs of a metalake: published by one commit, or not at all."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from limnos.client import Client
from limnos.client.errors import DeniedError
from limnos.pipeline.context import StepContext
from limnos.pipeline.declaration import Pipeline, Sql, StepDeclaration
from limnos.pipeline.declared_values import Parts
from limnos.pipeline.failures import StepFailed
from limnos.pipeline.run.held_runs import discard, publish_held
from limnos.pipeline.run.options import RunOptions
from limnos.pipeline.run.refs import heads_of
from limnos.pipeline.run.result import RunResult
from limnos.pipeline.run.resume import resume
from limnos.pipeline.run.start import start
from tests.integration.live import LiveServer
from tests.pipeline.run.conftest import PipelineRig, commit

pytestmark = pytest.mark.integration


class TwoCatalogs:
    """A pipeline with a table `a` in `main` and a table `b`, made from it, in another catalog."""

    def __init__(self, rig: PipelineRig) -> None:
        self.rig = rig
        self.other = f"other{rig.space}"
        rig.client.catalogs.create(self.other)
        rig.client.namespaces.create(f"{self.other}.{rig.space}")
        self.first: Parts = ("main", rig.space, "a")
        self.second: Parts = (self.other, rig.space, "b")
        steps = (
            StepDeclaration(table=self.first, body=Sql(text="")),
            StepDeclaration(table=self.second, body=Sql(text=".".join(self.first))),
        )
        self.pipeline = Pipeline(name=rig.space, catalog="main", steps=steps)

    def run(self, **options: object) -> RunResult:
        """Run the pipeline."""
        return start(
            self.pipeline,
            self.rig.means(),
            directory=Path(),
            options=RunOptions(**{"lease_s": 2, **options}),  # type: ignore[arg-type]
        )

    def mains(self) -> list[int | None]:
        """Return the published snapshots of both tables."""
        loaded_heads = [heads_of(self.rig.client, table) for table in (self.first, self.second)]
        return [None if heads is None else heads.main for heads in loaded_heads]

    def refs(self) -> list[set[str]]:
        """Return the branches of both tables."""
        loaded_heads = [heads_of(self.rig.client, table) for table in (self.first, self.second)]
        return [set() if heads is None else set(heads.refs) for heads in loaded_heads]


@pytest.fixture
def two(rig: PipelineRig) -> TwoCatalogs:
    """Return the pipeline."""
    return TwoCatalogs(rig)


def test_tables_of_two_catalogs_are_published_by_one_commit(two: TwoCatalogs) -> None:
    """Both tables move, their branches are gone, and the run's record has the revision of its catalog."""
    ended = two.run()

    assert (ended.state, ended.exit_code) == ("published", 0), ended.message
    assert None not in two.mains()
    assert two.refs() == [{"main"}] * 2
    seen = two.rig.client.runs.load(ended.run)
    assert seen.revision == ended.revision
    assert two.rig.engine.read[f"{two.rig.space}.b"] == {two.first: two.mains()[0]}


def test_failed_step_in_one_catalog_publishes_nothing(two: TwoCatalogs) -> None:
    """If the second catalog's step fails, the first catalog's table is not published; a resume publishes both."""

    def trouble(step: StepDeclaration, context: StepContext) -> None:
        if step.table == two.second:
            raise StepFailed("b cannot be made")

    two.rig.engine.before = trouble
    ended = two.run()
    assert ended.state == "failed"
    assert two.mains() == [None, None]

    rig = two.rig.renewed()
    again = resume(two.pipeline, rig.means(), run_id=ended.run, directory=Path(), options=RunOptions(lease_s=2))

    assert again.state == "published", again.message
    assert None not in two.mains()
    assert [name for name, _ in rig.engine.carried] == [f"{two.rig.space}.b"]
    assert two.refs() == [{"main"}] * 2


@pytest.mark.parametrize("place", [0, 1])
def test_table_written_meanwhile_repeats_its_steps(two: TwoCatalogs, place: int) -> None:
    """If another client writes the table of one catalog during the run, its steps run again and both are published."""
    two.run()
    table = (two.first, two.second)[place]
    before = two.mains()
    done = threading.Event()

    def meddle(step: StepDeclaration, context: StepContext) -> None:
        if step.table == two.second and not done.is_set():
            done.set()
            commit(two.rig.client, table, ref="main", parent=before[place])

    two.rig.engine.after = meddle
    two.rig.engine.carried.clear()

    ended = two.run()

    assert ended.state == "published", ended.message
    assert len(two.rig.engine.carried) == (4, 3)[place]
    assert all(after not in (None, earlier) for after, earlier in zip(two.mains(), before, strict=True))


def test_held_run_of_two_catalogs_is_published_later(two: TwoCatalogs) -> None:
    """A held run publishes both tables."""
    ended = two.run(hold=True)
    assert two.mains() == [None, None]

    assert publish_held(two.rig.client, ended.run).state == "published"

    assert None not in two.mains()
    assert two.rig.client.runs.load(ended.run).state == "published"


def test_discarded_run_leaves_nothing_in_either_catalog(two: TwoCatalogs) -> None:
    """Discarding drops the new tables of both catalogs."""
    ended = two.run(hold=True)

    discard(two.rig.client, ended.run)

    assert not any(two.rig.client.tables.exists(table) for table in (two.first, two.second))


@pytest.mark.parametrize("place", [0, 1])
def test_right_revoked_in_one_catalog_publishes_nothing(two: TwoCatalogs, server: LiveServer, place: int) -> None:
    """If the right to write one catalog's table is revoked while the run is held, neither table is published, and
    after it is granted again both are.
    """
    ended = two.run(hold=True)
    client = two.rig.client
    user, role = f"u{two.rig.space}", f"r{two.rig.space}"
    client.users.add(user)
    client.roles.create(role)
    client.roles.grant_to_user(user, [role])
    client.roles.allow(role, ["run_job"], on="lake", kind="metalake")
    client.owners.set(two.pipeline.name, user, kind="job_template")
    for catalog in ("main", two.other):
        client.roles.allow(
            role, ["use_catalog", "use_schema", "modify_table", "select_table"], on=catalog, kind="catalog"
        )
    table = (two.first, two.second)[place]
    with Client(server.uri, token=client.tokens.create(user=user).token) as theirs:
        client.roles.withdraw(role, ["modify_table"], on=table[0], kind="catalog")
        with pytest.raises(DeniedError):
            publish_held(theirs, ended.run)
        assert two.mains() == [None, None]
        client.roles.allow(role, ["modify_table"], on=table[0], kind="catalog")

        assert publish_held(theirs, ended.run).state == "published"

    assert None not in two.mains()
