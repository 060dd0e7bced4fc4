# SPDX-License-Identifier: Apache-2.0
"""Operations that write the files of plans for restricted users: their queue, their spans, and reports of files."""
