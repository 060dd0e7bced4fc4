"""Shared machinery of a request: node services, the request view, permits and waiting.

May import the rooms below `services`.
"""
