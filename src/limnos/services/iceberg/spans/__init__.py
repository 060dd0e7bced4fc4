# SPDX-License-Identifier: Apache-2.0
"""Spans of restricted files: their names, the writing and the check of their files, and executors that write them."""
