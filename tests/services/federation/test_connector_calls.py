# SPDX-License-Identifier: Apache-2.0
"""Calls of connectors: exceptions of every class become errors of the source, which name the catalog."""

from __future__ import annotations

import pytest
from structlog.testing import capture_logs

from limnos.model.errors import NotFound, SourceFailed, StateUnknown
from limnos.services.federation.connector_calls import ConnectorCall

SECRET = "pa55w0rd"


class PanicException(BaseException):
    """An exception of the kind that libraries in Rust raise."""


RAISED = {each.__name__: each for each in (SystemExit, KeyboardInterrupt, GeneratorExit, PanicException, StopIteration)}


@pytest.mark.parametrize("kind", RAISED)
def test_an_exception_of_a_connector_becomes_an_error_of_its_source(kind: str) -> None:
    """Also a BaseException is converted; the message names the catalog and no text of the exception."""

    def fail() -> None:
        raise RAISED[kind](SECRET)

    with pytest.raises(SourceFailed, match=f"^Catalog d: its connector failed with {kind}") as read, capture_logs():
        ConnectorCall("x-raising", "d").run(fail)
    with pytest.raises(StateUnknown, match="may have made the change"), capture_logs():
        ConnectorCall("x-raising", "d").run(fail, changes=True)

    assert SECRET not in read.value.message


def test_an_error_of_the_taxonomy_keeps_its_class_and_gets_the_catalog() -> None:
    """A failed source names its catalog once; a missing object stays as it is."""

    def fail() -> None:
        raise SourceFailed("The directory cannot be listed", path="/x")

    def miss() -> None:
        raise NotFound("Table t does not exist", kind="table")

    with pytest.raises(SourceFailed) as failed:
        ConnectorCall("x-raising", "d").run(lambda: ConnectorCall("x-raising", "d").run(fail))
    with pytest.raises(NotFound, match="Table t does not exist"):
        ConnectorCall("x-raising", "d").run(miss)

    assert failed.value.message == "Catalog d: The directory cannot be listed"
    assert failed.value.context == {"path": "/x"}
