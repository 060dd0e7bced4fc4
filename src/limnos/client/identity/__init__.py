"""Calls about users, groups, roles, owners, tokens, logins and service accounts.

May import `model`, `names`, `limnos.client.catalog` and the shared modules of `limnos.client`.
"""
