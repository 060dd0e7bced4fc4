# SPDX-License-Identifier: Apache-2.0
"""Users, groups, roles, grants, owners and signing in."""
