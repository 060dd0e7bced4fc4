"""Pages about access: who may do what to an object and why, users, groups and roles, and changes of rights.

May import `access` (words of actions), `services`, `model`, `names` and the console's shared modules, but no page of
another package. Knows no rule: the services decide who may ask and who may change.
"""
