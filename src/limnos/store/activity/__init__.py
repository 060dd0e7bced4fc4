"""Statements about activity: audit, change feed, webhooks, lineage, runs, tasks, jobs and locks of statements.

May import `model`, `limnos.store.objects`, `limnos.store.identity` and the modules of `limnos.store` below `tx`.
"""
