"""The wheel in clean environments: each extra alone is sufficient for its purpose."""
