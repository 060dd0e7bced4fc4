# SPDX-License-Identifier: Apache-2.0
"""Pages of tags and policies: lists, the objects that have one, and forms that create, attach and detach them.

May import `services`, `model`, `names` and the console's shared modules, but no page of another package.
"""
