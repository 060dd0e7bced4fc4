"""Pure table formats: metadata documents in, metadata documents out.

May import `model` and lower rooms. Must not know HTTP, SQL, files or permissions.
"""
