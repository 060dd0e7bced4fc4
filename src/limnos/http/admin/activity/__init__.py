# SPDX-License-Identifier: Apache-2.0
"""Routes about the audit, changes, webhooks and reports.

Imports as its modules do.
"""
