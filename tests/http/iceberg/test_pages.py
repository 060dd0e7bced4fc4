# SPDX-License-Identifier: Apache-2.0
"""Lists of namespaces and tables: pages, and the entries that callers see who may not load all objects."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import quote

import pytest

from limnos.http.iceberg import pages
from limnos.http.iceberg.pages import join_page
from limnos.services.request.name_pages import NamePage
from tests.http.driver import API, DriverNode, grant
from tests.http.iceberg.wire import SPACES, error_of, make_space, make_table, space_path, table_path

NAMES = ["B", "a", "b", "c c", "c/c", "d", "é", "数"]
"""Names in the order of their code points."""


def walk(node: DriverNode, path: str, size: int, *, user: str = "admin") -> Iterator[list[str]]:
    """Return every page of a list: the last part of each name."""
    token = ""
    while True:
        answer = node.get(f"{path}{'&' if '?' in path else '?'}pageToken={quote(token)}&pageSize={size}", user=user)
        assert answer.status == 200
        body = answer.json()
        token = body.pop("next-page-token")
        (items,) = body.values()
        yield [item["name"] if isinstance(item, dict) else item[-1] for item in items]
        if token is None:
            return


@pytest.fixture
def tables(lake: DriverNode) -> DriverNode:
    """A node with eight tables in namespace `n`."""
    for name in reversed(NAMES):
        make_table(lake, "n", name)
    return lake


@pytest.mark.parametrize("size", [1, 2, 3, 7, 8, 9, 100])
def test_pages_contain_every_table_once(tables: DriverNode, size: int) -> None:
    """For every page size, the pages contain every table once and in order, and the last page has no token."""
    pages = list(walk(tables, f"{space_path('n')}/tables", size))

    assert [name for page in pages for name in page] == NAMES
    assert {len(page) for page in pages[:-1]} <= {size}
    assert len(pages) == -(-len(NAMES) // size)


@pytest.mark.parametrize("size", [1, 3, 8])
def test_pages_contain_every_namespace_once(lake: DriverNode, size: int) -> None:
    """For every page size, the pages contain every namespace once, at the top level and below a parent."""
    for name in NAMES:
        make_space(lake, name)
        make_space(lake, "parent", name)

    pages = list(walk(lake, f"{SPACES}?parent=parent", size))
    top = list(walk(lake, SPACES, size))

    assert [name for page in pages for name in page] == NAMES
    assert [name for page in top for name in page] == sorted([*NAMES, "parent"])


def test_list_without_token_is_complete(tables: DriverNode) -> None:
    """Without a token the list is complete; an empty token requests pages, here a single one."""
    listed = [
        tables.get(f"{space_path('n')}/tables{query}").json() for query in ("", "?pageToken=", "?pageToken=&pageSize=")
    ]

    assert listed[0] == listed[1] == listed[2]
    assert len(listed[0]["identifiers"]) == len(NAMES)
    assert listed[0]["next-page-token"] is None


def test_pages_have_only_loadable_tables(tables: DriverNode) -> None:
    """A caller who may load some of the tables gets full pages of these. A new grant applies to the next page."""
    grant(tables, "ana", "use_catalog use_schema", kind="CATALOG", on="main")
    for name in ("B", "b", "d"):
        grant(tables, "ana", "select_table", kind="TABLE", on=f"main.n.{name}")
    path = f"{space_path('n')}/tables"

    pages = list(walk(tables, path, 2, user="ana"))
    first = tables.get(f"{path}?pageToken=&pageSize=2", user="ana").json()
    grant(tables, "ana", "modify_table", kind="TABLE", on="main.n.a")
    tables.delete(table_path("n", "d"))
    grant(tables, "ana", "select_table", kind="TABLE", on="main.n.é")
    rest = tables.get(f"{path}?pageToken={first['next-page-token']}&pageSize=2", user="ana").json()

    assert pages == [["B", "b"], ["d"]]
    assert [item["name"] for item in rest["identifiers"]] == ["é"]
    assert list(walk(tables, path, 10, user="ana")) == [["B", "a", "b", "é"]]


def test_denied_table_is_omitted_from_pages(tables: DriverNode) -> None:
    """A caller with a denial on one table gets full pages of all other tables."""
    grant(tables, "ana", "use_catalog use_schema select_table", kind="CATALOG", on="main")
    grant(tables, "ana", "select_table", kind="TABLE", on="main.n.b", condition="deny")

    pages = list(walk(tables, f"{space_path('n')}/tables", 7, user="ana"))

    assert pages == [[name for name in NAMES if name != "b"]]


def test_pages_omit_hidden_namespaces(lake: DriverNode) -> None:
    """A list omits namespaces that the caller may not use."""
    for name in ("a", "b", "c"):
        make_space(lake, name)
    grant(lake, "ana", "use_catalog", kind="CATALOG", on="main")
    grant(lake, "ana", "use_schema", kind="SCHEMA", on="main.b")

    assert lake.get(SPACES, user="ana")["namespaces"] == [["b"]]
    assert list(walk(lake, SPACES, 1, user="ana")) == [["b"]]


def test_token_stays_valid_after_drops_and_creates(tables: DriverNode) -> None:
    """A token continues after the last name of its page, even if that name was dropped and others were added."""
    path = f"{space_path('n')}/tables"
    first = tables.get(f"{path}?pageToken=&pageSize=3").json()
    tables.delete(table_path("n", "b"))
    make_table(tables, "n", "aa")
    make_table(tables, "n", "cc")

    rest = tables.get(f"{path}?pageToken={first['next-page-token']}").json()

    assert [item["name"] for item in first["identifiers"]] == ["B", "a", "b"]
    assert [item["name"] for item in rest["identifiers"]] == ["c c", "c/c", "cc", "d", "é", "数"]


@pytest.mark.parametrize("size", ["0", "-1", "x", "1.5", "000", "%31%FF", "٣", "1e3", "0x10"])
def test_malformed_page_size_returns_400(node: DriverNode, size: str) -> None:
    """A page size that is not a positive number is 400."""
    make_space(node, "n")
    escaped = size if "%" in size else quote(size)

    answers = [node.get(f"{path}?pageSize={escaped}") for path in (SPACES, f"{space_path('n')}/tables")]

    assert [error_of(answer)[:2] for answer in answers] == [(400, "IllegalArgumentException")] * 2


@pytest.mark.parametrize("size", ["100001", "9" * 5000, "0" * 50 + "3"])
def test_large_page_size_is_an_upper_bound(node: DriverNode, size: str) -> None:
    """A page size above the server's is no error: the server may return fewer names."""
    make_space(node, "n")

    for path in (SPACES, f"{space_path('n')}/tables"):
        assert node.get(f"{path}?pageSize={size}").status == 200


@pytest.mark.parametrize("token", ["%21%21", "abc", "%FF", "_w", "é", "YQ%3D%3Dx"])
def test_unknown_page_token_returns_400(node: DriverNode, token: str) -> None:
    """An unknown token is 400, and the message says to start again."""
    make_space(node, "n")

    answer = node.get(f"{SPACES}?pageToken={token if '%' in token else quote(token)}")

    assert error_of(answer)[:2] == (400, "IllegalArgumentException")


def test_removed_user_is_refused_at_the_next_page(tables: DriverNode) -> None:
    """A user removed between two pages is refused at the next one."""
    grant(tables, "ana", "use_catalog use_schema select_table", kind="CATALOG", on="main")
    path = f"{space_path('n')}/tables"
    token = tables.get(f"{path}?pageSize=2", user="ana")["next-page-token"]

    tables.done("DELETE", f"{API}/lake/users/ana")

    assert tables.get(f"{path}?pageToken={token}", user="ana").status == 403


def test_cached_listing_is_bound_to_its_blocks_and_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    """Cached joined listings are bound to their blocks and affixes, and their number is limited."""

    def body(*parts: tuple[bytes, ...], before: bytes = b"<") -> bytes:
        return join_page(b"f", NamePage(parts, None, whole=True), before=before, after=b">")

    monkeypatch.setattr(pages, "_joined", pages.JoinedPageCache())
    first, other = (b'"a"', b'"b"'), (b'"c"',)
    for _ in range(2):
        assert body(first) == b'{"f":[<"a">,<"b">],"next-page-token":null}'
        assert body(first, other) == b'{"f":[<"a">,<"b">,<"c">],"next-page-token":null}'
        assert body(other, before=b"{") == b'{"f":[{"c">],"next-page-token":null}'
        assert body() == b'{"f":[],"next-page-token":null}'

    monkeypatch.setattr(pages, "JOINED_ALL_BYTES_MAX", 20 * (pages.JOINED_ENTRY_BYTES + 10))
    for number in range(100):
        each = b'"%d"' % number
        assert body((each,)) == b'{"f":[<' + each + b'>],"next-page-token":null}'
        assert len(pages._joined) <= 22
    monkeypatch.setattr(pages, "JOINED_BYTES_MAX", 100)
    before = len(pages._joined)
    body((b"x" * 101,))
    assert len(pages._joined) == before


def test_identical_parts_return_the_cached_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Identical parts give the identical cached bytes, also from the old generation."""
    monkeypatch.setattr(pages, "JOINED_ALL_BYTES_MAX", 6 * (pages.JOINED_ENTRY_BYTES + 10))
    joined = pages.JoinedPageCache()
    parts = ((b'"a"', b'"b"'),)
    first = joined.items(parts, b"<", b">")

    for number in range(20):
        joined.items(((b'"%d"' % number,),), b"<", b">")
        assert joined.items(parts, b"<", b">") is first
