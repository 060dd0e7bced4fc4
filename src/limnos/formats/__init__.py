"""Pure functions over table formats: they take and return metadata documents.

May import `model` and lower layers. Must not know HTTP, SQL, files or permissions.
"""
