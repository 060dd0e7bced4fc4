# SPDX-License-Identifier: Apache-2.0
"""The files that the settings allow for jobs."""

from __future__ import annotations

import pytest

from limnos.model.errors import BadRequest
from limnos.services.runs.job_rules import JobRules, path_of, require_allowed

RULES = JobRules(enabled=True, allowed=("/srv/jobs", "/srv/slash/", "/srv/one.sh"))


@pytest.mark.parametrize("path", ["/srv/jobs", "/srv/jobs/a.sh", "/srv/jobs/a/b.sh", "/srv/slash/a", "/srv/one.sh"])
def test_files_below_allowed_directories_are_allowed(path: str) -> None:
    """A directory of the settings allows itself and everything below it; a file allows itself."""
    require_allowed(RULES, path, label=path)


@pytest.mark.parametrize(
    "path", ["/srv/jobs-of-others/a.sh", "/srv/jobs2", "/srv/slash2/a", "/srv/one.sh.bak", "/srv", "/"]
)
def test_files_beside_allowed_directories_are_refused(path: str) -> None:
    """A file whose path only begins like that of an allowed directory is refused."""
    with pytest.raises(BadRequest, match=r"jobs\.allowed"):
        require_allowed(RULES, path, label=path)


@pytest.mark.parametrize("text", ["/srv/jobs/../jobs-of-others/a.sh", "file:///srv/jobs/%2e%2e/jobs-of-others/a.sh"])
def test_parent_directories_are_resolved_before_the_decision(text: str) -> None:
    """A path that leaves an allowed directory by `..` is refused, plain and encoded."""
    with pytest.raises(BadRequest):
        require_allowed(RULES, path_of(text), label=text)
