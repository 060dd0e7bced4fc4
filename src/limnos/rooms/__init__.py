# SPDX-License-Identifier: Apache-2.0
"""The rooms of this distribution: optional parts beside the kernel, one package each, with a module `manifest`.

Nothing else imports a room: the kernel reads its manifest. A room imports the kernel, and no other room.
"""
