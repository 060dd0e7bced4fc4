# SPDX-License-Identifier: Apache-2.0
"""The SQL++ engine: a separate process that executes statements over data on Spark.

Must not know the server's packages: it receives plans from the server and reads tables through the server's protocols,
with the credential of each statement. No text that a user wrote is passed to Spark as SQL.
"""
