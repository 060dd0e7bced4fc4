# SPDX-License-Identifier: Apache-2.0
"""Pages for operators of the lake: jobs, tasks, webhooks, service accounts, storage checks, nodes and settings.

Imports as its modules do, but no page of another package.
"""
