"""The engine of SQL++: a process of its own that works statements over data out on Spark.

May import `sqlpp`, `spark`, `client`, `names` and `model`; PySpark is imported where it is used. Must not know the server's rooms: it reaches a server by
its protocols only, with the credential of each statement, and is told what to do by plans. No text of a user reaches Spark.
"""
