# SPDX-License-Identifier: Apache-2.0
"""Pages about access: the rights on an object with their reasons, users, groups and roles, and changes of rights.

The services make all access decisions.
"""
