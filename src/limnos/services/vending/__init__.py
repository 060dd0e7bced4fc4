"""Credentials and signatures for files of objects. May import `governance` and what that may import."""
