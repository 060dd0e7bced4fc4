# SPDX-License-Identifier: Apache-2.0
"""The mode of authentication without the setting: of a new store, and of one that an earlier release served."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Literal

import pytest

from limnos.app.authentication_mode import with_authentication
from limnos.app.node_builder import database_of
from limnos.app.server_checks import check
from limnos.config.access import AccessSection
from limnos.config.server import ServerSection
from limnos.config.settings import DatabaseSection, Settings
from limnos.model.errors import CannotStart
from limnos.store.backends.direct_connection import direct_connection
from limnos.store.backends.migrate import migrate
from limnos.store.sql import Sql

Mode = Literal["simple", "token"]


def settings_of(data: Path, mode: Mode | None = None, *, database: str | None = None, **server: object) -> Settings:
    """Return settings with a mode, or without one."""
    return Settings(
        server=ServerSection(data=str(data), **server),  # type: ignore[arg-type]
        access=AccessSection(authentication=mode),
        database=DatabaseSection.model_validate({"url": database}),
    )


def store_of_earlier_release(database: str, *, was_served: bool) -> None:
    """Create a store as a version without the setting left it: before its first start, or after a change."""
    migrate(database)
    if was_served:
        with direct_connection(database) as connection:
            connection.rows(Sql("UPDATE clock SET revision = 1 WHERE zone = 0"), {})
            connection.rows(Sql("UPDATE store SET authentication = 'simple'"), {})


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.integration)])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> str | None:
    """The URL of an empty database; None for a file."""
    return None if request.param == "sqlite" else str(request.getfixturevalue("postgres_server").empty_database())


def mode_of(settings: Settings) -> str | None:
    """Migrate the settings' store, and return the mode of a server on it."""
    migrate(database_of(settings))
    return with_authentication(settings, database_of(settings)).access.authentication


def test_new_store_takes_tokens_only(tmp_path: Path, database: str | None) -> None:
    """A new store takes tokens only, unless the setting says otherwise."""
    assert mode_of(settings_of(tmp_path, database=database)) == "token"
    assert mode_of(settings_of(tmp_path, "simple", database=database)) == "simple"


@pytest.mark.parametrize("was_served", [False, True])
def test_upgraded_store_keeps_its_mode(tmp_path: Path, database: str | None, was_served: bool) -> None:
    """A store that an earlier release served keeps `simple`, unless the setting says otherwise. One that it only
    created is new.
    """
    settings = settings_of(tmp_path, database=database)
    store_of_earlier_release(database_of(settings), was_served=was_served)

    assert mode_of(settings) == ("simple" if was_served else "token")
    assert mode_of(settings_of(tmp_path, "token", database=database)) == "token"


def test_upgraded_store_is_not_served_to_other_machines(tmp_path: Path) -> None:
    """A server that would believe names from other machines because of its store does not start; one with the flag
    does.
    """
    settings = settings_of(tmp_path, listen="0.0.0.0:0")
    store_of_earlier_release(database_of(settings), was_served=True)
    migrate(database_of(settings))

    with pytest.raises(CannotStart, match="would not be authenticated") as refused:
        with_authentication(settings, database_of(settings))
    assert "access.authentication to token" in refused.value.advice
    trusting = settings_of(tmp_path, listen="0.0.0.0:0", insecure_listen=True)
    assert mode_of(trusting) == "simple"


def test_server_check_warns_of_callers_without_proof(tmp_path: Path) -> None:
    """`server check` warns if callers are not authenticated, by the setting or by the store, and not otherwise."""
    migrate(database_of(settings_of(tmp_path)))
    with closing(sqlite3.connect(database_of(settings_of(tmp_path)))) as connection:
        assert warnings(settings_of(tmp_path, "simple")) == ["Callers are not authenticated"]
        assert warnings(settings_of(tmp_path)) == []
        connection.execute("UPDATE store SET authentication = 'simple'")
        connection.commit()

    assert warnings(settings_of(tmp_path)) == ["Callers are not authenticated"]
    assert warnings(settings_of(tmp_path, "token")) == []


def warnings(settings: Settings) -> list[str]:
    """Return the messages of `server check` about authentication."""
    listening = settings.model_copy(update={"server": settings.server.model_copy(update={"listen": "127.0.0.1:0"})})
    return [each.message for each in check(listening) if "authenticated" in each.message]
