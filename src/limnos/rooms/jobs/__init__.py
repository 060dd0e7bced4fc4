# SPDX-License-Identifier: Apache-2.0
"""Jobs: programs and Spark applications that the server runs from Gravitino's job templates."""
