# SPDX-License-Identifier: Apache-2.0
"""Calls about the audit, changes, lineage, webhooks, reports, runs, jobs and exports.

May import `model`, `names`, the packages before it and the shared modules of `limnos.client`.
"""
