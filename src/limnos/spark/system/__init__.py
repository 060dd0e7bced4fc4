# SPDX-License-Identifier: Apache-2.0
"""The tree of a metalake as tables in Spark."""
