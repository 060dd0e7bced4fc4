"""The demo: real flights through a Spark pipeline into governed tables, then access rules applied to them.

Job: `make demo`, and `limnos demo` of a checkout. The wheel has no demo. It starts servers as a user would and uses
only their protocols.
"""
