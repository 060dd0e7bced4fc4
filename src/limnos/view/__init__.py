# SPDX-License-Identifier: Apache-2.0
"""The in-memory view: cached facts of the store at known revisions, and the freshness gate that keeps them up to date.

Must not know policies or wire formats. "Rule n" in comments means the numbered rules of docs/explain/consistency.md.
"""
