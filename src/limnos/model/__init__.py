"""Frozen values that every room shares: entities, privileges, decisions, errors.

May import nothing but `names`, the standard library and msgspec. Knows no SQL, no wire format and no policy.
"""
