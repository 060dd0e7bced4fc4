# SPDX-License-Identifier: Apache-2.0
"""The tree follows its own rules, and each rule is shown to fail on a planted violation."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from cyclopts import App

from tests.house import positional_functions, surface, tidy
from tests.house.one_pass import EVERYTHING, PRODUCT, ROOT, TESTS, Look, complaints, sentences
from tests.house.tidy import SourceFile

ENTRY_POINTS = {
    "limnos.cli.main",  # the `limnos` command
    "limnos.__main__",  # `python -m limnos`
    "limnos.store.migrations.env",  # loaded by alembic, by path
    "limnos.testing.connector",  # imported by packages of connectors
}

Rule = Callable[[SourceFile], list[str]]

RULES: dict[Rule, tuple[tuple[str, ...], SourceFile]] = {
    tidy.too_long_file: (EVERYTHING, SourceFile("src/limnos/store/a.py", "x = 1\n" * 326)),
    tidy.switched_off_formatter: (EVERYTHING, SourceFile("src/limnos/store/a.py", "x = [1]  # fmt:" + " skip\n")),
    tidy.too_long_function: (EVERYTHING, SourceFile("src/limnos/store/a.py", "def f():\n" + "    x = 1\n" * 51)),
    tidy.unfinished: (PRODUCT, SourceFile("src/limnos/store/a.py", "x = 1  # " + "TO" + "DO later\n")),
    tidy.banned_call: (PRODUCT, SourceFile("src/limnos/store/a.py", "print(1)\n")),
    tidy.eager_command: (PRODUCT, SourceFile("src/limnos/cli/a.py", "from limnos.store import tables\n")),
    tidy.skipped_test: (TESTS, SourceFile("tests/store/test_a.py", "import pytest\npytest.skip('no Java')\n")),
    tidy.foreign_path: (EVERYTHING, SourceFile("src/limnos/store/a.py", "x = '" + "/ro" + "ot/lake'\n")),
}
"""Each rule, the folders where it applies, and a file that violates it."""
LOOKS = {rule: complaints(rule, *folders) for rule, (folders, _) in RULES.items()}
MENTIONS = Look(tidy.mentioned_modules, *PRODUCT)
BY_POSITION = Look(tidy.by_position, *PRODUCT)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_tree_keeps_rule(rule: Rule) -> None:
    """The files of the repository follow the rule."""
    texts = sentences(LOOKS[rule])

    assert LOOKS[rule].results
    assert not texts, "\n" + "\n".join(texts)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_planted_violation_is_reported(rule: Rule) -> None:
    """A planted violation of the rule is reported, with the name of the file."""
    _, planted = RULES[rule]

    texts = rule(planted)

    assert texts
    assert texts[0].startswith(planted.path)


@pytest.mark.parametrize(
    "room,text",
    [
        ("store", "import os\nos.system('ls')"),
        ("store", "import pickle as p\np.loads(b'')"),
        ("store", "from pickle import loads\nloads(b'')"),
        ("store", "eval('1')"),
        ("store", "from datetime import datetime\ndatetime.utcnow()"),
        ("store", "import datetime\ndatetime.datetime.utcnow()"),
        ("formats", "import time\ntime.time()"),
        ("model", "from time import time\ntime()"),
        ("names", "from datetime import datetime, UTC\ndatetime.now(UTC)"),
    ],
)
def test_banned_call_is_detected_in_every_import_spelling(room: str, text: str) -> None:
    """A banned call is found for every spelling of its import; clocks only in pure rooms."""
    planted = SourceFile(f"src/limnos/{room}/a.py", text)

    assert len(tidy.banned_call(planted)) == 1


@pytest.mark.parametrize(
    "path,text",
    [
        ("src/limnos/cli/a.py", "print(1)"),
        ("src/limnos/store/a.py", "import time\ntime.time()"),
        ("src/limnos/store/a.py", "self.print(1)"),
    ],
)
def test_allowed_call_is_not_reported(path: str, text: str) -> None:
    """Allowed calls are not reported: commands print, and rooms with a clock read it."""
    assert tidy.banned_call(SourceFile(path, text)) == []


@pytest.mark.parametrize(
    "text,count",
    [
        ("import limnos.app.server", 1),
        ("from limnos import spark", 1),
        ("import pyspark", 1),
        ("if True:\n    import sqlalchemy", 1),
        ("try:\n    import uvicorn\nexcept ImportError:\n    pass", 1),
        ("def start():\n    from limnos.app import server", 0),
        ("from limnos.client import Client\nimport rich, json", 0),
        ("from limnos import __version__", 0),
    ],
)
def test_command_line_loads_lazily(text: str, count: int) -> None:
    """A command module may import the base install at its top, everything else only inside functions."""
    eager_imports = tidy.eager_command(SourceFile("src/limnos/cli/a.py", text))

    assert len(eager_imports) == count


def test_no_module_is_dead() -> None:
    """Every module of the package is imported by another, is an entry point, or is found by its name."""
    modules = {SourceFile(path, "").module for path in MENTIONS.results}
    migrations = {module for module in modules if ".migrations.versions." in module}
    manifests = {module for module in modules if re.fullmatch(r"limnos\.rooms\.\w+\.manifest", module)}

    texts = tidy.dead_modules(MENTIONS.results, ENTRY_POINTS | migrations | manifests)

    assert not texts, "\n" + "\n".join(texts)


def test_dead_module_is_reported() -> None:
    """A module that only mentions itself is dead; one that is imported, in any spelling, is not."""
    sources = [
        SourceFile("src/limnos/store/main.py", "from limnos.store import used\nx = 'limnos.store.told:main'"),
        SourceFile("src/limnos/store/used.py", ""),
        SourceFile("src/limnos/store/told.py", ""),
        SourceFile("src/limnos/store/dead.py", "import limnos.store.dead"),
    ]

    texts = tidy.dead_modules(
        {source.path: tidy.mentioned_modules(source) for source in sources}, {"limnos.store.main"}
    )

    assert len(texts) == 1
    assert texts[0].startswith("src/limnos/store/dead.py")


@pytest.mark.parametrize("what", surface.COLLECTORS)
def test_surface_is_documented(what: str) -> None:
    """Every setting, command, metric, error code and route is on its page of docs/."""
    collect, page = surface.COLLECTORS[what]
    names = collect()
    text = (ROOT / page).read_text(encoding="utf-8") if (ROOT / page).exists() else ""

    texts = tidy.undocumented(names, text, where=page)

    assert names, f"no {what} found: the collector is out of date"
    assert not texts, "\n" + "\n".join(texts)


def test_undocumented_name_is_detected() -> None:
    """A name counts as documented only between back quotes, whole or as the beginning of the quoted text."""
    page = "`server start [--data DIR]` and `view.bytes_max`, but not view.cold\n"

    texts = tidy.undocumented(["server start", "view.bytes_max", "view.cold", "view.bytes"], page, where="page")

    assert texts == ["page does not mention `view.bytes`", "page does not mention `view.cold`"]


def test_collectors_detect_declared_metrics_and_errors() -> None:
    """The collectors find a metric and an error code where they are declared."""
    source = SourceFile(
        "src/limnos/telemetry/a.py",
        'GATES = Counter("limnos_gate_reads", "Reads.")\nclass Lost(E):\n    code: ClassVar[str] = "lost"\n',
    )

    assert tidy.metric_names(source) == {"limnos_gate_reads"}
    assert tidy.error_codes(source) == {"lost"}


def test_commands_below_groups_are_detected() -> None:
    """A command counts with all of its words; groups, and flags of every program, do not count."""
    app, server = App(name="limnos"), App(name="server")
    app.command(server)
    app.command(print, name="ls")
    server.command(print, name="start")

    assert set(surface.commands_of(app)) == {"ls", "server start"}


def test_routes_are_detected_only_in_http() -> None:
    """A method next to a path is a route only in the room http."""
    text = 'add("GET", "/whoami", who)\nTABLE = [("POST", "/tokens", make), ("GET", "words")]\n'

    assert surface.routes(SourceFile("src/limnos/http/admin/a.py", text)) == {"GET /whoami", "POST /tokens"}
    assert surface.routes(SourceFile("src/limnos/client/a.py", text)) == set()


def test_routes_with_shared_prefix_are_detected() -> None:
    """The document of the admin API has routes whose path is not written in one piece."""
    assert "GET /api/limnos/v1/metalakes/{m}/catalogs/{c}/filesets/entries" in surface.own_routes()


def test_arguments_after_second_are_keyword_only() -> None:
    """Arguments after the second are keyword-only; the list of older exceptions only shrinks."""
    counts = {name: count for each in BY_POSITION.results.values() for name, count in each.items()}

    assert tidy.too_many_by_position(counts, positional_functions.known()) == []


def test_third_positional_argument_is_reported() -> None:
    """A third positional argument is reported, and an outdated entry of the list, too; self does not count."""
    source = SourceFile(
        "src/limnos/store/a.py", "class A:\n    def f(self, a, b, c, *, d): ...\n    def g(self, a, b, *, c): ...\n"
    )

    counts = tidy.by_position(source)

    assert counts == {"limnos.store.a:A.f": 3}
    assert len(tidy.too_many_by_position(counts, {})) == 1
    assert tidy.too_many_by_position(counts, {"limnos.store.a:A.f": 3}) == []
    assert len(tidy.too_many_by_position(counts, {"limnos.store.a:A.f": 4, "limnos.store.b:g": 3})) == 2
