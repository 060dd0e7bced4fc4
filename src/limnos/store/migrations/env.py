# SPDX-License-Identifier: Apache-2.0
"""Alembic's entry point: runs on the connection that `store.backends.upgrades` passes, inside its lock.

Must not know servers.
"""

from __future__ import annotations

from alembic import context

from limnos.store.schema import metadata

attributes = context.config.attributes
context.configure(
    connection=attributes["connection"],
    target_metadata=metadata,
    render_as_batch=True,
    version_table=attributes.get("version_table", "alembic_version"),
)
with context.begin_transaction():
    context.run_migrations()
