# SPDX-License-Identifier: Apache-2.0
"""Verification of objects in a task: objects that cannot be checked, and a server that does not answer."""

from __future__ import annotations

import socket

import pyarrow as pa
import pytest

from limnos.client.errors import UnavailableError
from limnos.spark.lance.server_access import ServerAccess
from limnos.spark.verification.findings import SCHEMA
from limnos.spark.verification.objects import VerificationTask


def batch(*, restricted: bool) -> pa.RecordBatch:
    """Return a batch with one object, as the system table `tables` has it."""
    row = {
        "id": 7,
        "path": "main.a.t",
        "kind": "table",
        "format": "iceberg",
        "restricted": restricted,
        "metadata_location": None,
    }
    return pa.RecordBatch.from_pylist([row])


@pytest.fixture
def task() -> VerificationTask:
    """A task whose server does not answer."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    return VerificationTask(home=ServerAccess(uri=f"http://127.0.0.1:{port}", metalake="lake", token="secret"))


def test_restricted_object_is_not_checked(task: VerificationTask) -> None:
    """A restricted reader gets no files, so the object has a note and no number of files."""
    (rows,) = task([batch(restricted=True)])

    assert rows.schema == SCHEMA
    assert [(each["row"], each["finding"], each["severity"], each["files"]) for each in rows.to_pylist()] == [
        ("finding", "not checked", "note", None),
        ("object", None, None, None),
    ]


def test_unreachable_server_ends_the_task(task: VerificationTask) -> None:
    """Without a server every object would have the same finding, so the task fails."""
    with pytest.raises(UnavailableError):
        list(task([batch(restricted=False)]))


def test_task_hides_its_credential(task: VerificationTask) -> None:
    """Messages about a task do not contain the token."""
    assert "secret" not in repr(task)
