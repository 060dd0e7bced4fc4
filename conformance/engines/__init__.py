"""Unmodified third-party engines against a running server."""
