# SPDX-License-Identifier: Apache-2.0
"""Removal of orphan files: files below a table's location that no metadata names."""
