# SPDX-License-Identifier: Apache-2.0
"""Locks of statements: requested, granted and released, and exclusive access for drops."""
