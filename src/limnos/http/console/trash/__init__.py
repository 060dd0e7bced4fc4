# SPDX-License-Identifier: Apache-2.0
"""The trash: pages that drop an object into it, list dropped objects and restore one.

May import `model`, `names`, `services` and the console's shared modules.
"""
