# SPDX-License-Identifier: Apache-2.0
"""Search of objects by names, words, tags and owners."""
