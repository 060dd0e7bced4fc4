"""Commands about pipelines: check, plan, run, jobs, reports and lineage.

May import the shared modules of `limnos.cli`, the packages before it, and what they may import.
"""
