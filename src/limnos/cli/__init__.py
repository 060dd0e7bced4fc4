# SPDX-License-Identifier: Apache-2.0
"""The command line: `limnos <noun> <verb> [ids] [--flags]`.

The server's and Spark's packages are imported only inside the commands that need them, because the base install lacks
their libraries. It has no business rules: a command sends requests and shows the responses.
"""
