"""Routes about objects of the tree: moves, nesting, checks of tables, transactions and the trash.

May import `services` and the shared modules of `limnos.http` and `limnos.http.admin`.
"""
