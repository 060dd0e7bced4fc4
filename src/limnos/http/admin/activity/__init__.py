"""Routes about the audit, changes, lineage, webhooks, reports, runs, pipelines, jobs and exports.

May import `services` and the shared modules of `limnos.http` and `limnos.http.admin`.
"""
