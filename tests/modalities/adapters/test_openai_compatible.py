"""Replies over HTTP, against a stand-in endpoint in this process that records what it is asked."""

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from modalities.adapters.openai_compatible import EndpointFailed, EndpointSettings, OpenAiCompatible
from modalities.errors import ModalityError
from modalities.ports import ChatMessage, Prompt, ReplyDelta, TextDelta, Tool, ToolCall, ToolCallDelta

HELLO = (ChatMessage("system", "Be brief."), ChatMessage("user", "Hello"))
WEATHER = Tool(
    "get_weather", "Tells the weather.", '{"type":"object","properties":{"city":{"type":"string"}}}'
)


class StandInEndpoint(ThreadingHTTPServer):
    """Plays back prepared chunks to every request and keeps the requests; `status` over 200 refuses them.

    With `endless` it repeats its last chunk until the caller hangs up, and says so by `hung_up`.
    """

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Answering)
        self.requests: list[tuple[str, dict[str, str], dict[str, Any]]] = []
        self.chunks: list[dict[str, Any]] = []
        self.status = 200
        self.endless = False
        self.hung_up = threading.Event()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/v1"


class _Answering(BaseHTTPRequestHandler):
    server: StandInEndpoint

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        self.server.requests.append((self.path, {k.lower(): v for k, v in self.headers.items()}, body))
        self.send_response(self.server.status)
        self.send_header(
            "content-type", "text/event-stream" if self.server.status == 200 else "application/json"
        )
        self.end_headers()
        if self.server.status != 200:
            self.wfile.write(b'{"error": {"message": "no"}}')
            return
        try:
            for chunk in self.server.chunks:
                self._say(chunk)
            while self.server.endless:
                self._say(self.server.chunks[-1])
        except (BrokenPipeError, ConnectionResetError):
            self.server.hung_up.set()
            return
        self.wfile.write(b"data: [DONE]\n\n")

    def _say(self, chunk: dict[str, Any]) -> None:
        self.wfile.write(b"data: " + json.dumps(chunk).encode() + b"\n\n")
        self.wfile.flush()

    def log_message(self, format: str, *arguments: object) -> None:
        """Keeps the test's output clean."""


@pytest.fixture
def endpoint() -> Iterator[StandInEndpoint]:
    server = StandInEndpoint()
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    yield server
    server.endless = False
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture
def model(endpoint: StandInEndpoint, monkeypatch: pytest.MonkeyPatch) -> Iterator[OpenAiCompatible]:
    monkeypatch.setenv("MY_KEY", "s3cret")
    made = OpenAiCompatible(EndpointSettings("tiny", endpoint.url, key_environment="MY_KEY"))
    yield made
    made.close()


def chunk(delta: dict[str, Any] | None = None, finish: str | None = None) -> dict[str, Any]:
    choices = [{"index": 0, "delta": delta or {}, "finish_reason": finish}]
    return {"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "tiny", "choices": choices}


def counted(given: int, cached: int, written: int) -> dict[str, Any]:
    usage = {
        "prompt_tokens": given,
        "completion_tokens": written,
        "total_tokens": given + written,
        "prompt_tokens_details": {"cached_tokens": cached},
    }
    return {**chunk(), "choices": [], "usage": usage}


def call_piece(arguments: str, name: str | None = None, call_id: str | None = None) -> dict[str, Any]:
    function = {"arguments": arguments} | ({"name": name} if name else {})
    return {"tool_calls": [{"index": 0, "function": function} | ({"id": call_id} if call_id else {})]}


class Heard(list[ReplyDelta]):
    """Keeps deltas; wants no more once it has `enough`."""

    def __init__(self, enough: int = 1_000_000) -> None:
        super().__init__()
        self._enough = enough

    def take(self, delta: ReplyDelta) -> bool:
        self.append(delta)
        return len(self) < self._enough


def test_endpoint_text_comes_piece_by_piece_with_its_usage(
    endpoint: StandInEndpoint, model: OpenAiCompatible
) -> None:
    """Every delta is passed on in order; the completion has the endpoint's counts."""
    endpoint.chunks = [
        chunk({"content": "Good "}),
        chunk({"content": "day."}),
        chunk(finish="stop"),
        counted(9, 4, 3),
    ]
    heard = Heard()
    done = model.generate(Prompt(HELLO), heard.take)
    assert heard == [TextDelta("Good "), TextDelta("day.")]
    assert (done.finish_reason, done.input_tokens, done.cached_tokens, done.output_tokens) == (
        "stop",
        9,
        4,
        3,
    )


def test_endpoint_is_asked_with_key_model_limits_and_seed(
    endpoint: StandInEndpoint, model: OpenAiCompatible
) -> None:
    """The key comes from the environment variable that the configuration names; the prompt's own figures win."""
    endpoint.chunks = [chunk(finish="length")]
    done = model.generate(Prompt(HELLO, max_tokens=7, temperature=0.25, seed=5), Heard().take)
    path, headers, body = endpoint.requests[0]
    assert path == "/v1/chat/completions"
    assert headers["authorization"] == "Bearer s3cret"
    assert body["messages"] == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Hello"},
    ]
    assert (body["model"], body["max_tokens"], body["temperature"], body["seed"]) == ("tiny", 7, 0.25, 5)
    assert "tools" not in body
    assert done.finish_reason == "length"


def test_endpoint_names_its_limit_as_configured(endpoint: StandInEndpoint) -> None:
    """Newer hosted models refuse `max_tokens`."""
    endpoint.chunks = [chunk(finish="stop")]
    model = OpenAiCompatible(EndpointSettings("tiny", endpoint.url, limit_field="max_completion_tokens"))
    model.generate(Prompt(HELLO), Heard().take)
    model.close()
    assert endpoint.requests[0][2]["max_completion_tokens"] == 256
    assert "max_tokens" not in endpoint.requests[0][2]


@pytest.mark.parametrize(
    ("choice", "sent"),
    [
        ("auto", "auto"),
        ("required", "required"),
        ("=get_weather", {"type": "function", "function": {"name": "get_weather"}}),
    ],
)
def test_endpoint_tool_calls_are_put_together(
    endpoint: StandInEndpoint, model: OpenAiCompatible, choice: str, sent: object
) -> None:
    """Name and id come with a call's first delta only; a call ends as ``tool_calls``, also where the endpoint says
    ``stop``."""
    endpoint.chunks = [
        chunk(call_piece("", "get_weather", "call_9")),
        chunk(call_piece('{"city":')),
        chunk(call_piece('"Rome"}')),
        chunk(finish="stop"),
    ]
    heard = Heard()
    done = model.generate(Prompt(HELLO, tools=(WEATHER,), tool_choice=choice), heard.take)
    assert heard == [
        ToolCallDelta(0, "", "get_weather", "call_9"),
        ToolCallDelta(0, '{"city":'),
        ToolCallDelta(0, '"Rome"}'),
    ]
    assert done.finish_reason == "tool_calls"
    assert done.tool_calls == (ToolCall("call_9", "get_weather", '{"city":"Rome"}'),)
    body = endpoint.requests[0][2]
    assert body["tool_choice"] == sent
    assert body["tools"][0]["function"]["parameters"]["properties"] == {"city": {"type": "string"}}


def test_endpoint_is_told_no_tools_where_none_may_be_called(
    endpoint: StandInEndpoint, model: OpenAiCompatible
) -> None:
    """`none` sends the tools to nobody; earlier calls and their results stay in the history."""
    endpoint.chunks = [chunk({"content": "18 degrees."}), chunk(finish="stop")]
    history = (
        *HELLO,
        ChatMessage("assistant", tool_calls=(ToolCall("call_9", "get_weather", "{}"),)),
        ChatMessage("tool", "18", tool_call_id="call_9"),
    )
    model.generate(Prompt(history, tools=(WEATHER,), tool_choice="none"), Heard().take)
    body = endpoint.requests[0][2]
    assert "tools" not in body
    assert body["messages"][2]["tool_calls"][0]["id"] == "call_9"
    assert body["messages"][3] == {"role": "tool", "content": "18", "tool_call_id": "call_9"}


def test_endpoint_stream_is_closed_when_nobody_wants_more(
    endpoint: StandInEndpoint, model: OpenAiCompatible
) -> None:
    """An answer of False ends the reply at once, and the endpoint sees its caller hang up."""
    endpoint.chunks = [chunk({"content": "on and "})]
    endpoint.endless = True
    heard = Heard(enough=3)
    assert model.generate(Prompt(HELLO), heard.take).finish_reason == "cancelled"
    assert len(heard) == 3
    assert endpoint.hung_up.wait(10)


@pytest.mark.parametrize("status", [400, 401])
def test_endpoint_refusal_is_told_without_the_key(
    endpoint: StandInEndpoint, model: OpenAiCompatible, status: int
) -> None:
    """A refused request fails with the status; neither key nor prompt is in the message."""
    endpoint.status = status
    with pytest.raises(EndpointFailed, match=str(status)) as caught:
        model.generate(Prompt(HELLO), Heard().take)
    assert "s3cret" not in str(caught.value)
    assert len(endpoint.requests) == 1


def test_endpoint_that_breaks_off_is_no_finished_reply(
    endpoint: StandInEndpoint, model: OpenAiCompatible
) -> None:
    """A stream that ends without a finish reason is a failure, not a short answer."""
    endpoint.chunks = [chunk({"content": "I was about to"})]
    with pytest.raises(EndpointFailed, match="broke off"):
        model.generate(Prompt(HELLO), Heard().take)


def test_endpoint_that_is_not_there_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody listening is a failure of the request."""
    gone = StandInEndpoint()
    url = gone.url
    gone.server_close()
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    model = OpenAiCompatible(EndpointSettings("tiny", url))
    with pytest.raises(EndpointFailed, match="APIConnectionError"):
        model.generate(Prompt(HELLO), Heard().take)
    model.close()


def test_endpoint_needs_a_model() -> None:
    """A configuration without a model's name is told which option is missing."""
    with pytest.raises(ModalityError, match="`model`"):
        OpenAiCompatible()
