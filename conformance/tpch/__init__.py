# SPDX-License-Identifier: Apache-2.0
"""TPC-H through a declared pipeline, compared with plain Spark SQL."""
