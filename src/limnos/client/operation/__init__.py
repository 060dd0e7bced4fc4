# SPDX-License-Identifier: Apache-2.0
"""Calls about the server: storage, nodes, maintenance, tasks and SQL++ statements."""
