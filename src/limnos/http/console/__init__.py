"""The console: pages for people, made by the server from templates.

Its handlers call services with the rights of the session's user, as every other protocol does. It has no rule and no
right of its own.
"""
