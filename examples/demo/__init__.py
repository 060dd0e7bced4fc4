"""The demo: real flights through a Spark pipeline into governed tables, then access rules at work.

Job: `make demo`, and `limnos demo` of a checkout. The wheel has no demo. It starts servers as a user would and
talks to them by their protocols only.
"""
