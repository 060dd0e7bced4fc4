# SPDX-License-Identifier: Apache-2.0
"""Routes about storage, maintenance of tables, background tasks, nodes and settings.

Imports as its modules do.
"""
