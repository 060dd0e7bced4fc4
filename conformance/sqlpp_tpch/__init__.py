# SPDX-License-Identifier: Apache-2.0
"""TPC-H in SQL++: results and times of the 22 queries, compared with Spark SQL on the same tables."""
