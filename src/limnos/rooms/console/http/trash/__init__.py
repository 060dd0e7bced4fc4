# SPDX-License-Identifier: Apache-2.0
"""The trash: pages that drop an object into it, list dropped objects and restore one."""
