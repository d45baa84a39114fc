"""Existing clients of the Realtime protocol, unchanged, against a real server: `make clients`.

The programs here need libraries that Chorale does not depend on; they run in environments of their own. What is
learned from them goes into tests that need none of these libraries.
"""
