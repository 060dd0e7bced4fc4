# SPDX-License-Identifier: Apache-2.0
"""The trash on the command line: what a restored namespace leaves there, and what is said before a final deletion."""

from __future__ import annotations

import pytest

from limnos.cli.catalog import removal
from tests.cli.conftest import Run
from tests.client.fake import FakeServer

TRASH = "/api/limnos/v1/metalakes/lake/catalogs/main/trash"


def entry(number: int, kind: str, *path: str) -> dict[str, object]:
    """Return an entry of the trash, as the server lists it."""
    times = {"dropped_at": "2026-11-01T00:00:00Z", "expires_at": "2026-11-08T00:00:00Z"}
    return {"id": number, "kind": kind, "path": list(path), "dropped_by": "ana", **times}


def test_undrop_names_objects_that_stay_in_trash(fake: FakeServer, limnos: Run) -> None:
    """A namespace that is restored without its objects leaves them in the trash: the answer counts them, and has the
    commands that list and restore them.
    """
    dropped = [entry(7, "namespace", "main", "raw"), entry(8, "table", "main", "raw", "t")]
    fake.on("GET", f"{TRASH}?below=raw", {"trash": dropped})
    fake.on("POST", f"{TRASH}/7/undrop", {"kind": "namespace", "path": ["main", "raw"], "id": 7})

    done = limnos("undrop", "main.raw", "--output", "table")

    assert done.code == 0, done.err
    assert "still in the trash: 1 of its objects, which 'limnos list trash main.raw' lists" in done.out


def test_question_states_that_a_deletion_is_final(monkeypatch: pytest.MonkeyPatch, limnos: Run) -> None:
    """The question before a catalog is deleted says that it cannot be restored."""
    questions: list[str] = []

    def ask(question: str, *, yes: bool) -> None:
        questions.append(f"{question} {yes}")

    monkeypatch.setattr(removal, "confirm", ask)

    limnos("delete", "lab", "--kind", "catalog")

    assert questions == ["Delete catalog lab? A catalog cannot be restored. False"]
