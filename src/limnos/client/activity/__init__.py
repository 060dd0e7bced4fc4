# SPDX-License-Identifier: Apache-2.0
"""Calls about the audit, changes, lineage, webhooks, reports, runs, jobs and exports."""
