"""Restricted files: a table's data files without the rows and values hidden from a restricted user.

Needs pyarrow and pyiceberg, so only worker processes import this package.
"""
