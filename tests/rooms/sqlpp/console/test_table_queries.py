# SPDX-License-Identifier: Apache-2.0
"""Statements that the console writes for a table: the command of the Connect tab and the link "Query". Both run
unchanged.
"""

from __future__ import annotations

import shlex
from collections.abc import AsyncIterator
from urllib.parse import parse_qs, urlsplit

import pytest

from limnos.model.extras import install_hint
from limnos.rooms.console.http.protocol import ConsoleProtocol
from limnos.rooms.console.http.site import ConsoleSite
from limnos.rooms.sqlpp.language.errors import SqlppError
from limnos.rooms.sqlpp.language.jobs import EngineJob
from limnos.rooms.sqlpp.services.execution.engine import ENGINE, NoSqlppEngine
from tests.http.driver import API, DriverNode, grant
from tests.rooms.console.http.conftest import SCHEMA, add_table
from tests.rooms.console.http.visitor import ConsoleVisitor, PageReader, text_of
from tests.rooms.sqlpp.http.wire import rows

CATALOG = {"name": "other", "type": "RELATIONAL", "provider": "lakehouse-iceberg", "comment": "", "properties": {}}
HOPS = "/console/o/table/lake/main/raw/nyc/hops"
ODD = 'it\'s `x` \\ "y"'
ODD_HREF = "/console/o/table/lake/main/raw/nyc/it%27s%20%60x%60%20%5C%20%22y%22"


class RecordingEngine(NoSqlppEngine):
    """A fake engine that records its jobs and returns one row."""

    def __init__(self) -> None:
        self.jobs: list[EngineJob] = []

    async def run(self, job: EngineJob, *, warnings: list[SqlppError] | None = None) -> AsyncIterator[bytes]:
        """Record the job."""
        self.jobs.append(job)
        yield b'{"id":1}'


@pytest.fixture
def engine(lake: DriverNode) -> RecordingEngine:
    """A fake engine in the node of the lake, which has a table with an odd name in a nested namespace, too."""
    add_table(lake, "raw%1Fnyc", ODD)
    recording = RecordingEngine()
    ENGINE.put(lake.built.services, recording)
    return recording


def query_link(page: PageReader) -> list[str]:
    """Return the statement text of each link to the worksheet that has one."""
    return [text for href in page.hrefs for text in parse_qs(urlsplit(href).query).get("text", ())]


@pytest.mark.parametrize("href, name", [(HOPS, "hops"), (ODD_HREF, ODD)])
def test_connect_tab_command_runs_for_a_nested_table(
    lake: DriverNode, engine: RecordingEngine, href: str, name: str
) -> None:
    """The command of the Connect tab runs over the query service for a table in a nested namespace."""
    page = ConsoleVisitor(lake).sign_in().read(f"{href}?tab=connect")
    (command,) = [each for each in page.words if each.strip().startswith("limnos sql")]

    assert rows(lake, shlex.split(command)[-1]) == [{"id": 1}]
    assert [(each.dataverse, each.name) for each in engine.jobs[0].reads] == [(("raw", "nyc"), name)]


def test_table_of_an_unsupported_catalog_has_no_command_or_link(lake: DriverNode) -> None:
    """A table of a catalog that statements cannot read has neither the command nor the link."""
    lake.done("POST", f"{API}/lake/catalogs", CATALOG)
    lake.done("POST", "/iceberg/v1/lake.other/namespaces", {"namespace": ["raw"], "properties": {}})
    lake.done(
        "POST", "/iceberg/v1/lake.other/namespaces/raw/tables", {"name": "hops", "schema": SCHEMA, "properties": {}}
    )

    page = ConsoleVisitor(lake).sign_in().read("/console/o/table/lake/other/raw/hops?tab=connect")

    assert "limnos show other.raw.hops" in page.text
    assert "limnos sql" not in page.text
    assert query_link(page) == []


@pytest.mark.parametrize("href", [HOPS, ODD_HREF])
def test_query_link_fills_the_worksheet_with_a_valid_statement(
    lake: DriverNode, engine: RecordingEngine, href: str
) -> None:
    """The link fills the worksheet without running the statement. The statement runs when it is sent."""
    admin = ConsoleVisitor(lake).sign_in()
    page = admin.read(href)
    (text,) = query_link(page)
    (link,) = [each for each in page.hrefs if "text=" in each]

    assert text in admin.read(link).text
    assert engine.jobs == []
    assert "1 result in" in PageReader(text_of(admin.post("/console/worksheet", {"text": text}))).text
    assert len(engine.jobs) == 1


def test_query_link_needs_the_read_privilege(lake: DriverNode) -> None:
    """A user without the privilege to read the table gets no link; a reader gets it."""
    for user, privilege in (("ana", "modify_table"), ("ben", "select_table")):
        grant(lake, user, f"use_catalog use_schema {privilege}", kind="CATALOG", on="main")

    assert query_link(ConsoleVisitor(lake).sign_in("ben").read(HOPS)) != []
    assert query_link(ConsoleVisitor(lake).sign_in("ana").read(HOPS)) == []


def test_query_link_and_command_are_missing_without_sqlpp(admin: ConsoleVisitor) -> None:
    """A server without SQL++ has neither the link nor the command."""
    application = admin.node.built.application
    protocol = ConsoleProtocol(ConsoleSite(allows_name_only=True, rooms_off=frozenset({"sqlpp"})))
    application.protocols = [protocol if each.name == "console" else each for each in application.protocols]
    page = admin.read(f"{HOPS}?tab=connect")

    assert query_link(page) == []
    assert "limnos sql" not in page.text


def test_server_without_an_engine_shows_what_to_install(admin: ConsoleVisitor) -> None:
    """A server without an engine shows what to install instead of the command, and above the worksheet, to which the
    link leads.
    """
    application = admin.node.built.application
    protocol = ConsoleProtocol(ConsoleSite(allows_name_only=True, has_engine=False))
    application.protocols = [protocol if each.name == "console" else each for each in application.protocols]
    page = admin.read(f"{HOPS}?tab=connect")

    assert "limnos sql" not in page.text
    assert install_hint("spark") in page.text
    assert "limnos show main.raw.nyc.hops" in page.text
    assert install_hint("spark") in admin.read("/console/worksheet").text
    assert page.faults == []
