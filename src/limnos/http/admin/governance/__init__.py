"""Routes about the protection of objects and read restrictions.

May import `services` and the shared modules of `limnos.http` and `limnos.http.admin`.
"""
