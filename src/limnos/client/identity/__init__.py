# SPDX-License-Identifier: Apache-2.0
"""Calls about users, groups, roles, owners, access, tokens, logins and service accounts."""
