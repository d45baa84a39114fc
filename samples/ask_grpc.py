"""Ask the server in writing, over gRPC:  .venv/bin/python samples/ask_grpc.py "What is a chorale?"

The server speaks gRPC when it is started with CHORALE_SERVER__GRPC__PORT=50051 make run. Its address is CHORALE_GRPC,
by default 127.0.0.1:50051, the key CHORALE_API_KEY.
"""

import json
import os
import sys
from collections.abc import Iterator
from typing import Any

import grpc

from orchestrator.transports.rpc.v1 import chorale_pb2 as pb
from orchestrator.transports.rpc.v1 import chorale_pb2_grpc as pb_grpc

ADDRESS = os.environ.get("CHORALE_GRPC", "127.0.0.1:50051")
KEY = os.environ.get("CHORALE_API_KEY", "none")


def said(question: str) -> Iterator[pb.ClientMessage]:
    """All that the client has to say: it may stop speaking before it has heard anything."""
    session = {"type": "realtime", "output_modalities": ["text"]}
    yield pb.ClientMessage(open=pb.Open(model="chorale", session=json.dumps(session)))
    part = {"type": "input_text", "text": question}
    item = {"type": "message", "role": "user", "content": [part]}
    for event in ({"type": "conversation.item.create", "item": item}, {"type": "response.create"}):
        yield pb.ClientMessage(event=pb.Event(json=json.dumps(event)))


def main(question: str) -> None:
    with grpc.insecure_channel(ADDRESS) as channel:
        sessions: Any = pb_grpc.SessionsStub(channel)  # type: ignore[no-untyped-call]  # generated without types
        for message in sessions.Converse(said(question), metadata=[("authorization", f"Bearer {KEY}")]):
            if not message.HasField("event"):
                continue
            event = json.loads(message.event.json)
            if event["type"] == "response.output_text.delta":
                print(event["delta"], end="", flush=True)
            elif event["type"] == "error":
                sys.exit(f"refused: {event['error']['message']}")
            elif event["type"] == "response.done":
                print()
                if event["response"]["status"] != "completed":
                    sys.exit(f"the reply is {event['response']['status']}")
                return


if __name__ == "__main__":
    if len(sys.argv) < 2 or sys.argv[1] in ("-h", "--help"):
        sys.exit(__doc__)
    try:
        main(" ".join(sys.argv[1:]))
    except grpc.RpcError as refused:
        if refused.code() is grpc.StatusCode.UNAVAILABLE:
            sys.exit(
                f"no server answers at {ADDRESS}; start one with: CHORALE_SERVER__GRPC__PORT=50051 make run"
            )
        sys.exit(f"refused ({refused.code().name}): {refused.details()}")
