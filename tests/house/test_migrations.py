# SPDX-License-Identifier: Apache-2.0
"""Migrations form one sequence: no two of them follow the same one."""

from __future__ import annotations

from pathlib import Path

from alembic.config import Config
from alembic.script import ScriptDirectory

import limnos.store


def test_migrations_form_one_chain() -> None:
    """There is one first and one last migration."""
    config = Config()
    config.set_main_option("script_location", str(Path(limnos.store.__file__).parent / "migrations"))
    line = ScriptDirectory.from_config(config)

    assert (len(line.get_bases()), len(line.get_heads())) == (1, 1)
