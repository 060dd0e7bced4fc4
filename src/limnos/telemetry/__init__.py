# SPDX-License-Identifier: Apache-2.0
"""Logs, metrics and request ids of the process.

Must not know the events and metrics: layers above define their own.
"""
