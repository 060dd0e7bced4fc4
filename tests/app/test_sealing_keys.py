# SPDX-License-Identifier: Apache-2.0
"""Missing encryption keys: check, backup, restore and migrate report them before secrets are lost."""

from __future__ import annotations

import base64
import os
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from limnos.app.backups import backup, restore
from limnos.app.sealing_keys import missing_keys
from limnos.app.server import migrate
from limnos.app.server_checks import check
from limnos.config import Settings
from limnos.config.server import ServerSection
from limnos.config.storage import StorageSection
from limnos.model.errors import StartWarning
from limnos.services.request.secret_sealing import SealingKeys
from limnos.store.activity.webhooks import SECRET_PROPERTY
from limnos.store.backends.backups import BadBackup
from limnos.store.backends.sealed_keys import KeyUse, sealed_keys
from tests.client.test_session import free_port

KEY_FILE = "secrets.key"


def settings_of(data: Path, **storage: object) -> Settings:
    """Return settings of a server on SQLite."""
    return Settings(
        server=ServerSection(data=str(data), listen=f"127.0.0.1:{free_port()}"),
        storage=StorageSection.model_validate(storage),
    )


def store_with_a_secret(data: Path) -> str:
    """Create a store with a sealed secret, and its key file. Returns the key's id."""
    migrate(settings_of(data))
    keys = SealingKeys(file=data / KEY_FILE, makes=True)
    keys.begin()
    row = {
        "secret": keys.sealed_text(SECRET_PROPERTY, "hunter2"),
        "user_name": "ana",
        "url": "https://h",
        "position": "",
        "holder": "",
    }
    with closing(sqlite3.connect(data / "limnos.db")) as file, file:
        names = [each[1] for each in file.execute("PRAGMA table_info(webhook)")]
        file.execute(
            f"INSERT INTO webhook VALUES ({', '.join('?' * len(names))})", [row.get(name, 0) for name in names]
        )
    assert keys.current is not None
    return keys.current


def test_ids_of_keys_are_read_from_a_store(tmp_path: Path) -> None:
    """Each key is listed with the numbers of catalogs and webhooks whose secrets use it. A store without secrets has
    none.
    """
    key = store_with_a_secret(tmp_path / "data")
    migrate(settings_of(tmp_path / "empty"))

    assert sealed_keys(str(tmp_path / "data" / "limnos.db")) == {key: KeyUse(catalogs=0, webhooks=1)}
    assert sealed_keys(str(tmp_path / "empty" / "limnos.db")) == {}


def test_check_reports_a_missing_key(tmp_path: Path) -> None:
    """Without the key file the check names key and file, which prevents no start, and it creates no key. With the file
    it reports nothing.
    """
    data = tmp_path / "data"
    key = store_with_a_secret(data)
    assert check(settings_of(data)) == []
    (data / KEY_FILE).rename(tmp_path / "kept")

    (warning,) = check(settings_of(data))

    assert isinstance(warning, StartWarning)
    assert key in warning.why
    assert str(data / KEY_FILE) in warning.advice
    assert not (data / KEY_FILE).exists()


def test_keys_of_settings_and_other_files_are_used(tmp_path: Path) -> None:
    """Keys from a setting, or from another file that a setting names, count like those in the server's own file."""
    data = tmp_path / "data"
    key = store_with_a_secret(data)
    file = data / KEY_FILE
    file.rename(tmp_path / "kept")
    text = (tmp_path / "kept").read_text().splitlines()[-1]
    other = base64.b64encode(os.urandom(32)).decode()
    database = str(data / "limnos.db")

    assert missing_keys(settings_of(data, keys=text), database) == {}
    assert missing_keys(settings_of(data, key_file=str(tmp_path / "kept")), database) == {}
    assert set(missing_keys(settings_of(data, keys=other), database)) == {key}


def test_a_backup_names_the_file_of_keys(tmp_path: Path) -> None:
    """The output of a backup names the key file that must be saved, too. For a store without secrets it does not."""
    data = tmp_path / "data"
    key = store_with_a_secret(data)
    migrate(settings_of(tmp_path / "empty"))

    report = backup(settings_of(data), tmp_path / "one")

    assert str(data / KEY_FILE) in report
    assert key in report
    assert KEY_FILE not in backup(settings_of(tmp_path / "empty"), tmp_path / "two")
    (data / KEY_FILE).unlink()
    assert f"this server does not have either: {key}" in backup(settings_of(data), tmp_path / "three")


def test_a_restore_without_the_keys_is_refused(tmp_path: Path) -> None:
    """A restore without the keys is refused with their ids and the path of the file, and changes nothing. With the
    file, or with the option to continue, it succeeds.
    """
    key = store_with_a_secret(tmp_path / "data")
    backup(settings_of(tmp_path / "data"), tmp_path / "copy")
    fresh = tmp_path / "fresh"
    fresh.mkdir(mode=0o700)
    settings = settings_of(fresh)

    with pytest.raises(BadBackup) as refused:
        restore(settings, tmp_path / "copy", keeps_tokens=False, vouched=False)

    assert key in str(refused.value)
    assert str(fresh / KEY_FILE) in str(refused.value)
    assert list(fresh.iterdir()) == []
    report = restore(settings, tmp_path / "copy", keeps_tokens=False, vouched=False, without_keys=True)
    assert key in report
    (tmp_path / "data" / KEY_FILE).rename(fresh / KEY_FILE)
    assert key not in restore(settings, tmp_path / "copy", keeps_tokens=False, vouched=False)


def test_migration_of_restored_store_names_missing_keys(tmp_path: Path) -> None:
    """`migrate --restored`, which is used after a restore of PostgreSQL, names missing keys."""
    data = tmp_path / "data"
    key = store_with_a_secret(data)
    assert key not in migrate(settings_of(data), restored=True)
    (data / KEY_FILE).unlink()

    assert key in migrate(settings_of(data), restored=True)
