# SPDX-License-Identifier: Apache-2.0
"""Statements about activity: audit, change feed, webhooks, lineage, runs, tasks, jobs and locks of statements."""
