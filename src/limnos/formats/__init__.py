"""Pure table formats: metadata documents in, metadata documents out.

May import `model` and below. Must not know HTTP, SQL, files or permissions.
"""
