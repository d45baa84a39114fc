"""The pure parts of `chorale bench commands`: what is drawn, how it sounds, how a user answers, what is counted."""

from collections.abc import Mapping

import numpy as np
import pytest

from benchmarks.command_cases import Case
from benchmarks.command_figures import Judged, causes, claims, fewer, lost, questions, row, rows
from benchmarks.command_lines import HALVES, TEMPLATES, Half, Line, Value, Way, lines
from benchmarks.command_sound import REAL_NOISE, SPEAKERS, Air, Studio, airs
from benchmarks.command_talk import Arm, Went, answer_to, comparable, meant
from benchmarks.command_work import ModelFailed, Models
from modalities.ports import SPEECH_RATE_HZ, Pcm
from orchestrator.scheduling.work import Transcribe

SAID = np.sin(2 * np.pi * 220 * np.arange(SPEECH_RATE_HZ) / SPEECH_RATE_HZ)


def silent(text: str, seed: int) -> Pcm:
    return np.zeros(0, np.int16)


def timer(way: Way = "typed_slip", half: Half = "held", id: str = "one") -> Line:
    return Line(
        id, half, "default", way, "set a timer for fifteen minutes", "set a timer for 15 minutes",
        {"duration": Value("fifteen minutes", "15 minutes")}, ("duration", Value("fifty minutes", "50 minutes")),
    )  # fmt: skip


def went(slots: Mapping[str, str], questions: int = 0, answered_s: float = 4.0) -> Went:
    return Went(slots, ("",), ("Sorry, a or b?",) * questions, (), answered_s, 1 + questions)


def judged(
    off: Mapping[str, str], on: Mapping[str, str], questions: int = 0, line: Line | None = None
) -> Judged:
    case = Case(line or timer(), Air(0, "near", None, "none"), silent, (line or timer()).id)
    arms: dict[Arm, Went] = {"off": went(off), "later": went(off, 0, 4.05), "ask": went(on, questions, 4.2)}
    return Judged(case, arms)


RIGHT = meant(timer())
WRONG = {"duration": comparable("fifty minutes")}


@pytest.mark.parametrize("half", HALVES)
def test_commands_of_a_seed_are_the_same_and_a_longer_run_begins_with_the_shorter_one(half: Half) -> None:
    """Same seed, same commands; another seed, others; none comes twice."""
    few, many = list(lines(20, 3, half)), list(lines(40, 3, half))
    assert many[:20] == few
    assert len({one.said for one in many}) == 40
    assert [one.said for one in lines(20, 4, half)] != [one.said for one in few]


def test_halves_share_no_wording_no_voice_and_no_noise() -> None:
    """What the engine is made better on tells nothing of the other half."""
    for templates in TEMPLATES.values():
        assert not set(templates["tuned"]) & set(templates["held"])
    assert not set(SPEAKERS["tuned"]) & set(SPEAKERS["held"])
    assert not set(REAL_NOISE["tuned"]) & set(REAL_NOISE["held"])


@pytest.mark.parametrize("half", HALVES)
def test_a_mistaken_command_differs_in_one_slot_as_said_and_as_typed(half: Half) -> None:
    """The slip has the other value in its words, and every other slot as it was."""
    for line in lines(120, 1, half):
        slip = line.mistaken()
        slot, wrong = line.slip
        assert wrong.spoken in slip.said
        assert wrong.typed in slip.typed
        assert {name for name in line.meant if slip.meant[name] != line.meant[name]} == {slot}
        assert "{" not in line.said + slip.typed


def test_values_are_compared_by_what_they_mean() -> None:
    """However it is said or written, a value is the same; another one is not."""
    assert comparable("half past seven") == comparable("7:30") == comparable("7.30")
    assert comparable("the kitchen.") == comparable("Kitchen")
    assert comparable("15 minutes") != comparable("fifty minutes")


def test_a_user_says_the_reading_that_is_his_and_the_command_again_where_neither_is() -> None:
    """The simulated user never picks a reading that he did not mean."""
    assert answer_to("Sorry, 15 minutes or 50 minutes?", timer()) == "fifteen minutes"
    assert answer_to("Sorry, 14 minutes or 50 minutes?", timer()) == timer().said
    assert answer_to("Sorry, could you say that again?", timer()) == timer().said


def test_noise_is_as_loud_as_it_is_said_to_be_and_the_same_each_time() -> None:
    """Signal to noise, measured on what was mixed, is what was asked for, within one decibel."""
    studio = Studio()
    clean = studio.mix("held", SAID, Air(0, "near", None, "none"), 1).astype(float)
    noisy = studio.mix("held", SAID, Air(0, "near", 10, "pink"), 1)
    noise = noisy - clean
    speech = clean[np.abs(clean) > 50]
    ratio_db = 20 * np.log10(np.sqrt(np.mean(speech**2)) / np.sqrt(np.mean(noise**2)))
    assert abs(ratio_db - 10) < 1
    assert np.array_equal(noisy, studio.mix("held", SAID, Air(0, "near", 10, "pink"), 1))


def test_a_telephone_passes_its_band_only() -> None:
    """Below 300 Hz nothing but the code's own noise is left."""
    sound = Studio().mix("held", SAID, Air(0, "telephone", None, "none"), 1).astype(float)
    plain = Studio().mix("held", SAID, Air(0, "near", None, "none"), 1).astype(float)
    assert np.abs(np.fft.rfft(sound)[: len(sound) // 64]).max() < 0.1 * np.abs(np.fft.rfft(plain)).max()


def test_levels_of_noise_take_turns_in_every_domain() -> None:
    """Each level comes as often as the others, for each of the domains that take turns."""
    found = [[airs("held", 1, number, False).snr_db for number in range(first, 45, 3)] for first in range(3)]
    assert all(len({one.count(level) for level in set(one)}) == 1 for one in found)
    assert {len(one) for one in found} == {15}


def test_wrong_and_lost_slots_are_told_apart() -> None:
    """A wrong slot that is put right is fewer wrong; a right one that is gone or wrong is lost; a slot nobody meant is
    wrong."""
    mended, spoilt = judged(WRONG, RIGHT, 1), judged(RIGHT, {})
    extra = judged({**RIGHT, "room": "kitchen"}, RIGHT)
    assert [mended.wrong("off"), mended.wrong("ask"), mended.lost("ask")] == [1, 0, 0]
    assert [spoilt.wrong("ask"), spoilt.lost("ask")] == [0, 1]
    assert [extra.wrong("off"), extra.wrong("ask"), extra.lost("ask")] == [1, 0, 0]
    assert fewer([mended, judged(WRONG, WRONG)], "ask") == 0.5
    assert fewer([spoilt], "ask") is None
    assert lost([spoilt, judged(RIGHT, RIGHT)], "ask") == 0.5
    assert questions([mended, spoilt]) == pytest.approx(100 / 3)
    assert mended.delay_ms("ask") == pytest.approx(200)


def test_what_went_wrong_is_sorted_by_its_cause() -> None:
    """A slip that stands, a wrong value of the engine's, a misheard one and a lost one are told apart."""
    misheard = {"duration": comparable("sixteen minutes")}
    spoken = judged(misheard, misheard, 0, timer("spoken"))
    assert judged(WRONG, WRONG).causes("ask") == ["wrong: the slip of the hand stands"]
    assert judged(RIGHT, misheard).causes("ask") == ["wrong: by the engine", "lost: another value"]
    assert spoken.causes("ask") == ["wrong: misheard, and nothing else was said"]
    assert judged(RIGHT, {}).causes("ask") == ["lost: no value"]
    assert judged(WRONG, RIGHT).causes("ask") == []
    assert [one["cause"] for one in causes([spoken])] == ["wrong: misheard, and nothing else was said"]


def test_the_claims_are_held_to_the_half_that_nobody_looked_at() -> None:
    """The half that was tuned on neither helps nor harms; an engine that does nothing fails."""
    tuned = [judged(WRONG, WRONG, 2, timer(half="tuned", id=f"t{number}")) for number in range(9)]
    good = [judged(WRONG, RIGHT, 0, timer(id="a")), judged(RIGHT, RIGHT, 0, timer(id="b"))]
    assert all(one.holds for one in claims([*tuned, *good]))
    assert not all(one.holds for one in claims([*tuned, judged(WRONG, WRONG)]))
    assert claims(tuned) == []


def test_the_table_has_each_half_and_every_part_with_the_same_columns() -> None:
    """Rows of one table have the same keys, and intervals where there is something to draw from."""
    some = [judged(WRONG, RIGHT, 1, timer(id="a")), judged(WRONG, WRONG, 0, timer("spoken", id="b"))]
    found = rows([*some, judged(RIGHT, RIGHT, 0, timer(half="tuned"))])
    assert len({tuple(one) for one in found}) == 1
    names = {one["commands"] for one in found}
    assert {
        "tuned: all",
        "held: all",
        "way: spoken",
        "way: typed_slip",
        "SNR: clean",
        "domain: default",
    } <= names
    assert row("both", some)["fewer 95 %, ask"] == "0.00 to 1.00"


class _Broken:
    """A craft that fails."""

    def probe(self) -> str:
        return ""

    def do(self, tasks: object, tell: object, wanted: object) -> None:
        raise RuntimeError("out of memory")


def test_a_model_that_fails_ends_the_study() -> None:
    """A session's loop only logs it; a conversation that went on deaf must not be counted."""
    models = Models()
    models.check()
    models._crafts["asr"] = _Broken()
    with pytest.raises(RuntimeError):
        models.do(Transcribe(0, 1, audio=b"00"), "default")
    with pytest.raises(ModelFailed):
        models.check()
