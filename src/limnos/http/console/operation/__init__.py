"""Pages for operators of the lake: jobs, tasks of the server, and webhooks.

May import `services`, `model`, `names` and the console's shared modules, but no page of another package.
"""
