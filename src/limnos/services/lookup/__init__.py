# SPDX-License-Identifier: Apache-2.0
"""Lookup of objects by name or id, and selection of the objects visible to a caller."""
