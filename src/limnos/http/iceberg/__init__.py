"""The Iceberg REST protocol: its routes, bodies and errors over the services.

May import `services`, the layers below, and the shared modules of `limnos.http`; never another protocol.
"""
