# SPDX-License-Identifier: Apache-2.0
"""The console's worksheet: statements of SQL++, and hints below an error."""
