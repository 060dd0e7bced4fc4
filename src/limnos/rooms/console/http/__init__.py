# SPDX-License-Identifier: Apache-2.0
"""The console: pages for people, rendered by the server from templates.

Its handlers call services with the rights of the session's user, as every other protocol does. It has no business rules
and no rights of its own.
"""
