"""Connectors to systems outside of the store, and libraries that read tables of other formats in their own
processes.
"""
