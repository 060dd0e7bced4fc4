# SPDX-License-Identifier: Apache-2.0
"""Numbers in paths and queries: every route refuses text that is not a number, and numbers beyond the limit."""

from __future__ import annotations

import pytest

from limnos.http.admin.numbers import ID_MAX, number_of
from tests.http.driver import OWN, DriverNode
from tests.http.iceberg.wire import make_space, make_table

LAKE = f"{OWN}/metalakes/lake"
MAIN = f"{LAKE}/catalogs/main"
LARGE = "0" * 20 + "9" * 30
HUGE = "0" * 20 + "9" * 5000
"""More digits than Python converts to a number."""


@pytest.mark.parametrize(
    "text, most, number",
    [
        ("0", 5, 0),
        ("5", 5, 5),
        ("6", 5, None),
        ("007", 9, 7),
        (str(ID_MAX), ID_MAX, ID_MAX),
        (str(ID_MAX + 1), ID_MAX, None),
        ("", 5, None),
        ("-1", 5, None),
        ("+1", 5, None),
        (" 1", 5, None),
        ("1_0", 50, None),
        ("²", 5, None),
        ("٣", 5, None),
        (LARGE, ID_MAX, None),
        (HUGE, ID_MAX, None),
    ],
)
def test_number_of_accepts_ascii_digits_within_the_limit(text: str, most: int, number: int | None) -> None:
    """Text of ASCII decimal digits is read as a number if it is within the limit; other text is refused."""
    assert number_of(text, most) == number


@pytest.mark.parametrize("number", [LARGE, HUGE], ids=["large", "huge"])
@pytest.mark.parametrize(
    "method, address, status",
    [
        ("DELETE", f"{LAKE}/webhooks/%s", 404),
        ("POST", f"{LAKE}/webhooks/%s/retry", 404),
        ("GET", f"{LAKE}/changes?limit=%s", 400),
        ("GET", f"{LAKE}/changes?after=now&wait_s=%s", 400),
        ("GET", f"{OWN}/tasks?after=%s", 400),
        ("GET", f"{OWN}/tasks/%s", 404),
        ("DELETE", f"{OWN}/tokens/%s", 404),
        ("GET", f"{MAIN}/reports?table=a.t&limit=%s", 400),
        ("GET", f"{MAIN}/reports?table=a.t&before=%s", 400),
        ("GET", f"{MAIN}/trash?limit=%s", 400),
        ("GET", f"{MAIN}/trash?before=%s-1", 400),
        ("GET", f"{MAIN}/trash?before=1-%s", 400),
        ("DELETE", f"{MAIN}/trash/%s", 404),
        ("POST", f"{MAIN}/trash/%s/undrop", 404),
    ],
)
def test_zero_padded_number_out_of_range_is_refused(
    node: DriverNode, method: str, address: str, status: int, number: str
) -> None:
    """A number with leading zeros that exceeds the store's range is refused with 400 in a query and 404 in a path."""
    make_space(node, "a")
    make_table(node, "a", "t")

    assert node.ask(method, address % number).status == status
