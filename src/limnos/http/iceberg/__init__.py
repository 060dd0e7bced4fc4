# SPDX-License-Identifier: Apache-2.0
"""The Iceberg REST protocol: its routes, request and response bodies, and errors."""
