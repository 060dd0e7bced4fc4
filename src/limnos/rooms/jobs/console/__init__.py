# SPDX-License-Identifier: Apache-2.0
"""The console's pages of jobs."""
