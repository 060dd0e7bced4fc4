"""Routes about users, groups, tokens, sign-in, service accounts and explanations of decisions.

May import `services` and the shared modules of `limnos.http` and `limnos.http.admin`.
"""
