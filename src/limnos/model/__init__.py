# SPDX-License-Identifier: Apache-2.0
"""Frozen values that every package shares: entities, stored records, kinds, privileges, decisions, errors.

Must not know SQL, wire formats or policies.
"""
