"""PyIceberg's own integration tests against a running server."""
