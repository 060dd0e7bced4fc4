# SPDX-License-Identifier: Apache-2.0
"""The composition root: builds a server from settings (store, view, services, HTTP) and runs its processes.

Only the command line imports this package.
"""
