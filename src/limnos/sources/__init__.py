"""Connectors to external systems, credentials for object stores, and worker processes for Lance tables."""
