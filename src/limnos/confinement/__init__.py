# SPDX-License-Identifier: Apache-2.0
"""Confinement of processes that run others' programs, plans or files: namespaces of Linux, and Landlock behind them.

Knows Linux. Must not know the work of the confined processes.
"""
