# SPDX-License-Identifier: Apache-2.0
"""Alembic's entry point: runs on the connection that `store.backends.migrate` passes, inside its lock.

Must not know servers.
"""

from __future__ import annotations

from alembic import context

from limnos.store.schema import metadata

context.configure(connection=context.config.attributes["connection"], target_metadata=metadata, render_as_batch=True)
with context.begin_transaction():
    context.run_migrations()
