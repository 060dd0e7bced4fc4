# SPDX-License-Identifier: Apache-2.0
"""Maintenance of Lance tables by the server's own worker processes: findings, operations, and their task.

May import `maintenance` and the packages that it may import. Must not know Lance's library.
"""
