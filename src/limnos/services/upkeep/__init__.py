"""Background work: tasks, trash, janitors, and keys of secrets.

May import `exchange` and the packages that it may import.
"""
