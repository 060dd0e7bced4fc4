# SPDX-License-Identifier: Apache-2.0
"""SQL++: AsterixDB's query service, and the engine of its statements."""
