# SPDX-License-Identifier: Apache-2.0
"""Comparison of the commands about access with the server's decisions, over random lakes."""
