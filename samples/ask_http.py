"""Ask the server in writing, with nothing but HTTP:  python samples/ask_http.py "What is a chorale?"

Needs Python alone. The server's address is CHORALE_URL, by default http://127.0.0.1:8080, the key CHORALE_API_KEY.
"""

import json
import os
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from typing import Any

URL = os.environ.get("CHORALE_URL", "http://127.0.0.1:8080")
KEY = {"Authorization": f"Bearer {os.environ.get('CHORALE_API_KEY', 'none')}"}


def request(path: str, body: object = None, **headers: str) -> Any:
    """Returns the open answer to a GET, or, with a body, to a POST."""
    data = None if body is None else json.dumps(body).encode()
    asked = urllib.request.Request(URL + path, data, {**KEY, "Content-Type": "application/json", **headers})
    return urllib.request.urlopen(asked)


def events(stream: Any) -> Iterator[dict[str, Any]]:
    """Yields the events of a stream; each has its JSON on one line."""
    for line in stream:
        if line.startswith(b"data: "):
            yield json.loads(line.removeprefix(b"data: "))


def ask(question: str) -> None:
    session = json.load(
        request("/v1/sessions", {"session": {"type": "realtime", "output_modalities": ["text"]}})
    )
    path, secret = f"/v1/sessions/{session['id']}/events", {"Chorale-Session-Secret": session["secret"]}
    with request(path, **secret) as stream:
        message = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": question}]}
        said = [{"type": "conversation.item.create", "item": message}, {"type": "response.create"}]
        request(path, said, **secret).close()
        for event in events(stream):
            if event["type"] == "response.output_text.delta":
                print(event["delta"], end="", flush=True)
            elif event["type"] == "response.done":
                print()
                if event["response"]["status"] != "completed":
                    sys.exit(f"the reply is {event['response']['status']}")
                return


if __name__ == "__main__":
    if len(sys.argv) < 2 or sys.argv[1] in ("-h", "--help"):
        sys.exit(__doc__)
    try:
        ask(" ".join(sys.argv[1:]))
    except urllib.error.HTTPError as refused:
        sys.exit(f"refused: {json.load(refused)['error']['message']}")
    except urllib.error.URLError as failed:
        sys.exit(f"no server answers at {URL} ({failed.reason}); start one with: make run")
