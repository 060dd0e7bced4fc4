# SPDX-License-Identifier: Apache-2.0
"""Table maintenance: assessment of tables, and operations that the server executes."""
