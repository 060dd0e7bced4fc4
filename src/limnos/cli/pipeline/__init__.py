# SPDX-License-Identifier: Apache-2.0
"""Commands about pipelines: check, plan, run, jobs, reports and lineage.

May import the shared modules of `limnos.cli`, the packages before it, and the modules that those may import.
"""
