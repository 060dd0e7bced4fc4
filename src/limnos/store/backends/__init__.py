# SPDX-License-Identifier: Apache-2.0
"""The backends, SQLite and PostgreSQL: connections, queues of mutations, migration, backup."""
