# SPDX-License-Identifier: Apache-2.0
"""The Spark part of pipelines: only this package imports PySpark, and only when it is needed."""
