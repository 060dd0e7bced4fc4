# SPDX-License-Identifier: Apache-2.0
"""Statements that export and import a metalake."""
