# SPDX-License-Identifier: Apache-2.0
"""Loads of many objects in a task: what one request returns, what is left for single loads, and a lost server."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from limnos.client.errors import ClientError, DeniedError, NotFoundError, UnavailableError
from limnos.spark.batch_loads import load_batch


def lengths(paths: Sequence[str]) -> tuple[int | None, ...]:
    """Return the length of each path; None for those of one letter."""
    return tuple([len(path) if len(path) > 1 else None for path in paths])


def test_batch_has_the_objects_that_the_server_returned() -> None:
    """An object that the server did not return is missing in the result; no request is sent for no objects."""
    assert load_batch(lengths, ["ab", "c", "def"]) == {"ab": 2, "def": 3}
    assert load_batch(lambda _: pytest.fail("sent"), []) == {}


@pytest.mark.parametrize(
    "error",
    [
        NotFoundError("no such route", status=404),
        DeniedError("no right", status=403),
        UnavailableError("busy", status=503),
    ],
)
def test_refused_batch_leaves_all_to_single_loads(error: ClientError) -> None:
    """A server that refuses the request, or has none, leaves every object to be loaded by itself."""

    def refuse(_: Sequence[str]) -> tuple[int | None, ...]:
        raise error

    assert load_batch(refuse, ["ab"]) == {}


def test_lost_server_ends_the_task() -> None:
    """A server that does not answer is no reason to ask for each object."""

    def lose(_: Sequence[str]) -> tuple[int | None, ...]:
        raise UnavailableError("no answer")

    with pytest.raises(UnavailableError):
        load_batch(lose, ["ab"])
