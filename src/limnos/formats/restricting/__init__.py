"""Restricted files: a table's data files without the rows and values that a restricted user may not see.

Needs pyarrow and pyiceberg, so only worker processes import this package.
"""
