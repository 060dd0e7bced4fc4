# SPDX-License-Identifier: Apache-2.0
"""`python -m bench.console`: the cost of the console's pages in a large lake, their sizes, and the quality of the
search.

Measured on SQLite: bytes and requests of the first page, CPU of the server per page with gzip, bytes of pages, exact
names that are found first, misspelled words that are corrected, and Chromium's CPU per page compared with an empty page
(omitted without a Chromium). It judges nothing.
"""

from __future__ import annotations

import argparse
import gzip
import html
import http.client
import random
import re
import shutil
import statistics
import sys
import tempfile
import time
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.parse import quote, urlencode

from bench.cpu import TreeCpu
from bench.figures import Figure
from bench.load import LoadError
from bench.measure import say
from bench.operations import namespace_path, new_table
from bench.search import Client
from bench.search_lake import CROWD, Lake, plant_crowd, plant_lake, template_bodies
from bench.stores import Place, running_server
from scripts.console_shots import lineage_event

if TYPE_CHECKING:
    from collections.abc import Sequence

    from playwright.sync_api import CDPSession

    from bench.stores import Server

OWN: Final = "/api/limnos/v1/metalakes/lake"
WIDE, LINKED = 405, 200
USERS: Final = 1_000
EVENTS_AT_ONCE: Final = 100
LOADS: Final = 10
"""Number of page loads in Chromium."""
CAUGHT_UP_S: Final = 300.0
FORM: Final = "application/x-www-form-urlencoded"
_ASSET: Final = re.compile(r'(?:href|src)="([^"#]+/static/[^"#]+)')


class ConsolePage(NamedTuple):
    """A page, and the targets of its CPU in ms and of its bytes in kB with gzip."""

    title: str
    path: str
    cpu_ms: float = 10
    kilobytes: float = 20
    is_large: bool = True


def pages(lake: Lake) -> list[ConsolePage]:
    """Return the measured pages."""
    namespace = "/".join(lake.namespace(0))
    table = lake.tables(0)[0]
    return [
        ConsolePage(title="home", path="/console/", cpu_ms=3, is_large=False),
        ConsolePage(
            title="namespace, its first 100 of 200 tables", path=f"/console/o/namespace/lake/main/{namespace}", cpu_ms=3
        ),
        ConsolePage(
            title="search for a word", path=f"/console/search?q={quote(table.name.partition('_')[0])}", cpu_ms=3
        ),
        ConsolePage(title=f"table of {WIDE} columns", path=f"/console/o/table/lake/main/{CROWD}/wide", cpu_ms=3),
        ConsolePage(
            title="lineage of 100 nodes", path=f"/console/lineage/table/lake/main/{CROWD}/t00000?depth=6", cpu_ms=8
        ),
        ConsolePage(
            title=f"lineage of {LINKED} nodes",
            path=f"/console/lineage/table/lake/main/{CROWD}/t00000?depth=10",
            cpu_ms=10,
        ),
        ConsolePage(title="namespace of 10,000 tables", path=f"/console/o/namespace/lake/main/{CROWD}"),
        ConsolePage(title=f"{USERS:,} users", path="/console/people"),
    ]


class Browser:
    """One signed-in session over one connection, without scripts."""

    def __init__(self, server: Server) -> None:
        self._host = f"{server.host}:{server.port}"
        self._connection = http.client.HTTPConnection(server.host, server.port, timeout=300)
        headers = {"Content-Type": FORM, "Origin": f"http://{self._host}", "Sec-Fetch-Site": "same-origin"}
        self._connection.request("POST", "/console/sign-in", urlencode({"user": "admin"}), headers)
        response = self._connection.getresponse()
        response.read()
        self.cookie = (response.getheader("set-cookie") or "").partition(";")[0]

    def get(self, path: str) -> bytes:
        """GET a page or an asset as it is sent, with gzip if the server compresses it. Raises LoadError."""
        self._connection.request("GET", path, headers={"Cookie": self.cookie, "Accept-Encoding": "gzip"})
        response = self._connection.getresponse()
        body = response.read()
        if response.status != 200:
            raise LoadError(f"{response.status} for {path}")
        return body


def fill(server: Server, tables: int) -> None:
    """Add the wide table, the lineage and the users, and wait until everything is indexed."""
    client = Client(server)
    client.ask("POST", f"{namespace_path([CROWD])}/tables", new_table("wide", width=WIDE))
    for number in range(USERS):
        client.ask("POST", "/api/metalakes/lake/users", {"name": f"user_{number:04}"})
    events = [  # a binary tree
        lineage_event(_table_name((number - 1) // 2), _table_name(number), job=f"job {number}")
        for number in range(1, min(LINKED, tables))
    ]
    for begin in range(0, len(events), EVENTS_AT_ONCE):
        client.ask("POST", f"{OWN}/lineage", events[begin : begin + EVENTS_AT_ONCE])
    began = time.monotonic()
    while client.find("zzzz")["behind"] and time.monotonic() - began < CAUGHT_UP_S:
        time.sleep(0.5)


def _table_name(number: int) -> str:
    return f"main.{CROWD}.t{number:05}"


def first_load(browser: Browser) -> list[Figure]:
    """Return the bytes and requests of the first page with its assets, and the size of the script."""
    home = browser.get("/console/")
    assets = sorted(set(_ASSET.findall(html.unescape(gzip.decompress(home).decode()))))
    total = len(home) + sum(len(browser.get(each)) for each in assets)
    script = files("limnos.rooms.console.http").joinpath("static/limnos.js").read_bytes()
    return [
        Figure("first load, with gzip", total / 1000, "kB", 30),
        Figure("  requests", 1 + len(assets), "", 6),
        Figure("lines of the script", script.count(b"\n"), "", 400),
        Figure("  with gzip", len(gzip.compress(script)) / 1000, "kB", 6),
    ]


def page_costs(server: Server, browser: Browser, *, lake: Lake, times: int) -> list[Figure]:
    """Return the median CPU of the server per page, and the bytes of each page."""
    figures = []
    for page in pages(lake):
        body = browser.get(page.path)
        costs = []
        for _ in range(times):
            clock = TreeCpu(server.pids)
            before = clock.look()
            browser.get(page.path)
            costs.append((clock.look() - before) / 1e6)
        figures.append(Figure(page.title, statistics.median(costs), "ms", page.cpu_ms))
        figures.append(Figure("  bytes with gzip", len(body) / 1000, "kB", page.kilobytes))
    return figures


def search_quality(server: Server, lake: Lake, *, questions: int) -> list[Figure]:
    """Return how often the table of an exact name is not the first hit, and how often a word with one wrong letter is
    not corrected, both in percent.
    """
    client, dice = Client(server), random.Random(5)
    later = wrong = 0
    for _ in range(questions):
        name = lake.any_table(dice).name
        hits = client.find(name)["hits"]
        assert isinstance(hits, list)
        later += hits[0]["path"][-1] != name
        word = dice.choice([part for part in lake.any_table(dice).name.split("_") if len(part) >= 6] or ["bayoubayou"])
        place = dice.randrange(1, len(word))
        meant = client.find(f"{word[:place]}q{word[place + 1 :]}")["meant"]
        assert isinstance(meant, list)
        wrong += word not in meant
    return [
        Figure(f"exact name is not the first hit, of {questions}", 100 * later / questions, "%", 0),
        Figure(f"one wrong letter is not corrected, of {questions}", 100 * wrong / questions, "%", 10),
    ]


def chromium_costs(server: Server, browser: Browser, *, lake: Lake) -> list[Figure]:
    """Return Chromium's CPU of each large page compared with that of an empty list."""
    path = shutil.which("chromium") or shutil.which("google-chrome")
    if path is None:
        say("no Chromium: its CPU is left out")
        return []
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=path, chromium_sandbox=False)
        context = running.new_context()
        name, _, value = browser.cookie.partition("=")
        context.add_cookies([{"name": name, "value": value, "url": f"http://{server.host}:{server.port}"}])
        page = context.new_page()
        session = running.new_browser_cdp_session()
        base = f"http://{server.host}:{server.port}"

        def cost(path: str) -> float:
            before = _cpu_s(session)
            for _ in range(LOADS):
                page.goto(base + path, wait_until="networkidle")
            return _cpu_s(session) - before

        cost("/console/trash")
        empty = cost("/console/trash")
        figures = [
            Figure(f"Chromium's CPU against an empty list: {each.title}", cost(each.path) / empty, "times", 1.5)
            for each in pages(lake)
            if each.is_large
        ]
        running.close()
    return figures


def _cpu_s(session: CDPSession) -> float:
    """Return the CPU seconds of all processes of Chromium."""
    return sum(float(each["cpuTime"]) for each in session.send("SystemInfo.getProcessInfo")["processInfo"])


def measured(folder: Path, options: argparse.Namespace) -> list[Figure]:
    """Fill a lake and measure."""
    place, lake = Place(folder / "lake", None), Lake(options.objects)
    with running_server(place, database_pid=None) as server:
        for path, body in template_bodies():
            Client(server).ask("POST", path, body)
    plant_lake(place, lake)
    plant_crowd(place, options.crowd)
    with running_server(place, database_pid=None) as server:
        fill(server, options.crowd)
        browser = Browser(server)
        return [
            *first_load(browser),
            *page_costs(server, browser, lake=lake, times=options.times),
            *search_quality(server, lake, questions=options.questions),
            *chromium_costs(server, browser, lake=lake),
        ]


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m bench.console", description=__doc__)
    parser.add_argument("--objects", type=int, default=20_000, help="of the lake, besides the crowd")
    parser.add_argument("--crowd", type=int, default=10_000, help="tables of one namespace")
    parser.add_argument("--times", type=int, default=40, help="requests of each page")
    parser.add_argument("--questions", type=int, default=200, help="searches of each sort")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="limnos-bench-", ignore_cleanup_errors=True) as folder:
        for figure in measured(Path(folder), options):
            print(figure.line, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
