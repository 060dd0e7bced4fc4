"""One request to the query service: its session, the names that it uses, its errors, limits and results.

May import the packages before `sqlpp`.
"""
