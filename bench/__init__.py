# SPDX-License-Identifier: Apache-2.0
"""Benchmarks of a running server: CPU per request, rates and latencies; see docs/reference/benchmarks.md."""
