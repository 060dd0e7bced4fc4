"""Other engines as they come, against a running server."""
