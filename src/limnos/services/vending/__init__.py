# SPDX-License-Identifier: Apache-2.0
"""Credential vending and request signing for the files of objects."""
