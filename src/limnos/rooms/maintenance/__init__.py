# SPDX-License-Identifier: Apache-2.0
"""Maintenance of tables: findings, policies, expiry, rewriting, orphan files."""
