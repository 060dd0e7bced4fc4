# SPDX-License-Identifier: Apache-2.0
"""Work on Lance tables with Lance's own library, in worker processes. A server process imports only `questions`."""
