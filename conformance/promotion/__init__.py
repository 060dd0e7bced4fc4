# SPDX-License-Identifier: Apache-2.0
"""TPC-H built in an environment and promoted, beside readers of production."""
