"""Table maintenance: what tables need, and operations that the server carries out.

May import `exchange` and the packages that `exchange` may import.
"""
