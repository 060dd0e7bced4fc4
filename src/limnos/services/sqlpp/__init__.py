"""SQL++: `statements` parses a request's text and executes one statement after the other; the packages do the work.

May import `transactions` and the packages that it may import. Of its own packages each imports only the ones before it:
`requests`, `locks`, `definitions`, `execution`.
"""
