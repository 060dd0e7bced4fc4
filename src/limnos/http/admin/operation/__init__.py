"""Routes about storage and background tasks.

May import `services` and the shared modules of `limnos.http` and `limnos.http.admin`.
"""
