# SPDX-License-Identifier: Apache-2.0
"""The revisions of the store's schema: of this release, and of a store.

Must not know Alembic, which takes as long to list the revisions as to run a migration: the name of a migration's file
begins with its revision, and revisions are ordered as text.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

from limnos.model.errors import LimnosError
from limnos.store.backends.direct_connection import CONNECT_S, direct_connection
from limnos.store.sql import Sql

VERSION_FOLDERS = [Path(__file__).parents[1] / "migrations" / "versions"]
_HAS_REVISION = Sql(
    "SELECT to_regclass('alembic_version') IS NOT NULL",
    on_sqlite="SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name = 'alembic_version'",
)
_REVISION = Sql("SELECT version_num FROM alembic_version")


class WrongSchema(LimnosError):
    """The store has the schema of a newer release, or of a version before the first release."""

    code = "wrong-schema"


@cache
def _revisions() -> tuple[str, ...]:
    """Return all revisions of this release, the oldest first."""
    files = [file for folder in VERSION_FOLDERS for file in folder.glob("[0-9]*_*.py")]
    return tuple(sorted(file.name.partition("_")[0] for file in files))


def head_revision() -> str:
    """Return the schema revision of this release."""
    return _revisions()[-1]


def current_revision(database: str, *, connect_s: int = CONNECT_S) -> str | None:
    """Return the schema revision of a store, or None for an empty database."""
    with direct_connection(database, connect_s=connect_s) as connection:
        if not connection.value(_HAS_REVISION):
            return None
        revision: str | None = connection.value(_REVISION)
        return revision


def require_known(revision: str | None) -> None:
    """Raise WrongSchema for the revision of a store that this release cannot upgrade."""
    if revision is None or revision in _revisions():
        return
    if revision < _revisions()[0]:
        raise WrongSchema(
            f"The store has schema {revision}, made by a version before release 0.1.0, which no release upgrades: with"
            " that version, export each metalake ('limnos export NAME > NAME.export'), then start with an empty store,"
            " and import them ('limnos import NAME.export --into NAME')"
        )
    raise WrongSchema(
        f"The store has schema {revision}, made by a newer release; this one supports {head_revision()}: start the"
        " newer one"
    )
