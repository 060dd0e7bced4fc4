# SPDX-License-Identifier: Apache-2.0
"""Limnos: a metadata lake, the catalog server for lakehouse data."""

__version__ = "0.1.0"
