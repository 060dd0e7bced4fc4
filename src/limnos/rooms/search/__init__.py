# SPDX-License-Identifier: Apache-2.0
"""Searches of objects by name, words, tag and owner, and the index of words."""
