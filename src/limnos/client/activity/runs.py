# SPDX-License-Identifier: Apache-2.0
"""Calls on pipelines and their runs (own API), for runners and for observers.

A runner's reports are idempotent for the same attempt and step, so they are retried if a response was lost.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from limnos.client.flow import Flow, Resource, S, call, request, verb
from limnos.client.values import Json

LIST_MAX = 1000


class RunStep(msgspec.Struct, frozen=True, kw_only=True):
    """A step of a run, as its runner last reported it. Times are ISO 8601 strings in UTC."""

    name: str
    state: str = "waiting"
    attempt: int = 0
    reads: tuple[str, ...] = ()
    output: str = ""
    rows: int | None = None
    bytes: int | None = None
    started_at: str | None = None
    ended_at: str | None = None
    message: str | None = None
    progress: Json | None = None
    outputs: tuple[Json, ...] = ()
    inputs: tuple[Json, ...] = ()
    phases_s: Mapping[str, float] = {}


class RunFindingInfo(msgspec.Struct, frozen=True, kw_only=True):
    """The finding of an expectation. `run` and its state are set in lists of findings of several runs."""

    step: str
    rule: str
    kind: str
    action: str
    broken: int
    checked: int
    tolerated: float = 0.0
    held: bool = True
    sample: str | None = None
    message: str = ""
    at: str | None = None
    run: str | None = None
    run_state: str | None = None


def sample_lines(sample: object, *, rows_max: int = 3) -> list[str]:
    """Return the first rows of a finding's sample, each as a line `id = 3, price = -1`. Empty for a sample of another
    form, as that of keys, which the finding's message has.
    """
    try:
        rows = msgspec.json.decode(sample, type=list[dict[str, object]]) if isinstance(sample, str) else []
    except msgspec.MsgspecError:
        return []
    lines = [", ".join(f"{name} = {'NULL' if value is None else value}" for name, value in row.items()) for row in rows]
    return lines[:rows_max]


class EarlierAttempt(msgspec.Struct, frozen=True, kw_only=True):
    """An attempt of a run before it was resumed: its process, how it ended and why. Times are ISO 8601 strings in
    UTC.
    """

    attempt: int
    state: str
    holder: str
    started_at: str | None = None
    ended_at: str | None = None
    message: str | None = None
    phases_s: Mapping[str, float] = {}


class Run(msgspec.Struct, frozen=True, kw_only=True):
    """A run of a pipeline. `attempt` is the number of the newest attempt. `earlier_attempts`, `steps` and `findings`
    are set only if a single run was requested.
    """

    id: str
    pipeline: str
    state: str
    attempt: int
    user: str
    holder: str
    version: int = 0
    lease_s: float = 30.0
    beat_at: str | None = None
    started_at: str | None = None
    resumed_at: str | None = None
    ended_at: str | None = None
    message: str | None = None
    revision: int | None = None
    phases_s: Mapping[str, float] = {}
    parameters: Json = {}
    options: Json = {}
    earlier_attempts: tuple[EarlierAttempt, ...] = ()
    steps: tuple[RunStep, ...] = ()
    findings: tuple[RunFindingInfo, ...] = ()


class Pipeline(msgspec.Struct, frozen=True, kw_only=True):
    """A pipeline with the version and digest of its declaration; the declaration is set only if a single pipeline was
    requested.
    """

    name: str
    version: int
    digest: str
    comment: str | None = None
    declaration: Json | None = None
    created_by: str | None = None
    created_at: str | None = None
    modified_by: str | None = None
    modified_at: str | None = None


class RunStanding(msgspec.Struct, frozen=True):
    """The response to a heartbeat. If `state` is not `running`, the process must stop."""

    state: str
    attempt: int


class _RunListResponse(msgspec.Struct):
    runs: tuple[Run, ...]
    next: str | None = None


class _FindingListResponse(msgspec.Struct):
    findings: tuple[RunFindingInfo, ...]
    next: str | None = None


class Pipelines(Resource[S]):
    """Calls that declare, list, load and drop the pipelines of the client's metalake."""

    def _path(self, *rest: str) -> str:
        return self.own_url("pipelines", *rest)

    @verb
    def put(self, name: str, declaration: Mapping[str, object], *, comment: str | None = None) -> Flow[Pipeline]:
        """Create a pipeline, or its next version if the declaration has changed."""
        body = {"declaration": dict(declaration), "comment": comment}
        return call("PUT", self._path(name), answer=Pipeline, body=body)

    @verb
    def list(self) -> Flow[tuple[Pipeline, ...]]:
        """List the pipelines that the caller may use."""
        return call("GET", self._path(), answer=tuple[Pipeline, ...], field="pipelines")

    @verb
    def load(self, name: str, *, version: int | None = None) -> Flow[Pipeline]:
        """Load a pipeline with its newest declaration, or with the declaration of a version."""
        query = {"version": None if version is None else str(version)}
        return call("GET", self._path(name), answer=Pipeline, query=query)

    @verb
    def drop(self, name: str) -> Flow[None]:
        """Drop a pipeline with the records of its runs; its tables are not dropped."""
        yield request("DELETE", self._path(name))

    @verb
    def findings(
        self, name: str, *, rule: str | None = None, step: str | None = None, limit: int = 100
    ) -> Flow[tuple[RunFindingInfo, ...]]:
        """List findings of the runs' expectations, newest first, at most `limit`."""
        infos: tuple[RunFindingInfo, ...] = ()
        page: str | None = None
        while len(infos) < limit:
            query = {"rule": rule, "step": step, "page": page, "limit": str(min(limit - len(infos), LIST_MAX))}
            answer = yield from call("GET", self._path(name, "findings"), answer=_FindingListResponse, query=query)
            infos, page = infos + answer.findings, answer.next
            if page is None:
                break
        return infos


class Runs(Resource[S]):
    """Calls that start, report, list and cancel the runs of the metalake's pipelines."""

    def _path(self, *rest: str) -> str:
        return self.own_url("runs", *rest)

    @verb
    def start(
        self,
        pipeline: str,
        run_id: str,
        *,
        holder: str,
        steps: Sequence[Mapping[str, object]] = (),
        lease_s: float = 30.0,
        parameters: Mapping[str, object] | None = None,
        options: Mapping[str, object] | None = None,
        version: int | None = None,
    ) -> Flow[Run]:
        """Start a run under an id chosen by the caller, a new UUID. A repeated call with the same id returns the same
        run.
        """
        body = {
            "id": run_id,
            "holder": holder,
            "lease_s": lease_s,
            "parameters": dict(parameters or {}),
            "options": dict(options or {}),
            "steps": [dict(step) for step in steps],
            "version": version,
        }
        return call("POST", self.own_url("pipelines", pipeline, "runs"), answer=Run, body=body, repeatable=True)

    @verb
    def list(self, *, pipeline: str | None = None, state: str | None = None, limit: int = 100) -> Flow[tuple[Run, ...]]:
        """List the runs that the caller may see, newest first, at most `limit`; optionally of a pipeline or in a
        state.
        """
        runs: tuple[Run, ...] = ()
        page: str | None = None
        while len(runs) < limit:
            size = str(min(limit - len(runs), LIST_MAX))
            query = {"pipeline": pipeline, "state": state, "page": page, "limit": size}
            answer = yield from call("GET", self._path(), answer=_RunListResponse, query=query)
            runs, page = runs + answer.runs, answer.next
            if page is None:
                break
        return runs

    @verb
    def load(self, run_id: str) -> Flow[Run]:
        """Load a run with its steps and findings."""
        return call("GET", self._path(run_id), answer=Run)

    @verb
    def beat(
        self,
        run_id: str,
        attempt: int,
        *,
        progress: Mapping[str, Mapping[str, object]] | None = None,
        phases_s: Mapping[str, float] | None = None,
    ) -> Flow[RunStanding]:
        """Send a heartbeat with the progress of running steps. The response has the run's state.

        `phases_s`, seconds by phase of the attempt, is also accepted after the run's end.
        """
        entries = None if progress is None else {name: dict(each) for name, each in progress.items()}
        body = {"attempt": attempt, "progress": entries, "phases_s": None if phases_s is None else dict(phases_s)}
        return call("POST", self._path(run_id, "beat"), answer=RunStanding, body=body, repeatable=True)

    @verb
    def resume(self, run_id: str, *, holder: str, lease_s: float = 30.0, after: int | None = None) -> Flow[Run]:
        """Begin the next attempt of a run. With `after`, the number of the previous attempt, the call is idempotent."""
        body = {"holder": holder, "lease_s": lease_s, "after": after}
        return call("POST", self._path(run_id, "resume"), answer=Run, body=body, repeatable=after is not None)

    @verb
    def step_put(
        self,
        run_id: str,
        step: str,
        *,
        attempt: int,
        state: str,
        rows: int | None = None,
        bytes: int | None = None,
        started_at: str | int | None = None,
        ended_at: str | int | None = None,
        message: str | None = None,
        outputs: Sequence[Mapping[str, object]] | None = None,
        inputs: Sequence[Mapping[str, object]] | None = None,
        findings: Sequence[Mapping[str, object]] | None = None,
        phases_s: Mapping[str, float] | None = None,
    ) -> Flow[RunStep]:
        """Report the state of a step, its counts, outputs and findings. Omitted fields are not changed. Times are ISO
        8601 with a zone, or milliseconds since 1970.
        """
        body = {
            "attempt": attempt,
            "state": state,
            "rows": rows,
            "bytes": bytes,
            "started_at": started_at,
            "ended_at": ended_at,
            "message": message,
            "outputs": outputs,
            "inputs": inputs,
            "findings": findings,
            "phases_s": phases_s,
        }
        return call("PUT", self._path(run_id, "steps", step), answer=RunStep, body=body)

    @verb
    def finish(self, run_id: str, attempt: int, *, state: str, message: str | None = None) -> Flow[Run]:
        """Record the run's end: `failed`, `cancelled`, `held` or `discarded`."""
        body = {"attempt": attempt, "state": state, "message": message}
        return call("POST", self._path(run_id, "finish"), answer=Run, body=body, repeatable=True)

    @verb
    def cancel(self, run_id: str) -> Flow[Run]:
        """Request the cancellation of a run: the response to its next heartbeat stops its process."""
        return call("POST", self._path(run_id, "cancel"), answer=Run, repeatable=True)
