# SPDX-License-Identifier: Apache-2.0
"""The console's page of searches."""
