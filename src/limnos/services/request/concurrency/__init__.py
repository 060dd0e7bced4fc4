# SPDX-License-Identifier: Apache-2.0
"""Coordination of the requests of a node: per-key queues, request coalescing, bounded concurrency, and waits for
commits.
"""
