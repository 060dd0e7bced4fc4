# SPDX-License-Identifier: Apache-2.0
"""The part of the console that the server sets up: its public URL and its rooms."""
