# SPDX-License-Identifier: Apache-2.0
"""SQL++ over HTTP: AsterixDB's query service and the other routes that its clients need, over the same tree."""
