# SPDX-License-Identifier: Apache-2.0
"""The processes of jobs: their commands, confinement and keeper, and the executor that starts them."""
