# SPDX-License-Identifier: Apache-2.0
"""Names in the place of paths: the answer has the objects of that name, which the server's search finds."""

from __future__ import annotations

import pytest

from tests.cli.conftest import Run
from tests.client.fake import FakeServer

SEARCH = "/api/limnos/v1/metalakes/lake/search?q=trips&limit=50"
OTHER = {"id": 3, "kind": "table", "path": ["main", "raw", "round_trips"], "tier": 2}


def hit(number: int, kind: str, *path: str) -> dict[str, object]:
    """Return a hit of the server's search."""
    return {"id": number, "kind": kind, "path": [*path], "tier": 1}


@pytest.mark.parametrize(
    "line, hint",
    [
        ("show table trips", "'limnos show table main.raw.trips': a path begins with its catalog"),
        ("head trips --rows 3", "'limnos head main.raw.trips --rows 3': a path begins with its catalog"),
        ("show view trips", "of this name there is the table 'limnos show main.raw.trips': a path"),
        ("delete table trips", "of this name there is the table 'limnos show main.raw.trips': a path"),
        ("rename table trips rides", "of this name there is the table 'limnos show main.raw.trips': a path"),
    ],
)
def test_name_alone_is_answered_by_the_path(fake: FakeServer, run: Run, line: str, hint: str) -> None:
    """A name without its path is refused with the path of the object of that name. No answer proposes a deletion or a
    rename of it, and objects of other names and kinds are no proposals.
    """
    for _ in range(3):
        fake.on("GET", SEARCH, {"hits": [hit(1, "table", "main", "raw", "trips"), OTHER]})
        fake.on("GET", "/api/limnos/v1/metalakes/lake/access/objects?path=trips", {"objects": [], "complete": True})

    done = run(*line.split(), "--uri", fake.uri, "--user", "ana", "--output", "table")

    command, _, flags = done.err.partition("  next: ")[2].partition(f" --uri {fake.uri} --user ana")
    assert done.code == 2
    assert f"{command}{flags}".replace(" --output table", "").startswith(hint), done.err


def test_several_objects_of_a_name_are_all_proposed(fake: FakeServer, run: Run) -> None:
    """If several objects have the name, the answer has the command for each."""
    hits = [hit(1, "table", "main", "raw", "trips"), hit(2, "table", "main", "old", "trips")]
    fake.on("GET", SEARCH, {"hits": hits})

    done = run("table", "check", "trips", "--uri", fake.uri, "--user", "ana", "--output", "table")

    assert "check main.raw.trips" in done.err
    assert "check main.old.trips" in done.err


def test_list_of_holders_is_answered_by_a_command_for_each(fake: FakeServer, run: Run) -> None:
    """A grant to `ana,ben`, which is no user, is answered by two grants; a user of such a name would have got it."""
    missing = {"code": 1003, "message": "User ana,ben does not exist in metalake lake: add it first"}
    fake.on("PUT", "/api/metalakes/lake/permissions/users/ana%2Cben/grant", missing, status=404)

    done = run("grant", "role", "reader", "--to", "ana,ben", "--uri", fake.uri, "--user", "x", "--output", "table")

    assert done.code == 3
    assert "reader --to ana --uri" in done.err
    assert "reader --to ben --uri" in done.err
