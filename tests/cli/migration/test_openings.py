# SPDX-License-Identifier: Apache-2.0
"""Sources of a migration whose library is not installed, or whose address is none."""

from __future__ import annotations

import sys

import pytest

from limnos.cli.migration.migrate import SourceKind
from limnos.cli.migration.openings import POINTER_KINDS, open_source
from tests.cli.conftest import Run
from tests.client.fake import FakeServer

MODULES = {"jdbc-catalog": "sqlalchemy", "hive": "hive_metastore", "glue": "botocore"}


@pytest.mark.parametrize("kind", sorted(POINTER_KINDS))
def test_missing_library_is_named_with_its_extra(
    fake: FakeServer, limnos: Run, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A kind whose library is missing says what to install, and nothing was asked of the server."""
    module = MODULES[kind]
    for name in [each for each in sys.modules if each.partition(".")[0] == module or "sources.catalogs." in each]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, module, None)

    done = limnos("migrate", "from", kind, "x", "--to", "main")

    assert done.code == 1
    assert f"'{module}" in done.err
    assert POINTER_KINDS[kind].extras in done.err
    assert fake.asked == []


@pytest.mark.parametrize("kind", sorted(POINTER_KINDS))
def test_wrong_address_is_a_wrong_command(fake: FakeServer, limnos: Run, kind: str) -> None:
    """An address of another system is answered as a wrong command, with its password left out."""
    done = limnos("migrate", "from", kind, "mysql://ana:s3cret-one@db/lake", "--to", "main")

    assert done.code == 2
    assert "s3cret-one" not in done.err


def test_each_kind_can_be_opened() -> None:
    """Every kind that the command takes has a way to be opened."""
    assert set(POINTER_KINDS) < set(SourceKind.__args__)  # type: ignore[attr-defined]
    assert callable(open_source)


@pytest.mark.parametrize(
    "word, kind",
    [
        ("postgres", "jdbc-catalog"),
        ("jdbc-catlog", "jdbc-catalog"),
        ("hms", "hive"),
        ("aws", "glue"),
        ("polaris", "iceberg-rest"),
    ],
)
def test_other_word_of_a_kind_is_answered_by_the_kind(limnos: Run, word: str, kind: str) -> None:
    """A slip or another word for a kind is answered by the command with the kind."""
    done = limnos("migrate", "from", word, "x", "--to", "main")

    assert done.code == 2
    assert f"'limnos migrate from {kind} x --to main" in done.err
