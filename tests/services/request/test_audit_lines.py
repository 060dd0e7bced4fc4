# SPDX-License-Identifier: Apache-2.0
"""Audit records of reads and refusals beside a store that fails: the writer goes on, whatever the error was."""

from __future__ import annotations

import pytest

from limnos.model.audit import AuditRecord
from limnos.model.kinds import ROOT_ID
from limnos.services.request.audit_lines import LINES
from tests.backends import StoreLab
from tests.inprocess import Node


def record(operation: str) -> AuditRecord:
    """Return a record of a refused request."""
    return AuditRecord(
        id=0, metalake_id=ROOT_ID, at=1, user="ana", user_id=None, outcome="refused", operation=operation
    )


def test_records_are_written_after_any_error_of_the_store(file_lab: StoreLab, monkeypatch: pytest.MonkeyPatch) -> None:
    """A batch whose outcome is unknown is counted as lost and does not stay in the queue; later records are written."""
    node = Node(file_lab.store)
    audit = node.services.audit
    lost, stored = LINES.get(("lost",), 0), LINES.get(("kept",), 0)

    async def fail(*_: object, **__: object) -> None:
        raise OSError(5, "Input/output error")

    async def story() -> None:
        with monkeypatch.context() as patch:
            patch.setattr(audit.store, "submit", fail)
            audit._waiting.append(record("a"))
            await audit.flush()
        audit._waiting.append(record("b"))
        await audit.flush()

    file_lab.run(story())

    assert (LINES["lost",] - lost, LINES["kept",] - stored) == (1, 1)
    assert file_lab.database.sql("SELECT operation FROM audit") == [("b",)]
