# SPDX-License-Identifier: Apache-2.0
"""Random SQL++ queries: Spark's and DuckDB's results compared with the evaluator's."""
