# SPDX-License-Identifier: Apache-2.0
"""Frozen values that every package shares: entities, stored records, kinds, privileges, decisions, errors.

May import nothing but `names`, the standard library, msgspec and, for stored records, Protobuf. Must not know SQL, wire
formats or policies.
"""
