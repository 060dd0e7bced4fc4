# SPDX-License-Identifier: Apache-2.0
"""Layouts of directories of Lance tables, and expressions in requests."""
