# SPDX-License-Identifier: Apache-2.0
"""PyIceberg's own integration tests against a running server."""
