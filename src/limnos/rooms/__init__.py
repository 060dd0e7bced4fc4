# SPDX-License-Identifier: Apache-2.0
"""The rooms of this distribution: optional parts beside the kernel, one package each, with a module `manifest`.

Nothing else imports a room: the kernel reads its manifest. A room imports the kernel; of another room its routes and
pages import modules that the manifest of that one offers, and nothing else does.
"""
