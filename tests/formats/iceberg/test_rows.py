# SPDX-License-Identifier: Apache-2.0
"""Lists of rows with ids behave like plain lists under any sequence of operations."""

from __future__ import annotations

from collections.abc import Callable

from hypothesis import given
from hypothesis import strategies as st

from limnos.formats.iceberg.json_types import Json
from limnos.formats.iceberg.rows import SCANS_MAX, DocumentRows

IDS = st.integers(0, 6)


def row(number: object, text: str = "") -> Json:
    """Return a row."""
    return {"id": number, "text": text}


STEPS = st.one_of(
    st.tuples(st.just("find"), IDS),
    st.tuples(st.just("append"), IDS),
    st.tuples(st.just("replace"), IDS),
    st.tuples(st.just("remove"), IDS),
    st.tuples(st.just("same"), IDS),
)


def text_of(one: Json) -> str:
    """Return a text that is equal for equal rows."""
    return str(one["text"])


def plain(items: list[Json], step: str, number: int, text: str) -> object:
    """Apply an operation to a plain list."""
    mine = [one for one in items if one["id"] == number]
    if step == "find":
        return mine[-1] if mine else None
    if step == "append":
        items.append(row(number, text))
    elif step == "replace":
        items[:] = [row(number, text) if one["id"] == number else one for one in items]
    elif step == "remove":
        items[:] = [one for one in items if one["id"] != number]
    return bool(mine)


@given(st.lists(IDS, max_size=8), st.lists(STEPS, max_size=30))
def test_rows_behave_as_a_plain_list(start: list[int], steps: list[tuple[str, int]]) -> None:
    """After any finds, appends, replaces and removes, results and order equal those of a plain list."""
    given_rows = [row(number, "first") for number in start]
    expected, original_rows = list(given_rows), list(given_rows)
    rows = DocumentRows(given_rows, "id")

    for place, (step, number) in enumerate(steps):
        text = f"step {place}"
        actions: dict[str, Callable[[], object]] = {
            "find": lambda number=number: rows.find(number),  # type: ignore[misc]
            "replace": lambda number=number, text=text: rows.replace(number, row(number, text)),  # type: ignore[misc]
            "remove": lambda number=number: rows.remove([number]),  # type: ignore[misc]
        }
        if step == "append":
            rows.append(row(number, text), content=text)
            plain(expected, step, number, text)
        elif step in actions:
            assert actions[step]() == plain(expected, step, number, text)
        assert rows.to_list() == expected
        assert (len(rows), list(rows)) == (len(expected), expected)

    assert given_rows == original_rows


def test_first_row_with_equal_content_is_returned() -> None:
    """The first row with equal content is found, whether stored or appended. A removed row is not found."""
    rows = DocumentRows([row(1, "a"), row(2, "b"), row(3, "a")], "id")

    first = rows.find_same("a", text_of)
    rows.append(row(4, "c"), content="c")
    added = rows.find_same("c", text_of)
    rows.remove([4])
    removed_row = rows.find_same("c", text_of)
    rows.append(row(5, "c"), content="c")

    assert (first, added, removed_row) == (row(1, "a"), row(4, "c"), None)
    assert rows.find_same("c", text_of) == row(5, "c")


def test_next_id_exceeds_removed_ids() -> None:
    """A new id is greater than all others, also than those removed earlier in the same commit."""
    rows = DocumentRows([row(7), row(3)], "id")

    assert DocumentRows([], "id").next_id(1) == 1
    assert rows.next_id(0) == 8
    rows.append(row(8))
    rows.remove([8])
    assert rows.next_id(0) == 9


def test_row_with_list_as_id_does_not_affect_others() -> None:
    """A row whose id is a list is kept and does not affect other rows."""
    rows = DocumentRows([row([1]), row(1)], "id")

    for _ in range(SCANS_MAX + 1):
        assert rows.find(1) == row(1)
    rows.remove([1])

    assert rows.to_list() == [row([1])]
