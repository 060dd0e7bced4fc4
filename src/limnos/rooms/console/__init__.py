# SPDX-License-Identifier: Apache-2.0
"""The web console under `/console`."""
