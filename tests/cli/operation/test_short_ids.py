# SPDX-License-Identifier: Apache-2.0
"""The beginning of an id is taken where it is unique."""

from __future__ import annotations

import pytest

from limnos.cli.failures import UsageError
from limnos.cli.operation.short_ids import whole_id

IDS = (
    "0192f0c1-7b1e-7cc3-98c4-dc0c0c07398f",
    "0192f0c1-9999-7cc3-98c4-dc0c0c07398f",
    "0aaaf0c1-7b1e-7cc3-98c4-dc0c0c07398f",
)


def test_unique_beginning_is_the_whole_id() -> None:
    """A unique beginning gives the id; an unknown one is left for the server to refuse."""
    assert whole_id("0aaa", kind="run", ids=lambda: IDS) == IDS[2]
    assert whole_id("ffff", kind="run", ids=lambda: IDS) == "ffff"


def test_ambiguous_beginning_is_a_usage_error() -> None:
    """A beginning of several ids is refused with these ids."""
    with pytest.raises(UsageError, match="2 runs begin with '0192f0c1'"):
        whole_id("0192f0c1", kind="run", ids=lambda: IDS)


def test_whole_id_causes_no_request() -> None:
    """A whole id causes no request."""

    def refuse() -> tuple[str, ...]:
        raise AssertionError

    assert whole_id(IDS[0], kind="run", ids=refuse) == IDS[0]
