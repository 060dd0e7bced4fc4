"""Calls about the server: storage checks, tasks and SQL++ statements.

May import `model`, `names`, the packages before it and the shared modules of `limnos.client`.
"""
