"""Pure functions that build, check and convert table metadata, file contents and export records.

May import `model` and lower layers. Must not know HTTP, SQL, files or permissions.
"""
