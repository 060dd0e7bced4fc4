# SPDX-License-Identifier: Apache-2.0
"""Publishing and discarding of runs that no process executes.

Uses only the run's record and the tables, without Spark.
"""

from __future__ import annotations

from limnos.client import Client
from limnos.client.activity.runs import Run
from limnos.client.errors import ClientError, ConflictError
from limnos.model.errors import CommitConflict
from limnos.names import display
from limnos.pipeline.context import branches_prefix
from limnos.pipeline.declared_values import Parts
from limnos.pipeline.outcomes import StepBranch
from limnos.pipeline.run import record_json
from limnos.pipeline.run.commit import PublishResult, publish, report_lineages
from limnos.pipeline.run.refs import RemovedOutputs, clear_branches
from limnos.pipeline.run.result import EndReason, RunResult
from limnos.pipeline.run.retries import RetryPolicy
from limnos.pipeline.run.stop import StopSignal

_UNDER_WAY = ("running", "cancelling")


def publish_held(client: Client, run_id: str, *, away_s: float = 60) -> RunResult:
    """Publish a held run; a published run stays unchanged. Raises CommitConflict if it is in another state or its
    record has foreign branches, and the server's errors as ClientError.
    """
    patience = RetryPolicy(away_s, stop=StopSignal())
    stored_run = patience.call(lambda: client.runs.load(run_id))
    if stored_run.state == "published":
        return _run_result(
            stored_run, "published", why=EndReason.DONE, message="was published already", revision=stored_run.revision
        )
    if stored_run.state != "held":
        raise CommitConflict(
            f"run {run_id} is {stored_run.state}, and only a held one can be published; {_advice(stored_run)}"
        )
    branches = _own_branches(stored_run)
    if any(branch.staged for branch in branches) and patience.call(client.whoami) != stored_run.user:
        # No ref of the table proves that the run wrote a staged version: another user's leftover has the same form.
        raise CommitConflict(
            f"run {run_id} wrote Lance tables, whose staged versions only its user {stored_run.user} may publish:"
            " nothing was published"
        )
    result = publish(client, branches, run=run_id, attempt=stored_run.attempt, again=0, patience=patience)
    if isinstance(result, PublishResult):
        tables = ", ".join(display.render(branch.table) for branch in branches)
        words = f"published {tables}{_report_lineage(client, stored_run)}"
        return _run_result(stored_run, "published", why=EndReason.DONE, message=words, revision=result.revision)
    words = "; ".join(moved.who for moved in result)
    advice = f"nothing was published; 'limnos pipeline resume {run_id}' runs those steps again on the present tables"
    return _run_result(stored_run, "held", why=EndReason.MOVED, message=f"{words}; {advice}")


def discard(client: Client, run_id: str, *, away_s: float = 60) -> tuple[RunResult, RemovedOutputs]:
    """Discard a run: drop its branches, and the tables that it created and no other client wrote.

    Raises CommitConflict while a process executes the run, or if it was published.
    """
    patience = RetryPolicy(away_s, stop=StopSignal())
    stored_run = patience.call(lambda: client.runs.load(run_id))
    if stored_run.state in (*_UNDER_WAY, "published"):
        raise CommitConflict(f"run {run_id} is {stored_run.state}, which can't be discarded; {_advice(stored_run)}")
    if stored_run.state != "discarded":
        try:
            patience.call(
                lambda: client.runs.finish(
                    run_id, attempt=stored_run.attempt, state="discarded", message=stored_run.message
                )
            )
        except ConflictError as error:
            raise CommitConflict(f"{error.message}; nothing was dropped") from error
    left = patience.call(lambda: clear_branches(client, tables_of_run(stored_run), run=run_id))
    return _run_result(stored_run, "discarded", why=EndReason.DONE, message="its branches are dropped"), left


def _report_lineage(client: Client, seen: Run) -> str:
    """Report the lineage of published tables from the run's record. Returns a clause for the result's message.

    The run's user wrote the record. Lineage is reported only if the caller is that user: under another user's rights it
    could reveal tables that the run's user may not see.
    """
    try:
        if client.whoami() != seen.user:
            return f"; their lineage was not reported, because only {seen.user} can report the run's inputs"
    except ClientError as error:
        return f"; their lineage was not reported: {error.message}"
    outcomes = {
        step.name: record_json.outcome_of(outputs=step.outputs, inputs=step.inputs, rows=step.rows, size=step.bytes)
        for step in seen.steps
    }
    report_lineages(client, outcomes, pipeline=seen.pipeline, run=seen.id)
    return ""


def branches_of(seen: Run) -> list[StepBranch]:
    """Return the branches that the steps of a recorded run wrote, in the order of the steps."""
    return [record_json.branch_of(each) for step in seen.steps for each in step.outputs]


def _own_branches(seen: Run) -> list[StepBranch]:
    """Return the branches in the record, after checking that they are the run's own.

    The run's user wrote the record, but publishing uses the caller's rights. Only a user who may write a table can
    create a branch of the run on it. Other refs, or dropped columns without a branch, could name any table. Raises
    CommitConflict for such entries.
    """
    branches = branches_of(seen)
    if not branches:
        raise CommitConflict(f"run {seen.id} names no tables, so there is nothing to publish; {_advice(seen)}")
    for branch in branches:
        is_own = str(branch.name).startswith(branches_prefix(seen.id))
        is_made = branch.head is not None or (branch.base is None and not branch.columns_to_drop)
        if not is_own or not is_made:
            raise CommitConflict(
                f"run {seen.id} of user {seen.user} says that it wrote {branch.name} of {display.render(branch.table)},"
                f" which cannot be a branch of this run: nothing was published; 'limnos delete run {seen.id}' discards"
                " the run"
            )
    return branches


def tables_of_run(seen: Run) -> dict[Parts, bool]:
    """Return all tables that may have branches of the run, each with whether it was missing when the run began."""
    new = set(_tables(seen, "new"))
    results = {branch.table: branch.table in new or branch.is_new for branch in branches_of(seen)}
    return {table: table in new for table in _tables(seen, "tables")} | results


def _tables(seen: Run, key: str) -> list[Parts]:
    entries = seen.options.get(key)
    return [tuple(table) for table in entries] if isinstance(entries, list) else []


def _advice(seen: Run) -> str:
    if seen.state in _UNDER_WAY:
        return f"'limnos pipeline cancel {seen.id}' stops it"
    if seen.state == "published":
        return "its tables' snapshots are kept, and each table can be rolled back"
    return f"'limnos pipeline resume {seen.id}' continues it, 'limnos pipeline run' starts a new one"


def _run_result(seen: Run, state: str, *, why: EndReason, message: str, revision: int | None = None) -> RunResult:
    return RunResult(
        run=seen.id,
        pipeline=seen.pipeline,
        attempt=seen.attempt,
        state=state,
        why=why,
        message=message,
        revision=revision,
    )
