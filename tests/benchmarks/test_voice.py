"""What `chorale bench voice` plans, claims and draws."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks import voice
from benchmarks.outcome import Row
from benchmarks.voice_cases import Case, Measured
from benchmarks.voice_clips import speech_stop
from benchmarks.voice_plot import draw
from benchmarks.voice_turn import STAGES, Turn

RATE_HZ = 48_000


def cases(**changed: Any) -> list[Case]:
    """Returns the cases of a command line."""
    usual = {
        "calls": "1,4", "turns": 6, "transports": "webrtc,websocket", "ends": "server_vad 200, semantic_vad",
        "early": "on", "peer": True, "only_peer": False,
    }  # fmt: skip
    return list(voice._cases(**{**usual, **changed}))


def row(server: str, calls: int, p50: int | None, p95: int | None = 2_000) -> Row:
    """Returns a row of the table."""
    turn = Turn(p50, {stage: 100.0 * index for index, stage in enumerate(STAGES)}, "", "", False)
    measured = Measured(Case(server, "webrtc", "server_vad 200", calls, 1), [turn])
    return {**measured.row(), "p50": p50, "p95": p95}


def test_every_call_number_is_measured_with_the_first_end_and_the_least_with_others() -> None:
    """The peer gets the first end only, and the same transports and numbers."""
    ours = [case for case in cases() if case.server == voice.OURS]
    assert [(case.transport, case.end, case.calls) for case in ours if case.transport == "webrtc"] == [
        ("webrtc", "server_vad 200", 1),
        ("webrtc", "server_vad 200", 4),
        ("webrtc", "semantic_vad", 1),
    ]
    peers = [case for case in cases() if case.server == voice.PEER]
    assert {case.end for case in peers} == {"server_vad 200"}
    assert len(peers) == 4
    assert [case.early for case in cases(early="both", peer=False, ends="semantic_vad", calls="1")] == [
        True, True, False, False,
    ]  # fmt: skip


@pytest.mark.parametrize("wrong", [{"transports": "pigeon"}, {"early": "late"}, {"calls": "one"}])
def test_what_is_no_plan_is_refused(wrong: dict[str, str]) -> None:
    """Before any server is started."""
    with pytest.raises(ValueError):
        cases(**wrong)


def test_settings_become_variables_of_the_environment() -> None:
    """As the server reads them."""
    assert voice._setting("workers.llm.threads=2") == ("CHORALE_WORKERS__LLM__THREADS", "2")
    with pytest.raises(ValueError, match="KEY=VALUE"):
        voice._setting("threads")


def test_session_names_the_end_of_turn_as_the_protocol_does() -> None:
    """With its silence where one is given."""
    session = Case("chorale", "webrtc", "server_vad 200", 1, 1).session()
    assert session["audio"]["input"]["turn_detection"] == {"type": "server_vad", "silence_duration_ms": 200}
    session = Case("chorale", "webrtc", "semantic_vad", 1, 1).session()
    assert session["audio"]["input"]["turn_detection"] == {"type": "semantic_vad"}


def test_claims_compare_with_the_peer_of_the_same_row() -> None:
    """Half of its time at one call, three tenths at four; eight calls within three seconds, all answered."""
    held = {
        claim.text: claim.holds
        for claim in voice.claims(
            [
                row("chorale", 1, 500), row("pipecat", 1, 1_000), row("chorale", 4, 500), row("pipecat", 4, 1_000),
                row("chorale", 8, 2_500, 3_001),
            ]
        )
    }  # fmt: skip
    assert list(held.values()) == [True, False, False]


def test_claims_against_a_peer_that_answers_nothing_hold() -> None:
    """And fail where ours answers nothing either; unanswered turns of ours are told."""
    assert [claim.holds for claim in voice.claims([row("chorale", 4, 900), row("pipecat", 4, None)])] == [
        True
    ]
    silent = voice.claims([row("chorale", 4, None, None), row("pipecat", 4, None)])
    assert [claim.holds for claim in silent] == [False, False]


def test_picture_is_drawn_also_of_rows_without_an_answer(tmp_path: Path) -> None:
    """A PNG with a bar a row."""
    pytest.importorskip("matplotlib")
    file = tmp_path / "voice.png"
    draw([row("chorale", 1, 500), row("pipecat", 8, None, None)], file)
    assert file.read_bytes().startswith(b"\x89PNG")


def test_speech_stops_behind_its_last_sound() -> None:
    """Noise 40 dB below is silence; so is a file of zeros."""
    sound = np.random.default_rng(2).normal(0, 40, RATE_HZ)
    sound[: RATE_HZ // 2] += 8_000 * np.sin(np.arange(RATE_HZ // 2) / 20)
    assert speech_stop(sound.astype(np.int16)) == pytest.approx(RATE_HZ // 2, abs=RATE_HZ // 100)
    assert speech_stop(np.zeros(RATE_HZ, np.int16)) == 0


def test_told_counts_answers_of_which_something_had_been_begun() -> None:
    """What the server logs of each turn; "none" is nothing begun."""
    lines = [{"early": early, "transcript_ms": 200.0} for early in ("reply", "transcript", "none")]
    (row,) = voice._told(cases()[0], lines)
    assert (row["turns"], row["early"], row["transcript"]) == (3, 2, 200)
