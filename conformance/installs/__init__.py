"""The wheel in clean environments: each extra alone does what it is for."""
