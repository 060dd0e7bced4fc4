# SPDX-License-Identifier: Apache-2.0
"""All pages over a lake whose names contain markup: they are well-formed, have no foreign elements or hidden objects,
and every link works.
"""

from __future__ import annotations

import pytest

from tests.http.driver import DriverNode, grant
from tests.rooms.console.http.conftest import ICEBERG, NASTY, add_table
from tests.rooms.console.http.visitor import ConsoleVisitor, PageReader, text_of

pytestmark = pytest.mark.slow

CANARY = "canary_4711"
PAGES_MAX = 400
SCRIPTS = 1
"""Every page has one script element: the console's own module."""
NAMES = (
    "<script>alert(1)</script>"[:20],
    '"><img src=x onerror=1>',
    "'quoted'",
    "..",
    "~tilde",
    "%2e%2e",
    "a&b=c#d?e",
    "x" * 200,
    "\N{PILE OF POO}",
    "\N{ARABIC LETTER ALEF}\N{HEBREW LETTER ALEF}",
    "{{ 7 * 7 }}",
    "{% raw %}",
)


def crawl(visitor: ConsoleVisitor, *starts: str) -> dict[str, tuple[int, str]]:
    """Follow every link of the console from the given pages. Returns the status and text of each page."""
    waiting, pages = list(starts), {}
    while waiting and len(pages) < PAGES_MAX:
        path = waiting.pop()
        if path in pages or path.startswith("?"):
            continue
        answer = visitor.get(path, x_limnos_part="1") if "/branch/" in path else visitor.get(path)
        text = text_of(answer)
        pages[path] = (answer.status, text)
        assert answer.status in {200, 303, 403, 404}, f"{path}: {answer.status}"
        if answer.status == 200 and answer.headers["content-type"].startswith("text/html"):
            waiting += [href.partition("#")[0] for href in PageReader(text).hrefs if href.startswith("/console")]
    return pages


@pytest.fixture
def nasty(lake: DriverNode) -> DriverNode:
    """A lake with a namespace and a table for each name with markup."""
    for name in NAMES:
        lake.ask("POST", f"{ICEBERG}/namespaces", {"namespace": [name], "properties": {"comment": NASTY, NASTY: NASTY}})
        lake.ask(
            "POST",
            f"{ICEBERG}/namespaces/raw/tables",
            {
                "name": name,
                "properties": {"comment": NASTY, "key": NASTY},
                "schema": {
                    "type": "struct",
                    "fields": [{"id": 1, "name": name, "required": False, "type": "long", "doc": NASTY}],
                },
            },
        )
    lake.done("POST", "/api/metalakes/lake/tags", {"name": "pii", "comment": NASTY, "properties": {}})
    lake.done(
        "POST", "/api/metalakes/lake/objects/table/main.raw.flights/tags", {"tagsToAdd": ["pii"], "tagsToRemove": []}
    )
    return lake


def test_every_page_is_well_formed_and_every_link_works(nasty: DriverNode) -> None:
    """Every page is well-formed, every link is answered, and no name becomes an element or attribute."""
    pages = crawl(ConsoleVisitor(nasty).sign_in(), "/console/")
    readers = {
        path: PageReader(text) for path, (status, text) in pages.items() if status == 200 and "/branch/" not in path
    }

    assert len(readers) > 40
    for path, page in readers.items():
        assert page.faults == [], path
        assert len(page.ids) == len(set(page.ids)), path
        assert page.tags.count("script") == SCRIPTS, path
        assert "img" not in page.tags, path
        assert not [name for name, _ in page.attributes if name.startswith("on") or name == "style"], path
    assert not [path for path, (status, _) in pages.items() if status in {403, 404}]
    assert any("{{ 7 * 7 }}" in page.text for page in readers.values())


def test_member_without_rights_sees_no_object_name(nasty: DriverNode) -> None:
    """A user without rights gets no name of an object, neither by following links nor at guessed URLs."""
    add_table(nasty, "raw", CANARY, comment=f"{CANARY}_comment")
    nasty.done("POST", "/api/metalakes/lake/users", {"name": "ana"})
    guessed = [
        "/console/o/namespace/lake/main/raw",
        "/console/o/catalog/lake/main",
        "/console/branch/namespace/lake/main/raw",
    ]

    for user in ("ana", "stranger"):
        pages = crawl(ConsoleVisitor(nasty).sign_in(user), "/console/", *guessed)
        assert not [path for path, (_, text) in pages.items() if CANARY in text or "as delivered" in text]


def test_hidden_and_missing_tables_get_the_same_refusal(lake: DriverNode) -> None:
    """The refusal for an existing table equals the refusal for a missing one."""
    lake.done("POST", "/api/metalakes/lake/users", {"name": "ana"})
    ana = ConsoleVisitor(lake).sign_in("ana")

    existing, missing = (ana.get(f"/console/o/table/lake/main/raw/{name}") for name in ("flights", "nothing"))

    assert existing.status == missing.status == 403
    assert PageReader(text_of(existing)).text.replace("flights", "nothing") == PageReader(text_of(missing)).text


def test_reader_sees_only_the_objects_they_may_load(lake: DriverNode) -> None:
    """Lists, the tree and the table's page show only objects that the reader may load."""
    add_table(lake, "raw", CANARY)
    grant(lake, "ana", "use_catalog", kind="CATALOG", on="main")
    grant(lake, "ana", "use_schema", kind="SCHEMA", on="main.raw")
    grant(lake, "ana", "select_table", kind="TABLE", on="main.raw.flights")
    ana = ConsoleVisitor(lake).sign_in("ana")

    page = ana.read("/console/o/table/lake/main/raw/flights")

    assert "You may read" in page.text
    assert "You may read, write" not in page.text
    assert "flights" in ana.read("/console/o/namespace/lake/main/raw").text
    assert not [path for path, (_, text) in crawl(ana, "/console/").items() if CANARY in text]


def test_refusal_names_user_and_missing_privileges(lake: DriverNode) -> None:
    """The page of a refusal has the user, the missing privileges, and the objects on which they are missing."""
    grant(lake, "ana", "use_catalog", kind="CATALOG", on="main")

    page = PageReader(text_of(ConsoleVisitor(lake).sign_in("ana").get("/console/o/table/lake/main/raw/flights")))

    assert "signed in as ana" in page.text
    assert "lacks USE_SCHEMA on namespace main.raw" in page.text
    assert "lacks SELECT_TABLE or MODIFY_TABLE" in page.text


def test_links_and_cookie_have_the_proxy_prefix(lake: DriverNode) -> None:
    """Below a proxy's prefix every link, form and redirect has the prefix, and the cookie is bound to it."""
    from limnos.rooms.console.http.protocol import ConsoleProtocol
    from limnos.rooms.console.http.site import ConsoleSite

    site = ConsoleSite(prefix="/lake", origin="https://data.example.com", is_tls=True, allows_name_only=True)
    application = lake.built.application
    application.protocols = [
        ConsoleProtocol(site) if each.name == "console" else each for each in application.protocols
    ]
    visitor = ConsoleVisitor(lake, host="data.example.com")

    answer = visitor.post(
        "/console/sign-in", {"user": "admin"}, sec_fetch_site="same-origin", origin="https://data.example.com"
    )

    assert answer.headers["location"] == "/lake/console/"
    for path in (
        "/console/",
        "/console/o/table/lake/main/raw/flights?tab=connect",
        "/console/o/namespace/lake/main/raw",
    ):
        page = visitor.read(path)
        assert page.hrefs
        assert [href for href in page.hrefs if not href.startswith(("/lake/console/", "/lake/docs", "?", "#"))] == []
        assert [action for _, action in page.actions if not action.startswith("/lake/console/")] == []
    assert (
        "https://data.example.com/lake/iceberg"
        in visitor.read("/console/o/table/lake/main/raw/flights?tab=connect").text
    )
