# SPDX-License-Identifier: Apache-2.0
"""The long checks: every round on two nodes, every fault at every boundary, long sequences for freshness."""
