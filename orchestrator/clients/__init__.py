"""Clients of a Realtime server: what `chorale talk`, `chorale chat`, benchmarks and tests speak through.

They know the protocol and nothing of the server's inside, so that what works here works from outside.
"""
