# SPDX-License-Identifier: Apache-2.0
"""A room of another package: a route, a setting, a table, a task, a loop, a client resource and a command."""
