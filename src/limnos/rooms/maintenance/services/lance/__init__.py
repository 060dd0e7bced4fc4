# SPDX-License-Identifier: Apache-2.0
"""Maintenance of Lance tables by the server's own worker processes: findings, operations, and their task.

Must not know Lance's library.
"""
