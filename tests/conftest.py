# SPDX-License-Identifier: Apache-2.0
"""Shared fixtures and hooks: settings of Hypothesis, marks by folder, and a failure of runs that skip tests."""

from __future__ import annotations

import gc
import logging
import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

from tests.installed import ALL_ROOMS, MissingRoom, has_room, lacks_room, watched_clients
from tests.sampling import FEW, PARTS, is_of_few, part_of_commit, sample
from tests.zones import ZONES, is_zoned, machine_in

if TYPE_CHECKING:
    from xdist.remote import Producer
    from xdist.scheduler import LoadScopeScheduling

    from tests.backends import Database, PostgresServer, StoreLab
    from tests.brokers import KafkaServer
    from tests.mariadbs import MariaServer
    from tests.metastores import HiveServer

# A slow machine must not fail a correct property.
settings.register_profile("limnos", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("limnos")

_HERE = Path(__file__).parent
_MARKS = {"integration": ("integration", "nodes", "faults"), "spark": ("demo",)}
"""Folders below tests/ whose tests all have a mark. In other folders a test has its own marks."""
_SPARK_FIXTURES = frozenset({"spark", "here"})
"""Tests with one of these fixtures run in the suite of one process: a second Spark would cost half a gigabyte."""


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[PostgresServer]:
    """PostgreSQL for this test process, started on first use."""
    from tests.backends import postgres_server

    with postgres_server() as server:
        yield server


@pytest.fixture(scope="session")
def kafka_server() -> Iterator[KafkaServer]:
    """A Kafka broker for this test process, started on first use."""
    from tests.brokers import kafka_server

    with kafka_server() as server:
        yield server


@pytest.fixture(scope="session")
def maria_server() -> Iterator[MariaServer]:
    """A MariaDB server for this test process, started on first use."""
    from tests.mariadbs import maria_server

    with maria_server() as server:
        yield server


@pytest.fixture(scope="session")
def hive_server() -> Iterator[HiveServer]:
    """A Hive metastore for this test process, started on first use."""
    from tests.metastores import hive_server

    with hive_server() as server:
        yield server


@pytest.fixture(scope="session")
def sqlite_template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A migrated SQLite file to copy."""
    from tests.backends import sqlite_template

    return sqlite_template(tmp_path_factory.mktemp("sqlite"))


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.integration)])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Database:
    """A fresh database. Tests with this fixture run once for each backend."""
    from tests.backends import sqlite_copy

    if request.param == "sqlite":
        return sqlite_copy(request.getfixturevalue("sqlite_template"), tmp_path)
    fresh: Database = request.getfixturevalue("postgres_server").fresh_database()
    return fresh


@pytest.fixture
def lab(database: Database) -> Iterator[StoreLab]:
    """An event loop with stores on a fresh database, for each backend."""
    from tests.backends import StoreLab

    lab = StoreLab(database)
    yield lab
    lab.close()


@pytest.fixture(scope="module")
def zone(request: pytest.FixtureRequest) -> Iterator[str]:
    """Set the machine's time zone while a module's tests run."""
    with machine_in(request.param):
        yield request.param


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run tests of modules about times once per zone; only fast ones, because servers and Spark have their own
    clocks.
    """
    path = Path(metafunc.module.__file__ or "")
    marks = {mark.name for mark in metafunc.definition.iter_markers()}
    if path.is_relative_to(_HERE) and is_zoned(path.relative_to(_HERE)) and not marks & {"integration", "spark"}:
        metafunc.fixturenames.insert(0, "zone")
        metafunc.parametrize("zone", ZONES, indirect=True, scope="module")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add options: a sample of the tests, as `make test` takes, and times of folders, as `make test-full` prints."""
    parser.addoption("--sampled", action="store_true", help="of what is large, a part; the commit says which")
    parser.addoption("--few", action="store_true", help=f"one module of {FEW}; others are not imported")
    parser.addoption("--times", action="store_true", help="print how long the tests of each folder took together")
    parser.addoption("--part", type=int, default=None, help=f"the part, 0 to {PARTS - 1}, instead of the commit's")


def pytest_configure(config: pytest.Config) -> None:
    """Choose the sample's part once, for all processes of a run."""
    if (config.option.sampled or config.option.few) and config.option.part is None:
        config.option.part = part_of_commit(_HERE)


def pytest_report_header(config: pytest.Config) -> str:
    """Print which part runs, so that a failure can be reproduced."""
    return f"sampled: part {config.option.part} of 0 to {PARTS - 1}" if config.option.sampled else ""


def pytest_sessionstart(session: pytest.Session) -> None:
    """Let a terminated run stop its servers and databases, like an interrupted one."""

    def stop(*_: object) -> None:
        session.shouldstop = "told to end"  # if the interrupt is lost, as in a destructor, the run ends after this test
        raise KeyboardInterrupt

    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, stop)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection() -> Iterator[object]:
    """Disable the garbage collector during collection, and freeze the collected objects.

    Modules and tests are a million objects that live until the end of the process. During their creation the collector
    walks them 27 times, which is a third of the CPU; later each walk takes 0.7 s.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave out test modules that import code of a room that is not installed, and folders whose fixtures do; with
    `--few`, most modules.
    """
    if config.option.few and collection_path.match("test_*.py"):
        module = collection_path.relative_to(_HERE.parent).as_posix()
        if not is_of_few(module, config.option.part):
            return True
    fixtures = collection_path / "conftest.py"
    module = fixtures if fixtures.is_file() else collection_path
    if (module is fixtures or module.match("test_*.py")) and lacks_room(module):
        return True
    return None


@pytest.hookimpl(wrapper=True, trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> Iterator[None]:
    """Mark the tests that start servers or Spark, by folder or by fixtures; leave out those of rooms that are not
    installed; then take the sample, if requested.

    The sample is taken from the tests that other options (`-k`, `-m`) leave.
    """
    for item in items:
        if _SPARK_FIXTURES & set(getattr(item, "fixturenames", ())):
            item.add_marker("spark")
        folder = item.path.relative_to(_HERE).parts[0] if item.path.is_relative_to(_HERE) else ""
        for mark, folders in _MARKS.items():
            if folder in folders:
                item.add_marker(mark)
    without_room = [
        item for item in items if not all(has_room(name) for mark in item.iter_markers("room") for name in mark.args)
    ]
    if without_room:
        items[:] = [item for item in items if item not in without_room]
        config.hook.pytest_deselected(items=without_room)
    yield
    if config.option.sampled:
        items[:], left_out = sample(items, config.option.part)
        config.hook.pytest_deselected(items=left_out)
    if getattr(config.option, "loadgroup", False):
        _put_long_first(items)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(call: pytest.CallInfo[None]) -> Iterator[object]:
    """Count a test that needs a room that is not installed apart from those that passed."""
    report = yield
    if call.excinfo is not None and isinstance(call.excinfo.value, MissingRoom):
        report.outcome, report.longrepr, report.needs_room = "skipped", None, True
    return report


def pytest_report_teststatus(report: pytest.TestReport) -> tuple[str, str, str] | None:
    """Name the tests that need a room that is not installed in the last line."""
    return ("need the room", "-", "NEEDS ROOM") if getattr(report, "needs_room", False) else None


def _put_long_first(items: list[pytest.Item]) -> None:
    """Order tests for several processes: Spark's group begins first, then heavy modules, so that none begins last.

    Raises UsageError for Spark in another module.
    """
    from tests.scheduling import needs_spark

    for item in items:
        if item.get_closest_marker("spark") is not None and not needs_spark(item.nodeid.partition("::")[0]):
            raise pytest.UsageError(f"{item.nodeid} needs Spark, which tests/scheduling.py does not see in its module")
    items.sort(
        key=lambda item: (not needs_spark(item.nodeid.partition("::")[0]), item.get_closest_marker("heavy") is None)
    )


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> LoadScopeScheduling | None:
    """Distribute the tests of `--dist loadgroup`: those with Spark to one process, all others by module."""
    if config.getvalue("dist") != "loadgroup":
        return None
    from tests.scheduling import ModulesAndSpark

    return ModulesAndSpark(config, log)


@pytest.fixture(scope="module", autouse=True)
def _absent_rooms(request: pytest.FixtureRequest) -> Iterator[None]:
    """Watch the clients of tests with real servers for requests to rooms that are not installed."""
    folder = request.path.relative_to(_HERE).parts[0] if request.path.is_relative_to(_HERE) else ""
    if folder in _MARKS["integration"] and not all(map(has_room, ALL_ROOMS)):
        with watched_clients():
            yield
    else:
        yield


@pytest.fixture(scope="module", autouse=True)
def _own_log() -> Iterator[None]:
    """Restore the process's log after a module, because a command may have set it to a stream that pytest closes."""
    root = logging.getLogger()
    handlers, level = [*root.handlers], root.level
    yield
    for handler in [each for each in root.handlers if each not in handlers]:
        root.removeHandler(handler)
    root.setLevel(level)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Print the seconds of each folder's tests with their fixtures, of all processes together, and the longest tests;
    `make test-full` asks for it.
    """
    if config.option.times:
        from tests.sampling import times_by_folder

        reports = [each for every in terminalreporter.stats.values() for each in every if hasattr(each, "duration")]
        terminalreporter.section("seconds by folder")
        for line in times_by_folder((each.nodeid, each.duration) for each in reports):
            terminalreporter.write_line(line)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Fail a run in which a test was skipped. No test may be skipped."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if reporter is not None and reporter.stats.get("skipped") and session.exitstatus == pytest.ExitCode.OK:
        reporter.write_line("a test was skipped: make it run everywhere, or take it out", red=True)
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_unconfigure() -> None:
    """Ignore interrupts from here on, because there is nothing left to stop."""
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
