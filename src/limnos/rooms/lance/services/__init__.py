# SPDX-License-Identifier: Apache-2.0
"""Lance tables: their rows, versions, tags and files."""
