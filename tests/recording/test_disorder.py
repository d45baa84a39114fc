"""Nothing that consistency decides hangs on the order in which numbers are added or sets are walked through."""

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from consistency import features, fingerprint
from consistency.distance import distance
from consistency.observation import VECTOR_ONE, Fact, Observation, Token
from consistency.wording import wording
from modalities.text.facts import facts_and_form
from orchestrator.recording.scenario import SUFFIX, parse
from orchestrator.settings.studio import Studio, store
from tests.recording.disorder import disorder

HERE = Path(__file__).parent
ROOT = HERE.parents[1]

TEXTS = st.sampled_from(
    [
        "Set a timer for fifteen minutes and a second one for two hours, please.",
        "Set the timer to fifty minutes, and the other one to two hours, please, Anna.",
        "Book a quiet table by the big window at Luigi's for seven at half past eight.",
        "Don't book a table by the window at Luigi's for eleven at eight.",
        "Turn the kitchen lights off, then turn the radio in the bedroom up.",
        "",
    ]
)


def observation(id: str, text: str, seed: int) -> Observation:
    """What was said, with a vector and prosody drawn from a seed."""
    drawn = np.random.default_rng(seed)
    vector = drawn.normal(size=128)
    unit = np.rint(VECTOR_ONE * vector / np.linalg.norm(vector)).astype(np.int16)
    facts = tuple(Fact(one.kind, one.value, one.start, one.stop) for one in facts_and_form(text)[0])
    tokens = tuple(Token("set_timer", f"slot {at}", word) for at, word in enumerate(text.split()[:5]))
    prosody = tuple(map(float, drawn.normal(size=12)))
    made = Observation(id=id, modality="speech", text=text, start_us=0, stop_us=1)
    return replace(made, vector=unit, facts=facts, tokens=tokens, prosody=prosody)


def judged(one: Observation, other: Observation) -> tuple[object, ...]:
    """Everything that is a sum, before it is rounded, and what comes of it."""
    print_of_one = fingerprint.fingerprint(one)
    with patch.object(features, "round", lambda value, digits: value, create=True):
        exact = features.compare(one, other).features
    contents = [wording(said).content for said in (one, other)]
    decided = distance(one, other), print_of_one, fingerprint.cosine_to(other, print_of_one)
    return (*exact, *contents, vars(features)["cosine"](one.vector, other.vector), *decided)


@settings(max_examples=30, deadline=None)
@given(TEXTS, TEXTS, st.integers(0, 9), st.integers(0, 9), st.integers(0, 10**6))
def test_distance_and_print_are_the_same_in_any_order(
    text: str, other: str, seed: int, other_seed: int, order: int
) -> None:
    """Features, D, the print and its estimate of a cosine are equal to the last bit when the components of vectors are
    added in another order, and weights of words too; features even before they are rounded."""
    pair = observation("one", text, seed), observation("other", other, other_seed)
    before = judged(*pair)
    with disorder(order) as found:
        assert judged(*pair) == before
    assert found.vectors > 2


def test_a_sum_that_hangs_on_its_order_is_noticed() -> None:
    """The check itself: a plain sum of such numbers comes out differently."""
    with disorder(1) as found:
        sums = {found.sum([1e16, 1.0, -1e16, 1.0]) for _ in range(50)}
    assert len(sums) > 1


def test_scenarios_replay_equal_in_another_process_and_another_order(tmp_path: Path) -> None:
    """Recorded here, replayed where sets have another order and every sum too: the same to the last byte."""
    studio = Studio()
    paths = sorted(HERE.glob(f"*{SUFFIX}"))
    for path in paths:
        scenario = parse(path.read_text(encoding="utf-8"), path.name)
        store(studio.rehearse(scenario, path), tmp_path, path.name.removesuffix(SUFFIX))
    told = replayed_elsewhere(tmp_path)
    assert len(told) == 2 * len(paths)
    assert all(one["effects"] > 10 and not one["differences"] for one in told), told


def replayed_elsewhere(folder: Path) -> list[dict[str, Any]]:
    """Replays a folder's recordings in two processes with other orders of sets and sums; returns what they tell."""
    told = []
    for seed in ("1", "2"):
        command = [
            sys.executable,
            "-m",
            "tests.recording.disorder",
            seed,
            *map(str, sorted(folder.glob("*.jsonl"))),
        ]
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        result = subprocess.run(
            command, capture_output=True, text=True, cwd=ROOT, env=environment, timeout=280, check=False
        )
        assert result.returncode == 0, result.stderr
        told += [json.loads(line) for line in result.stdout.splitlines()]
    return told
