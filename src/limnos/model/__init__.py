"""Frozen values that every room shares: entities, privileges, decisions, errors.

May import nothing but `names` and the standard library (and msgspec). Knows no SQL, no wire format, no policy.
"""
