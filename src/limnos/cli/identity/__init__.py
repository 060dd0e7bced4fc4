"""Commands about users, groups, roles, grants, owners, tokens, logins and secrets.

May import the shared modules of `limnos.cli`, `limnos.cli.catalog`, and the modules that those may import.
"""
