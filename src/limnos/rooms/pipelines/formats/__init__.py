# SPDX-License-Identifier: Apache-2.0
"""Events of OpenLineage."""
