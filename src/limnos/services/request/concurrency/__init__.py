"""Concurrency control among the requests of a node: queues per key, coalescing, bounded concurrency, and waits for
commits.

May import the layers below `services`.
"""
