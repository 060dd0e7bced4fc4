# SPDX-License-Identifier: Apache-2.0
"""Commands about objects of the tree: list, create, describe, move, drop and restore; tables, Lance, exports and
records.
"""
