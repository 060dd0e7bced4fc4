# SPDX-License-Identifier: Apache-2.0
"""Statements about activity: audit, change feed, webhooks, lineage, runs, tasks, jobs and locks of statements.

May import `model`, `names`, `sqlpp` (the lock modes), `limnos.store.objects`, `limnos.store.identity` and the modules
of `limnos.store` below `tx`.
"""
