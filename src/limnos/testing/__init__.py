# SPDX-License-Identifier: Apache-2.0
"""Suites of tests for parts that other packages bring."""
