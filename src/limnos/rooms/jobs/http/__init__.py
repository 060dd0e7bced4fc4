# SPDX-License-Identifier: Apache-2.0
"""The routes of jobs in the own API."""
