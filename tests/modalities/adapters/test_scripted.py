"""The stand-ins follow their scripts, each time the same."""

import json
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from modalities.adapters.options import settings_from
from modalities.adapters.scripted import (
    DetectorScript,
    RecognizerScript,
    ReplyScript,
    ScriptedDetector,
    ScriptedEmbedder,
    ScriptedLanguageModel,
    ScriptedRecognizer,
    ScriptedSynthesizer,
    ScriptedUnderstander,
    UnderstanderScript,
    VoiceScript,
)
from modalities.ports import (
    ChatMessage,
    Claim,
    Clip,
    Completion,
    Embedder,
    LanguageModel,
    Pcm,
    Prompt,
    ReplyDelta,
    Scorer,
    SpeechRecognizer,
    SpeechSynthesizer,
    TextDelta,
    Tool,
    ToolCallDelta,
    Understander,
    VoiceActivityDetector,
)

WEATHER = Tool(
    "get_weather", "", '{"type":"object","properties":{"city":{"type":"string"}},"required":["city"]}'
)
CLOCK = Tool("get_time")


def tone(pitch_hz: float, seconds: float = 1.0, amplitude: float = 6000) -> Pcm:
    t = np.arange(int(seconds * 16_000)) / 16_000
    return (amplitude * np.sin(2 * np.pi * pitch_hz * t)).astype(np.int16)


def answer(
    model: LanguageModel, prompt: Prompt, wanted: Callable[[int], bool] = lambda count: True
) -> tuple[list[ReplyDelta], Completion]:
    deltas: list[ReplyDelta] = []

    def emit(delta: ReplyDelta) -> bool:
        deltas.append(delta)
        return wanted(len(deltas))

    return deltas, model.generate(prompt, emit)


def text_of(deltas: list[ReplyDelta]) -> str:
    return "".join(delta.text for delta in deltas if isinstance(delta, TextDelta))


def asking(words: str, **rest: object) -> Prompt:
    return Prompt((ChatMessage("user", words),), **rest)  # type: ignore[arg-type]  # the tests' short form


def test_scripted_classes_are_what_the_ports_ask_for() -> None:
    """Each stand-in fits its port; the type checker holds this test to it."""
    recognizer: SpeechRecognizer = ScriptedRecognizer()
    model: LanguageModel = ScriptedLanguageModel()
    voice: SpeechSynthesizer = ScriptedSynthesizer()
    embedder: Embedder = ScriptedEmbedder()
    understander: Understander = ScriptedUnderstander()
    detector: VoiceActivityDetector = ScriptedDetector()
    assert all((recognizer, model, voice, embedder, understander, detector))


def test_scripted_scripts_come_from_plain_json() -> None:
    """A script survives the way through JSON into a worker process."""
    options = json.loads(
        '{"replies": {"time": "Noon."}, "tool_calls": {"rain": {"name": "w"}}, "pause_ms": 0}'
    )
    model = ScriptedLanguageModel(settings_from(ReplyScript, "scripted", options))
    assert text_of(answer(model, asking("what time is it"))[0]) == "Noon."


def test_recognizer_hears_the_text_of_a_tone_in_any_company() -> None:
    """A tone has its text whatever is recognised beside it, at any length and loudness."""
    recognizer = ScriptedRecognizer(RecognizerScript({"440": "hello there", "880": "goodbye"}, ()))
    clips = [
        Clip(tone(880, 0.4)),
        Clip(tone(440, 1.3, 900)),
        Clip(np.zeros(8000, np.int16)),
        Clip(tone(3000)),
    ]
    assert [found.text for found in recognizer.recognize(clips)] == ["goodbye", "hello there", "", ""]
    assert recognizer.recognize(clips[1:2])[0].text == "hello there"


def test_recognizer_says_its_texts_in_turn_and_begins_again() -> None:
    """Clips that no tone explains take the texts one after the other."""
    recognizer = ScriptedRecognizer(RecognizerScript(texts=["one", "two"]))
    assert [found.text for found in recognizer.recognize([Clip(tone(300))] * 3)] == ["one", "two", "one"]


def test_recognizer_drafts_grow_into_the_text_of_the_final_pass() -> None:
    """A draft shows as many words as its length allows, and takes no turn."""
    recognizer = ScriptedRecognizer(RecognizerScript(texts=["one two three four five", "next"]))
    drafts = [recognizer.recognize([Clip(tone(300, s), draft=True)])[0].text for s in (0.2, 0.8, 1.2)]
    assert drafts == ["", "one two", "one two three"]
    final = recognizer.recognize([Clip(tone(300, 2.0))])[0]
    assert final.text == "one two three four five"
    assert [word.text for word in final.words] == final.text.split()
    assert final.words[-1].stop_s == pytest.approx(2.0)


def test_recognizer_hears_nothing_in_no_sound() -> None:
    """An empty clip is silence."""
    assert ScriptedRecognizer().recognize([Clip(np.empty(0, np.int16))])[0].text == ""


def test_model_replies_by_the_last_user_message_word_by_word() -> None:
    """The first entry whose words all stand in the last user message is the reply, one word a token."""
    model = ScriptedLanguageModel(ReplyScript({"capital France": "Paris it is.", "capital": "Which one?"}))
    deltas, end = answer(model, asking("Name the capital of FRANCE!"))
    assert deltas == [TextDelta("Paris"), TextDelta(" it"), TextDelta(" is.")]
    assert end == Completion("stop", 5, 0, 3)
    assert text_of(answer(model, asking("the capital of Peru?"))[0]) == "Which one?"
    assert text_of(answer(model, asking("hi"))[0]) == "You said: hi"


def test_model_stops_within_a_token_of_a_cancel() -> None:
    """After `emit` answered False nothing more is emitted."""
    deltas, end = answer(ScriptedLanguageModel(), asking("a b c d"), lambda count: count < 2)
    assert len(deltas) == 2
    assert end.finish_reason == "cancelled"


def test_model_keeps_to_the_limit_of_tokens() -> None:
    """`max_tokens` cuts the reply, and the end says so."""
    deltas, end = answer(ScriptedLanguageModel(), asking("a b c d", max_tokens=3))
    assert text_of(deltas) == "You said: a"
    assert end.finish_reason == "length"
    assert end.output_tokens == 3


def test_model_calls_a_tool_when_the_script_says_so_and_it_is_offered() -> None:
    """Under ``auto`` a scripted call is made in pieces; without the tool, or under ``none``, there is text."""
    script = ReplyScript(tool_calls={"weather": {"name": "get_weather", "arguments": {"city": "Oslo"}}})
    model = ScriptedLanguageModel(script)
    words = "the weather please"
    deltas, end = answer(model, asking(words, tools=(CLOCK, WEATHER)))
    calls = [delta for delta in deltas if isinstance(delta, ToolCallDelta)]
    assert len(calls) == len(deltas) > 2
    assert (calls[0].name, calls[0].call_id) == ("get_weather", end.tool_calls[0].call_id)
    assert all(call.name is None and call.call_id is None for call in calls[1:])
    assert json.loads("".join(call.arguments for call in calls)) == {"city": "Oslo"}
    assert end.finish_reason == "tool_calls"
    for other in (
        asking(words),
        asking(words, tools=(CLOCK,)),
        asking(words, tools=(WEATHER,), tool_choice="none"),
    ):
        assert text_of(answer(model, other)[0]) == "You said: the weather please"


def test_model_calls_a_tool_that_is_required_or_named_without_a_script() -> None:
    """``required`` and a name always give a call, with arguments of the schema's types."""
    model = ScriptedLanguageModel()
    _, required = answer(model, asking("x", tools=(WEATHER, CLOCK), tool_choice="required"))
    assert required.tool_calls[0].name == "get_weather"
    assert json.loads(required.tool_calls[0].arguments) == {"city": ""}
    _, named = answer(model, asking("x", tools=(WEATHER, CLOCK), tool_choice="=get_time"))
    assert named.tool_calls[0].name == "get_time"


def test_model_reads_a_tools_result_instead_of_calling_again() -> None:
    """With a tool's output as the last message, ``auto`` ends in text."""
    model = ScriptedLanguageModel(ReplyScript(tool_calls={"weather": {"name": "get_weather"}}))
    messages = (ChatMessage("user", "weather"), ChatMessage("tool", "18 degrees", tool_call_id="c"))
    assert text_of(answer(model, Prompt(messages, (WEATHER,)))[0]) == "The result is 18 degrees"


def test_synthesizer_makes_a_tone_as_long_as_the_text() -> None:
    """The duration follows the text and the speed; chunks join without a seam."""
    voice = ScriptedSynthesizer(VoiceScript(pitch_hz=440, ms_per_character=50, chunk_ms=70))
    sound = np.concatenate(list(voice.synthesize("twelve chars")))
    assert len(sound) == 0.6 * 24_000
    t = np.arange(len(sound)) / 24_000
    np.testing.assert_array_equal(sound, (6000 * np.sin(2 * np.pi * 440 * t)).astype(np.int16))
    assert sum(map(len, voice.synthesize("twelve chars", speed=2.0))) == 0.3 * 24_000
    assert list(voice.synthesize("  ")) == []


@given(st.lists(st.text(max_size=20), max_size=5))
def test_embedder_gives_unit_rows_that_depend_on_the_text_alone(texts: list[str]) -> None:
    """Rows have length one and do not depend on their company."""
    embedder = ScriptedEmbedder()
    rows = embedder.embed(texts)
    assert rows.shape == (len(texts), embedder.dimensions)
    assert rows.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1, rtol=1e-5)
    for text, row in zip(texts, rows, strict=True):
        np.testing.assert_array_equal(embedder.embed([text])[0], row)


def test_embedder_likens_texts_by_their_words() -> None:
    """Common words bring texts together, other words leave them apart."""
    a, b, c = ScriptedEmbedder().embed(["book a table", "Book a table, please", "play music"])
    assert a @ b > 0.8
    assert abs(a @ c) < 0.3


def test_understander_finds_intents_and_slots_by_words() -> None:
    """An intent's word gives the intent; a slot's word is placed by its characters."""
    script = UnderstanderScript({"weather": ["rain", "sun"]}, {"city": ["oslo"]})
    rainy, other = ScriptedUnderstander(script).understand(["Rain in Oslo?", "hello"])
    assert (rainy.intent, rainy.confidence) == ("weather", 1.0)
    assert [(slot.name, slot.value, slot.start, slot.stop) for slot in rainy.slots] == [
        ("city", "oslo", 8, 12)
    ]
    assert (other.intent, other.confidence, other.slots) == (None, 0.0, ())


def test_detector_takes_loud_windows_for_speech() -> None:
    """Above the threshold a window is speech, below it is not, stream by stream."""
    detector = ScriptedDetector(DetectorScript(threshold_dbfs=-30))
    loud, soft = tone(400, 0.032, 8000) / 32768, tone(400, 0.032, 200) / 32768
    windows = np.stack([loud, soft, 0 * loud]).astype(np.float32)
    states = np.stack([detector.new_state()] * 3)
    probabilities, after = detector.detect(windows, states)
    assert probabilities.dtype == np.float32
    assert (probabilities > 0.5).tolist() == [True, False, False]
    assert after.shape == states.shape


def test_scripted_recognizer_scores_what_a_tone_says_over_anything_else() -> None:
    """Each word of another text costs; a clip without a tone of its own says what was recognised; silence says
    nothing."""
    scorer: Scorer = ScriptedRecognizer(RecognizerScript(tones={"440": "at fifteen"}))
    claim = Claim(Clip(tone(440)), "at fifty", ("at fifteen", "at fifty", "at"))
    fits, other, silence = scorer.score(
        [
            claim,
            Claim(Clip(tone(900)), "at fifty", ("at fifty",)),
            Claim(Clip(tone(440, amplitude=0)), "x", ("x",)),
        ]
    )
    assert fits is not None
    assert fits.texts[0].total == pytest.approx(-0.2)
    assert fits.texts[0].total > fits.recognised.total == fits.texts[1].total
    assert fits.texts[2].lowest == -8.0
    assert other is not None
    assert other.texts[0].lowest == -0.1
    assert silence is None
