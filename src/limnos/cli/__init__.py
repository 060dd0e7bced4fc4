"""The command line: `limnos <noun> <verb> [ids] [--flags]`.

May import `client`, `config`, `names` and `model` freely; the server's and Spark's rooms only inside the command that
needs them, because the base install has not their libraries. Rules live on the server: a command asks, and shows.
"""
