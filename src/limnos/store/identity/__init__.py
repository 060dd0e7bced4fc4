# SPDX-License-Identifier: Apache-2.0
"""Statements about principals: users, groups, roles, tokens, passwords and restrictions.

May import `model`, `names`, `limnos.store.objects` and the modules of `limnos.store` below `tx`. Must not know
backends.
"""
