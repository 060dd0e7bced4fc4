"""Unmodified engines of others against a running server."""
