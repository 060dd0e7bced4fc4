# SPDX-License-Identifier: Apache-2.0
"""The loop that fills the index of words."""
