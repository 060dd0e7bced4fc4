# SPDX-License-Identifier: Apache-2.0
"""Revisions of the schema: those of the release are Alembic's, and a start reads that of a store without Alembic."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

from alembic.script import ScriptDirectory

from limnos.store.backends import schema_revisions, upgrades
from limnos.store.backends.migrate import migrate
from limnos.store.backends.schema_revisions import current_revision, head_revision

_START = """
import sys
from pathlib import Path
from limnos.app.node_builder import build
from limnos.config.server import ServerSection
from limnos.config.settings import Settings
build(Settings(server=ServerSection(data=sys.argv[1])))
print(sorted({"alembic", "mako", "sqlalchemy"} & set(sys.modules)))
"""


def test_revisions_are_those_of_alembic() -> None:
    """The revisions that the names of files tell are those that Alembic finds, and their newest is Alembic's head."""
    scripts = ScriptDirectory.from_config(upgrades._config())

    assert list(schema_revisions._revisions()) == sorted(each.revision for each in scripts.walk_revisions())
    assert head_revision() == scripts.get_current_head()


def test_store_without_tables_has_no_revision(tmp_path: Path) -> None:
    """An empty file has no revision, and neither has a store whose migrations were undone."""
    path = str(tmp_path / "limnos.db")
    assert current_revision(path) is None
    migrate(path)
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("DELETE FROM alembic_version")

    assert current_revision(path) is None


def test_start_on_a_current_store_imports_no_migrations(tmp_path: Path) -> None:
    """The first start of a store imports Alembic and SQLAlchemy; a start on the migrated store imports neither."""

    def imported() -> str:
        result = subprocess.run(
            [sys.executable, "-c", _START, str(tmp_path / "data")], capture_output=True, text=True, check=True
        )
        return result.stdout.splitlines()[-1]

    assert imported() == "['alembic', 'mako', 'sqlalchemy']"
    assert imported() == "[]"


def test_restored_file_gets_its_journal_mode_by_a_migration(tmp_path: Path) -> None:
    """A current file that is not in WAL mode, such as a restored one, is in WAL mode after its migration."""
    path = str(tmp_path / "limnos.db")
    migrate(path)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA journal_mode = DELETE")

    assert migrate(path) == (head_revision(), head_revision())

    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
