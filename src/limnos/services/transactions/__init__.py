# SPDX-License-Identifier: Apache-2.0
"""Transactions: several operations that are executed atomically."""
