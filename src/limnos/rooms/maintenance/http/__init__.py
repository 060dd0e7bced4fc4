# SPDX-License-Identifier: Apache-2.0
"""Routes of maintenance: of the own API, and of Gravitino."""
