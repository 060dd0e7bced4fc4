# SPDX-License-Identifier: Apache-2.0
"""Routes about the audit, changes, lineage, webhooks, reports, runs, pipelines, jobs, exports and imports.

Imports as its modules do.
"""
