# SPDX-License-Identifier: Apache-2.0
"""A run's record is written by its user, so it gives no rights to a user who publishes or discards the run."""

from __future__ import annotations

import uuid

import pytest

from limnos.client import Client
from limnos.model.errors import CommitConflict
from limnos.pipeline.context import MADE_BY, branch_name, branches_prefix
from limnos.pipeline.declared_values import Parts
from limnos.pipeline.run.held_runs import discard, publish_held
from limnos.pipeline.run.refs import heads_of
from tests.integration.live import LiveServer
from tests.pipeline.run.conftest import SCHEMA, commit

pytestmark = pytest.mark.integration


def make(client: Client, table: Parts, **properties: str) -> None:
    """Make an empty table."""
    create = {"do": "create-table", "path": list(table[1:]), "schema": SCHEMA, "properties": properties}
    client.transactions.run(table[0], [create])


def claimed(client: Client, *outputs: dict[str, object], new: tuple[Parts, ...] = (), run: str = "") -> str:
    """Start a run, report outputs that no step has made, and hold the run."""
    run = run or str(uuid.uuid4())
    client.pipelines.put("claims", {"steps": []})
    client.runs.start("claims", run, holder="host:1", steps=[{"name": "s"}], options={"new": new, "tables": new})
    client.runs.step_put(run, "s", attempt=1, state="done", outputs=list(outputs))
    client.runs.finish(run, 1, state="held")
    return run


def output(client: Client, table: Parts, **more: object) -> dict[str, object]:
    """Return an output as a runner reports it, correct except for `more`."""
    heads = heads_of(client, table)
    assert heads is not None
    report = {
        "table": list(table),
        "branch": "main",
        "base": heads.main,
        "head": heads.main,
        "uuid": heads.uuid,
        "schema_id": 0,
    }
    return report | more


@pytest.fixture
def table(client: Client, space: str) -> Parts:
    """Create another user's table: `main` has two snapshots, the branch `old` is at the first."""
    path = ("main", space, "theirs")
    make(client, path)
    first = commit(client, path, ref="main", parent=None)
    commit(client, path, ref="main", parent=first)
    commit(client, path, ref="old", parent=first)
    return path


@pytest.mark.parametrize("ref", ["main", "old"])
def test_foreign_branch_in_record_is_not_published(client: Client, table: Parts, ref: str) -> None:
    """A record that names another branch than the run's own moves no ref and removes none."""
    before = heads_of(client, table)
    assert before is not None
    run = claimed(client, output(client, table, branch=ref, head=before.refs[ref]))

    with pytest.raises(CommitConflict, match="cannot be a branch of this run"):
        publish_held(client, run)

    after = heads_of(client, table)
    assert after is not None
    assert after.refs == before.refs


def test_columns_are_not_dropped_if_branch_is_missing(client: Client, space: str) -> None:
    """If a record names a missing branch, no columns are dropped from an empty table."""
    empty_table = ("main", space, "empty")
    make(client, empty_table)
    run = str(uuid.uuid4())
    claimed(client, output(client, empty_table, branch=branch_name(run, 1), columns_to_drop=["x"]), run=run)

    with pytest.raises(CommitConflict, match="cannot be a branch of this run"):
        publish_held(client, run)

    assert client.tables.load(empty_table).metadata["current-schema-id"] == 0


def test_columns_are_not_dropped_by_a_record_without_a_branch(client: Client, table: Parts) -> None:
    """A record that names only a base and columns to drop, of any table, is not published: no branch proves that the
    run wrote the table.
    """
    run = str(uuid.uuid4())
    report = output(client, table, branch=branch_name(run, 0), head=None, columns_to_drop=["id"])
    claimed(client, report, run=run)

    with pytest.raises(CommitConflict, match="cannot be a branch of this run"):
        publish_held(client, run)

    assert client.tables.load(table).metadata["current-schema-id"] == 0


def test_held_run_without_outputs_has_nothing_to_publish(client: Client) -> None:
    """Publishing a held run without outputs reports that there is nothing to publish."""
    with pytest.raises(CommitConflict, match="names no tables"):
        publish_held(client, claimed(client))


def test_discard_drops_empty_table_only_if_run_created_it(client: Client, space: str) -> None:
    """Discarding drops an empty table only if it has the run's mark, not because the record lists it."""
    theirs, own = ("main", space, "theirs"), ("main", space, "own")
    make(client, theirs)
    run = claimed(client, new=(theirs, own))
    make(client, own, **{MADE_BY: branches_prefix(run).rstrip("_")})

    _, left = discard(client, run)

    assert left.tables == (".".join(own),)
    assert client.tables.exists(theirs)


def test_discard_drops_each_table_in_its_own_catalog(client: Client, server: LiveServer, space: str) -> None:
    """If a record names tables of two catalogs, discarding drops each in its own catalog, not tables of the same
    name.
    """
    other = f"other{space}"
    client.catalogs.create(other)
    client.namespaces.create(f"{other}.{space}")
    first, second, namesake = ("main", space, "first"), (other, space, "t"), ("main", space, "t")
    run = claimed(client, new=(first, second))
    for each in (first, second):
        make(client, each, **{MADE_BY: branches_prefix(run).rstrip("_")})
    make(client, namesake)

    _, left = discard(client, run)

    assert left.tables == (".".join(first), ".".join(second))
    assert client.tables.exists(namesake)
    assert not client.tables.exists(second)


def test_staged_versions_are_published_by_the_runs_own_user_only(
    client: Client, server: LiveServer, space: str
) -> None:
    """Another user does not publish a record that names staged versions: nothing proves that the run wrote them."""
    table, user = ("lance", space, "t"), f"u{space}"
    client.namespaces.create(f"lance.{space}")
    client.lance.declare(table, properties={"managed_versioning": "true"})
    location = client.lance.load(table).location
    run = str(uuid.uuid4())
    staged = [{"version": 1, "manifest_path": f"{location}/_versions/1.manifest-{uuid.uuid4()}"}]
    report = {"table": list(table), "branch": branch_name(run, 1), "base": None, "head": 1, "uuid": location}
    claimed(client, {**report, "schema_id": 0, "is_new": False, "staged": staged}, run=run)
    client.users.add(user)
    client.roles.create(f"r{space}")
    client.roles.allow(f"r{space}", ["run_job"], on="lake", kind="metalake")
    client.roles.grant_to_user(user, [f"r{space}"])
    client.owners.set("claims", user, kind="job_template")

    token = client.tokens.create(user=user).token
    with Client(server.uri, token=token) as theirs, pytest.raises(CommitConflict, match="only its user"):
        publish_held(theirs, run)

    assert client.runs.load(run).state == "held"
