# SPDX-License-Identifier: Apache-2.0
"""The demo: real flights through a Spark pipeline into governed tables, then access rules applied to them.

Job: `make demo` of a checkout, and `limnos demo`, also of an installed wheel, which has a copy. It starts servers as a
user would and uses only their protocols.
"""
