# SPDX-License-Identifier: Apache-2.0
"""Statements over metadata and data: queries, writes, the interface to the engine, and compaction of datasets."""
