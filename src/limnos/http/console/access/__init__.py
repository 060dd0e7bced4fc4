# SPDX-License-Identifier: Apache-2.0
"""Pages about access: the rights on an object with their reasons, users, groups and roles, and changes of rights.

May import `access` (actions), `services`, `model`, `names` and the console's shared modules, but no page of
another package. The services make all access decisions.
"""
