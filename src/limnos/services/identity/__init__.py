# SPDX-License-Identifier: Apache-2.0
"""Users, groups, roles, grants, owners and signing in.

May import `catalog` and the packages that `catalog` may import.
"""
