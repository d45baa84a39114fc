"""The OpenAI Realtime protocol (GA) as tagged unions: values only, no I/O.

Hearts take these client events in and give these server events out; doors (`transports/`) move them. What may be absent
is `UNSET` and is then left out of the JSON, since strict clients drop objects that carry nulls.
"""
