# SPDX-License-Identifier: Apache-2.0
"""Navigation of the console: its pages, which of them the caller may open, and links of the palette.

Imports as its modules do.
"""
