# SPDX-License-Identifier: Apache-2.0
"""Shared components of requests and background tasks: node services, the request view, permits and waiting."""
