# SPDX-License-Identifier: Apache-2.0
"""Commands about users, groups, roles, grants, owners, access, tokens, logins, secrets and the console.

May import the shared modules of `limnos.cli`, `limnos.cli.catalog`, and the modules that those may import.
"""
