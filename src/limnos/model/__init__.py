"""Frozen values that every package shares: entities, privileges, decisions, errors.

May import nothing but `names`, the standard library and msgspec. Must not know SQL, wire formats or policies.
"""
