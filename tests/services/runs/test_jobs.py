# SPDX-License-Identifier: Apache-2.0
"""Lists of jobs: access to each job is decided after its row was read."""

from __future__ import annotations

from typing import Any

import pytest

from limnos.model.jobs import TemplateJob
from limnos.services.request.context import Context
from tests.http.conftest import empty_database, fresh, node  # noqa: F401 - fixtures
from tests.http.driver import API, PROGRAM, DriverNode, grant, let_jobs

pytestmark = pytest.mark.room("jobs")

JOBS = f"{API}/lake/jobs/runs"


def test_jobs_are_not_listed_for_the_former_owner_of_their_template(
    node: DriverNode,  # noqa: F811 - a fixture
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A user who loses the ownership of a template while a list is read does not get the jobs of other users."""
    let_jobs(node)
    node.done("POST", f"{API}/lake/jobs/templates", {"jobTemplate": {**PROGRAM, "name": "hello"}})
    for user in ("ana", "bob"):
        grant(node, user, "run_job use_job_template", kind="METALAKE", on="lake")
    owners = f"{API}/lake/owners/JOB_TEMPLATE/hello"
    node.done("PUT", owners, {"name": "ana", "type": "USER"})
    job_id = str(node.done("POST", JOBS, {"jobTemplateName": "hello"}, user="bob")["job"]["jobId"])
    look_up, changes = Context.look_up, []

    async def change_owner_after(ctx: Context, *args: Any, **more: Any) -> Any:  # noqa: ANN401 - passed on
        result = await look_up(ctx, *args, **more)
        if not changes and isinstance(result, list) and any(isinstance(each, TemplateJob) for each in result):
            changes.append((await node.answer("PUT", owners, {"name": "bob", "type": "USER"})).status)
        return result

    def list_ids(user: str) -> list[str]:
        return [str(each["jobId"]) for each in node.done("GET", JOBS, user=user)["jobs"]]

    before = list_ids("ana")
    monkeypatch.setattr(Context, "look_up", change_owner_after)

    assert before == [job_id]
    assert list_ids("ana") == []
    assert changes == [200]
    assert list_ids("bob") == [job_id]
