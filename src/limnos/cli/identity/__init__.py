# SPDX-License-Identifier: Apache-2.0
"""Commands about users, groups, roles, grants, owners, access, tokens, logins and secrets."""
