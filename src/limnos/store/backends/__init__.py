# SPDX-License-Identifier: Apache-2.0
"""The backends, SQLite and PostgreSQL: connections, queues of mutations, migration, backup."""

APPLICATION = "limnos"
"""The name of a server's sessions in PostgreSQL's `pg_stat_activity`, unless the store's URL sets another one."""
