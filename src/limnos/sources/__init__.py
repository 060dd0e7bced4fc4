"""Connectors to what lies outside of the store: libraries that read tables of other formats, in processes of their own."""
