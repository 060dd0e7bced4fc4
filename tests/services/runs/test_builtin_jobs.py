# SPDX-License-Identifier: Apache-2.0
"""Built-in job templates of a node without maintenance: there are none, and their names stay reserved."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.http.driver import API, OWN, DriverNode, node_at
from tests.installed import has_room

pytestmark = pytest.mark.room("jobs")

JOBS = f"{API}/lake/jobs"
NAME = "builtin-iceberg-expire-snapshots"


@pytest.fixture
def bare(tmp_path: Path) -> Iterator[DriverNode]:
    """A node without the room of maintenance."""
    with node_at(tmp_path, off=("maintenance",) if has_room("maintenance") else ()) as node:
        yield node


def test_no_builtin_template_is_listed(bare: DriverNode) -> None:
    """The list has no built-in template, and no job of one; other templates are registered and listed."""
    for query in ("", "?details=true"):
        body = bare.get(f"{JOBS}/templates{query}").json()
        assert (body.get("names"), body.get("jobTemplates")) == (([], None) if query == "" else (None, []))
    assert bare.get(f"{JOBS}/runs").json()["jobs"] == []


def test_builtin_jobs_are_refused_with_the_reason(bare: DriverNode) -> None:
    """Requests for a built-in template or one of its jobs are 404, and the reason is the missing maintenance."""
    run = {"jobTemplateName": NAME, "jobConf": {"catalog_name": "main", "table_identifier": "a.t"}}
    for answer in (
        bare.get(f"{JOBS}/templates/{NAME}"),
        bare.post(f"{JOBS}/runs", run),
        bare.get(f"{JOBS}/runs?jobTemplateName={NAME}"),
        bare.get(f"{JOBS}/runs/maintenance-1"),
        bare.post(f"{JOBS}/runs/maintenance-1"),
        bare.get(f"{OWN}/metalakes/lake/jobs/maintenance-1"),
    ):
        assert answer.status == 404, answer.body
        assert b"this server does not serve maintenance of tables" in answer.body


def test_names_of_builtin_templates_stay_reserved(bare: DriverNode) -> None:
    """Nobody registers a template with the name of a built-in one while the node has none."""
    template = {"name": NAME, "jobType": "shell", "executable": "/bin/true"}

    assert bare.post(f"{JOBS}/templates", {"jobTemplate": template}).status == 400
