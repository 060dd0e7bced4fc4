"""How requests of a node wait for one another: queues per key, coalescing, bounded concurrency, and waits for commits.

May import the rooms below `services`.
"""
