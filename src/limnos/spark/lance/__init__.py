# SPDX-License-Identifier: Apache-2.0
"""Lance tables of a server in Spark: a data source in Python, without a jar."""
