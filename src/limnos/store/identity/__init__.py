# SPDX-License-Identifier: Apache-2.0
"""Statements about principals: users, groups, roles, tokens, passwords and restrictions.

Must not know backends.
"""
