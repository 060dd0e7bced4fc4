"""Shared components of requests and background tasks: node services, the request view, permits and waiting.

May import the rooms below `services`.
"""
