# SPDX-License-Identifier: Apache-2.0
"""The route of searches in the own API."""
