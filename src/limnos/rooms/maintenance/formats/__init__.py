# SPDX-License-Identifier: Apache-2.0
"""Table maintenance as pure functions: the assessment of tables by their metadata, and the selection of snapshots,
references and files to remove.

Must neither read files nor know the execution of operations.
"""
