# SPDX-License-Identifier: Apache-2.0
"""Routes about the protection of objects and read restrictions.

Imports as its modules do.
"""
