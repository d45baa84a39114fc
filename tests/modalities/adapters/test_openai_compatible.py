"""Replies over HTTP, against a stand-in endpoint in this process that records what it is asked."""

import logging
import threading
from collections.abc import Iterator

import pytest

from modalities.adapters.openai_compatible import EndpointSettings, OpenAiCompatible
from modalities.errors import EndpointFailed, ModalityError, PromptTooLong
from modalities.ports import ChatMessage, Image, Prompt, ReplyDelta, TextDelta, Tool, ToolCall, ToolCallDelta
from tests.modalities.adapters.endpoint import Heard, StandInEndpoint, call_piece, chunk, counted

HELLO = (ChatMessage("system", "Be brief."), ChatMessage("user", "Hello"))
WEATHER = Tool(
    "get_weather", "Tells the weather.", '{"type":"object","properties":{"city":{"type":"string"}}}'
)


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


def test_endpoint_gets_images_as_parts_of_a_message(
    endpoint: StandInEndpoint, model: OpenAiCompatible
) -> None:
    """Words first, each image with its detail where one was given; words alone stay a plain text."""
    endpoint.chunks = [chunk(finish="stop")]
    images = (Image("data:image/png;base64,AA", "low"), Image("data:image/jpeg;base64,BB"))
    messages = (ChatMessage("user", "Hi"), ChatMessage("user", "Look", images=images))
    model.generate(Prompt((*messages, ChatMessage("user", images=images[1:]))), Heard().take)
    parts = [
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA", "detail": "low"}},
        {"type": "image_url", "image_url": {"url": "data:image/jpeg;base64,BB"}},
    ]
    _, _, body = endpoint.requests[0]
    assert [message["content"] for message in body["messages"]] == [
        "Hi",
        [{"type": "text", "text": "Look"}, *parts],
        parts[1:],
    ]


def test_endpoint_address_is_not_logged(endpoint: StandInEndpoint, caplog: pytest.LogCaptureFixture) -> None:
    """An address may carry a password; the client library would write it down for every request."""
    caplog.set_level(logging.INFO)
    endpoint.chunks = [chunk(finish="stop")]
    model = OpenAiCompatible(EndpointSettings("tiny", endpoint.url.replace("//", "//ann:s3cret@")))
    model.generate(Prompt(HELLO), Heard().take)
    model.close()
    assert endpoint.requests
    assert "s3cret" not in caplog.text


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
    assert endpoint.hung_up.wait(60)


def test_endpoint_that_is_silent_is_left_when_nobody_wants_more(
    endpoint: StandInEndpoint, model: OpenAiCompatible
) -> None:
    """Between two pieces of a reply a cancel hangs up as well: `emit` is asked with an empty text."""
    endpoint.chunks = [chunk({"content": "well"})]
    endpoint.silent = "later"
    heard = Heard(enough=1, silences=2)
    assert model.generate(Prompt(HELLO), heard.take).finish_reason == "cancelled"
    assert heard == [TextDelta("well")]
    assert endpoint.hung_up.wait(60)


def test_endpoint_that_has_not_begun_is_left_when_nobody_wants_more(
    endpoint: StandInEndpoint, model: OpenAiCompatible
) -> None:
    """A cancel before the first byte of an answer returns at once."""
    endpoint.silent = "all"
    heard = Heard(enough=0, silences=1)
    assert model.generate(Prompt(HELLO), heard.take).finish_reason == "cancelled"
    assert heard == []


def test_endpoint_is_given_up_after_its_longest_silence(endpoint: StandInEndpoint) -> None:
    """An endpoint that says nothing for `timeout_s` has failed, and is not asked again."""
    endpoint.silent = "later"
    model = OpenAiCompatible(EndpointSettings("tiny", endpoint.url, timeout_s=0.2))
    with pytest.raises(EndpointFailed, match=r"said nothing for 0\.2 s"):
        model.generate(Prompt(HELLO), Heard().take)
    model.close()
    assert len(endpoint.requests) == 1


@pytest.mark.parametrize("timeout_s", [0.2, 600.0])
def test_endpoint_that_has_finished_need_not_say_so_twice(
    endpoint: StandInEndpoint, timeout_s: float
) -> None:
    """A reply with its finish reason is whole, also where the stream never ends."""
    endpoint.chunks = [chunk({"content": "Hi."}), chunk(finish="stop")]
    endpoint.silent = "later"
    model = OpenAiCompatible(EndpointSettings("tiny", endpoint.url, timeout_s=timeout_s))
    assert model.generate(Prompt(HELLO), Heard().take).finish_reason == "stop"
    model.close()


@pytest.mark.parametrize(
    ("status", "told"),
    [
        (400, r"refused with 400: .*too hot"),
        (401, r"refused with 401: it does not take the key from MY_KEY"),
        (403, r"refused with 403"),
        (404, r"no model 'tiny', or the address is wrong"),
    ],
)
def test_endpoint_refusal_is_told_without_the_key(
    endpoint: StandInEndpoint, model: OpenAiCompatible, status: int, told: str
) -> None:
    """A refusal says what to look at, is not tried again, and carries neither key nor prompt."""
    endpoint.refusals = [(status, {}, "too hot for s3cret")]
    with pytest.raises(EndpointFailed, match=told) as caught:
        model.generate(Prompt(HELLO), Heard().take)
    assert "s3cret" not in str(caught.value)
    assert caught.value.__cause__ is None
    assert len(endpoint.requests) == 1


@pytest.mark.parametrize(
    "told",
    [
        "This model's maximum context length is 8 tokens.",
        "the request exceeds the available context size (exceed_context_size_error)",
        "context_length_exceeded",
    ],
)
def test_endpoint_prompt_that_does_not_fit_is_told_as_such(
    endpoint: StandInEndpoint, model: OpenAiCompatible, told: str
) -> None:
    """Each server has its own words for it; the client hears ours, not the endpoint's."""
    endpoint.refusals = [(400, {}, told)]
    with pytest.raises(PromptTooLong, match="longer than the context"):
        model.generate(Prompt(HELLO), Heard().take)
    assert len(endpoint.requests) == 1


@pytest.mark.parametrize("status", [429, 500, 503])
def test_endpoint_that_fails_for_a_moment_is_asked_again(
    endpoint: StandInEndpoint, model: OpenAiCompatible, status: int
) -> None:
    """A failure that may pass costs a moment, not the turn."""
    endpoint.refusals = [(status, {"retry-after": "0.1"}, "busy")]
    endpoint.chunks = [chunk({"content": "Hi."}), chunk(finish="stop")]
    heard = Heard()
    assert model.generate(Prompt(HELLO), heard.take).finish_reason == "stop"
    assert "".join(delta.text for delta in heard if isinstance(delta, TextDelta)) == "Hi."
    assert len(endpoint.requests) == 2


def test_endpoint_that_drops_the_connection_is_asked_again(
    endpoint: StandInEndpoint, model: OpenAiCompatible
) -> None:
    """A connection that was lost before the reply began is made anew."""
    endpoint.drops = 1
    endpoint.chunks = [chunk({"content": "Hi."}), chunk(finish="stop")]
    assert model.generate(Prompt(HELLO), Heard().take).finish_reason == "stop"
    assert len(endpoint.requests) == 2


def test_endpoint_without_capacity_says_when_to_come_back(
    endpoint: StandInEndpoint, model: OpenAiCompatible
) -> None:
    """No turn waits for half a minute: the time is handed on."""
    endpoint.refusals = [(429, {"retry-after": "30"}, "slow down")]
    with pytest.raises(EndpointFailed, match="try again in 30 s") as caught:
        model.generate(Prompt(HELLO), Heard().take)
    assert caught.value.retry_after_s == 30
    assert len(endpoint.requests) == 1


def test_endpoint_that_knows_no_usage_is_asked_without(
    endpoint: StandInEndpoint, model: OpenAiCompatible
) -> None:
    """`stream_options` is left out once it was refused, then from the start; tokens are estimated."""
    endpoint.refusals = [(400, {}, "unknown field stream_options")]
    endpoint.chunks = [chunk({"content": "Hi"}), chunk({"content": "."}), chunk(finish="stop")]
    for _ in range(2):
        done = model.generate(Prompt(HELLO), Heard().take)
        assert (done.input_tokens, done.output_tokens) == (3, 2)
    assert ["stream_options" in body for _, _, body in endpoint.requests] == [True, False, False]


def test_endpoint_gets_what_the_configuration_adds(endpoint: StandInEndpoint) -> None:
    """Fields that only some endpoints know stand in the body as they are."""
    endpoint.chunks = [chunk(finish="stop")]
    model = OpenAiCompatible(
        EndpointSettings("tiny", endpoint.url, extra={"top_k": 20, "mirostat": {"tau": 5}})
    )
    model.generate(Prompt(HELLO), Heard().take)
    model.close()
    body = endpoint.requests[0][2]
    assert (body["top_k"], body["mirostat"]) == (20, {"tau": 5})


def test_endpoint_passes_on_what_emit_raises(endpoint: StandInEndpoint, model: OpenAiCompatible) -> None:
    """An error of the caller ends the reply and hangs up."""
    endpoint.chunks = [chunk({"content": "on and "})]
    endpoint.endless = True

    def emit(delta: ReplyDelta) -> bool:
        raise LookupError("mine")

    with pytest.raises(LookupError, match="mine"):
        model.generate(Prompt(HELLO), emit)
    assert endpoint.hung_up.wait(60)


def test_endpoint_that_breaks_off_is_no_finished_reply(
    endpoint: StandInEndpoint, model: OpenAiCompatible
) -> None:
    """A stream that ends without a finish reason is a failure, not a short answer."""
    endpoint.chunks = [chunk({"content": "I was about to"})]
    with pytest.raises(EndpointFailed, match="broke off"):
        model.generate(Prompt(HELLO), Heard().take)


def test_endpoint_that_talks_nonsense_fails(endpoint: StandInEndpoint, model: OpenAiCompatible) -> None:
    """An answer that is no reply is told as such."""
    endpoint.chunks = [{"error": {"message": "out of memory"}}]
    with pytest.raises(EndpointFailed, match="out of memory"):
        model.generate(Prompt(HELLO), Heard().take)


def test_endpoint_that_is_not_there_fails() -> None:
    """Nobody listening is a failure of the request, told with the address but without what it hides."""
    gone = StandInEndpoint()
    url = gone.url.replace("http://", "http://user:pass@")
    gone.server_close()
    model = OpenAiCompatible(EndpointSettings("tiny", url))
    with pytest.raises(EndpointFailed, match=r"no connection to http://127\.0\.0\.1") as caught:
        model.generate(Prompt(HELLO), Heard().take)
    assert "pass" not in str(caught.value)
    model.close()


def test_endpoint_needs_a_model() -> None:
    """A configuration without a model's name is told which option is missing."""
    with pytest.raises(ModalityError, match="`model`"):
        OpenAiCompatible()


@pytest.mark.parametrize(
    ("settings", "variable"),
    [
        (EndpointSettings("tiny"), "OPENAI_API_KEY"),
        (EndpointSettings("tiny", "http://127.0.0.1:1/v1", key_environment="MY_KEY"), "MY_KEY"),
    ],
)
def test_endpoint_key_that_is_not_set_is_named(
    monkeypatch: pytest.MonkeyPatch, settings: EndpointSettings, variable: str
) -> None:
    """A key that is asked for and missing is told at the start, by the variable that should hold it."""
    monkeypatch.delenv(variable, raising=False)
    with pytest.raises(ModalityError, match=variable):
        OpenAiCompatible(settings)


def test_endpoint_of_others_does_not_get_openais_key(
    endpoint: StandInEndpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A key in the environment is sent to another endpoint only where the configuration says so."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-real")
    endpoint.chunks = [chunk(finish="stop")]
    model = OpenAiCompatible(EndpointSettings("tiny", endpoint.url))
    model.generate(Prompt(HELLO), Heard().take)
    model.close()
    assert "sk-real" not in endpoint.requests[0][1]["authorization"]
