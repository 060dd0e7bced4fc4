"""Files of a table as somebody may see them whom read restrictions bind: rows left out, columns masked.

Needs pyarrow and pyiceberg, so only processes that do such work import this package.
"""
