"""The load study without Locust: what users do, what they read, what is compared, kept and drawn."""

import csv
from pathlib import Path
from typing import get_args, get_type_hints

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from benchmarks import load_study, soak
from benchmarks.load import doors, framing, pareto
from benchmarks.load.arrivals import Plan, Seen, Turn, percentile, read_plan, read_seen
from benchmarks.load.journal import Journal
from benchmarks.load.policies import POLICIES, RATE_SHARE, TIERS, common, real, stacked
from benchmarks.load.study import Point, behind_ms, key_of, latencies, row
from benchmarks.outcome import Row
from orchestrator.clock import US_PER_S
from orchestrator.flow.limiter import Refusal
from orchestrator.flow.token_limiter import Resource
from orchestrator.scheduling.cost import Charge, Costs
from orchestrator.scheduling.job import Job, Tier
from orchestrator.scheduling.work import Reply
from orchestrator.settings import load
from orchestrator.settings.engines import worker_specs

KEYS = tuple(map(key_of, TIERS))
MARK = {"cpu_s": 1.0, "workers_cpu_s": 2.0, "lag_p99_ms": 3.0}


def test_turns_arrive_at_their_rate_and_the_same_every_time() -> None:
    """A plan's arrivals depend on its seed alone, ascend, and come at the rate that was asked for."""
    plan = Plan(1, 1_000, 50.0, duration_s=200.0, keys=KEYS)
    turns = plan.written()
    assert turns == plan.written() != Plan(1, 1_000, 50.0, seed=2, duration_s=200.0, keys=KEYS).written()
    assert turns == sorted(turns)
    assert len(turns) / plan.until_s == pytest.approx(50.0, rel=0.05)
    assert {group for _, group in turns} == set(range(len(TIERS)))


def test_speakers_have_their_users_share() -> None:
    """Written and spoken turns together come at the rate."""
    plan = Plan(1, 100, 50.0, duration_s=400.0, speaking=50)
    spoken = sum(len(plan.spoken(user)) for user in range(plan.speaking))
    assert spoken / plan.until_s == pytest.approx(25.0, rel=0.1)
    assert len(plan.written()) / plan.until_s == pytest.approx(25.0, rel=0.1)


def test_plan_and_what_was_seen_survive_their_files(tmp_path: Path) -> None:
    """What is read is what was written: the two processes share nothing else."""
    plan = Plan(1, 10, 2.0, keys=("a", "b"))
    plan.write(tmp_path / "plan")
    assert read_plan(tmp_path / "plan") == plan
    seen = Seen(3, 9.0, 1.0, 2.0, [Turn(1.0, 2, 3, True, 1.1, 1.2, 1.3, "completed", 7)], ["user 4: gone"])
    seen.write(tmp_path / "seen")
    assert read_seen(tmp_path / "seen") == seen


@given(st.lists(st.binary(max_size=70_000), max_size=3), st.data())
def test_reader_takes_frames_however_they_are_split(payloads: list[bytes], data: st.DataObject) -> None:
    """Any cut of the bytes gives the same messages in order."""
    wire = b"".join(_from_server(payload) for payload in payloads)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(wire)), max_size=5)))
    reader, found = framing.Reader(), list[framing.Message]()
    for start, stop in zip([0, *cuts], [*cuts, len(wire)], strict=True):
        found += reader.feed(wire[start:stop])
    assert found == [framing.Message(framing.TEXT, payload) for payload in payloads]


def test_reader_refuses_pieces() -> None:
    """A fragment is not silently taken for a message."""
    with pytest.raises(ValueError, match="pieces"):
        framing.Reader().feed(b"\x01\x02ab")


@pytest.mark.parametrize("size", [0, 3, 125, 126, 65_535, 65_536])
def test_frame_is_masked_and_tells_its_size(size: int) -> None:
    """A client's frame unmasks to its payload, in each of the three forms of a length."""
    payload = bytes(range(256)) * (size // 256 + 1)
    payload = payload[:size]
    made = framing.frame(framing.TEXT, payload)
    head = 2 if size < 126 else 4 if size < 65_536 else 10
    assert made[0] == 0x81
    assert made[1] & 0x80
    assert framing.masked(made[head + 4 :], made[head : head + 4]) == payload
    assert len(made) == head + 4 + size


def test_token_bucket_gives_its_burst_then_its_rate() -> None:
    """Five at once, then one every tenth of a second; who is early is told when."""
    bucket = doors.TokenBucket(10.0, burst=5.0)
    assert [bucket.take(US_PER_S) == 0 for _ in range(6)] == [True] * 5 + [False]
    assert bucket.take(US_PER_S) == pytest.approx(0.1)
    assert bucket.take(US_PER_S + 100_001) == 0


@given(st.lists(st.integers(0, 300_000), max_size=80))
def test_sliding_log_is_never_over(gaps: list[int]) -> None:
    """In no window are more let in than the limit, and a refused one is let in when it was told."""
    log, now, let_in = doors.SlidingLog(5, US_PER_S), 0, list[int]()
    for gap in gaps:
        now += gap
        later_s = log.take(now)
        if not later_s:
            let_in.append(now)
        assert sum(now - US_PER_S < at <= now for at in let_in) <= 5
        assert (later_s == 0) or later_s <= 1.0


def test_door_asks_for_answers_only() -> None:
    """Recognition passes; answers are refused over the rate, with a time to come back."""
    door = doors.door("sliding_window", 1.0)
    assert door.reserve("a", 1, {Resource.REQUESTS: 1}, 0) is None
    assert isinstance(door.reserve("b", 2, {Resource.REQUESTS: 1}, 1), Refusal)
    assert door.reserve("b", 2, {Resource.AUDIO_MS: 900}, 1) is None
    with pytest.raises(ValueError, match="doors"):
        doors.door("revolving", 1.0)


def test_door_stands_where_the_servers_quotas_stand() -> None:
    """What the server asks before a reply asks the door: the second reply of a second is refused."""
    costs = Costs(doors.door("token_bucket", 1.0))
    jobs = [
        Job(f"job_{number}", "sess", Reply(messages=()), Tier.GOLD, 2, 0, US_PER_S) for number in range(2)
    ]
    assert isinstance(costs.reserve("a", jobs[0], US_PER_S), Charge)
    assert isinstance(costs.reserve("b", jobs[1], US_PER_S), Refusal)


@pytest.mark.parametrize("name", sorted(POLICIES))
def test_policy_is_a_configuration_that_the_server_takes(name: str, tmp_path: Path) -> None:
    """Every policy is read by the server's own settings, over simulated and over real models."""
    for number, base in enumerate((common(), real())):
        file = tmp_path / f"{number}.yaml"
        file.write_text(yaml.safe_dump(stacked(base, POLICIES[name].settings(42.0))))
        found = load(file, {})
        assert found.server.max_sessions >= 1_000
        assert (found.workers.llm.engine == "benchmarks.load.accelerator:make") == (number == 0)
        if number == 0:
            assert {spec.kind for spec in worker_specs(found)} == {"asr", "understand", "llm"}


def test_a_real_worker_begins_at_its_own_number() -> None:
    """What was found for the simulated accelerator is not put on a model that has four places."""
    simulated, installed = (
        Point(POLICIES["best"], 1.0, 42.0, Plan(1, 8, 1.0), real=which) for which in (False, True)
    )
    assert simulated.tree["workers"]["llm"]["limit"]["base"] == 32
    assert installed.tree["workers"]["llm"]["limit"] == {"policy": "aimd", "base": None}


def test_quotas_of_the_fused_limiter_are_the_share_of_each_tier() -> None:
    """Together the tiers may have what the other rates let in."""
    limits = POLICIES["fused"].settings(100.0)["limits"]
    per_s = sum(quota["requests"] / quota["window_s"] for quota in limits.values())
    assert per_s == pytest.approx(RATE_SHARE * 100.0, rel=0.02)


def test_stacked_changes_neither_tree() -> None:
    """The upper tree wins, section by section, and both stay as they were."""
    below, above = {"a": {"b": 1, "c": 2}}, {"a": {"c": 3}, "d": 4}
    assert stacked(below, above) == {"a": {"b": 1, "c": 3}, "d": 4}
    assert below == {"a": {"b": 1, "c": 2}}


def test_latency_counts_what_still_waits_and_not_what_was_refused() -> None:
    """From the intended time to the first text; a turn that never ended counts with all it has waited."""
    turns = [
        Turn(1.0, sent_s=1.5, first_s=2.0, done_s=3.0, outcome="completed"),
        Turn(4.0, sent_s=4.0, done_s=4.1, outcome="rate_limit_exceeded"),
        Turn(5.0),
    ]
    assert latencies(turns, 10.0) == [1_000.0, 5_000.0]


def test_row_counts_what_was_meant_for_the_measured_time() -> None:
    """The warm-up is left out; spoken turns, refusals, faults and what is unfinished are told apart."""
    plan = Plan(1, 10, 1.0, warm_s=5.0, duration_s=10.0, keys=KEYS)
    turns = [
        Turn(1.0, 0, 0, sent_s=1.0, first_s=1.1, done_s=1.2, outcome="completed"),
        Turn(6.0, 0, 0, sent_s=6.0, first_s=6.1, done_s=7.0, outcome="completed", tokens=4),
        Turn(7.0, 3, 3, sent_s=7.0, done_s=7.0, outcome="rate_limit_exceeded"),
        Turn(8.0, 1, 1, sent_s=8.0),
        Turn(9.0, 1, 1, outcome="closed"),
        Turn(9.0, 2, 2, True, sent_s=9.0, first_s=11.0, done_s=12.0, outcome="completed"),
    ]
    point = Point(POLICIES["none"], 1.0, 1.0, plan)
    found = row(point, plan, Seen(10, 20.0, 1.0, 0.0, turns), [MARK, {**MARK, "cpu_s": 1.6}])
    assert found["turns/s"] == 0.1
    assert found["refused"] == 0.25
    assert (found["unfinished"], found["other"], found["spoken done"]) == (1, 1, 1)
    assert found["p95 ms"] == pytest.approx(12_000.0)
    assert found["spoken p95 ms"] == pytest.approx(2_000.0)
    assert found["server ms/turn"] == pytest.approx(100.0)
    assert found["platinum done"] == 1.0
    assert found["silver done"] == 0.0


def test_behind_is_the_worst_that_the_accelerator_said() -> None:
    """Read from the server's log; nothing said is nothing behind."""
    assert behind_ms("x") == 0
    line = "worker llm: WARNING the simulated accelerator is {} ms behind its time-table\n"
    assert behind_ms(line.format(300) + line.format(900) + line.format(500)) == 900


def test_front_is_what_nothing_beats() -> None:
    """A point that is slower and does no more than another is on no front; nor is one that answered nothing."""
    rows: list[Row] = [
        {"policy": "a", "load": 1, "turns/s": 10.0, "p95 ms": 100.0},
        {"policy": "a", "load": 2, "turns/s": 20.0, "p95 ms": 400.0},
        {"policy": "b", "load": 1, "turns/s": 10.0, "p95 ms": 150.0},
        {"policy": "b", "load": 2, "turns/s": 25.0, "p95 ms": 900.0},
        {"policy": "c", "load": 1, "turns/s": 0.0, "p95 ms": None},
    ]
    assert pareto.front(rows) == [rows[0], rows[1], rows[3]]


def test_table_and_picture_are_written(tmp_path: Path) -> None:
    """The table says who is on the front of all or of its own policy only; the picture is a PNG."""
    rows: list[Row] = [
        {"policy": "none", "load": 1, "turns/s": 10.0, "p95 ms": 100.0},
        {"policy": "best", "load": 1, "turns/s": 10.0, "p95 ms": 90.0},
    ]
    pareto.write_csv(rows, tmp_path / "x.csv")
    with (tmp_path / "x.csv").open() as file:
        assert [line["front"] for line in csv.DictReader(file)] == ["own", "all"]
    pareto.draw(rows, tmp_path / "x.png", "two points")
    assert (tmp_path / "x.png").read_bytes().startswith(b"\x89PNG")


def test_journal_goes_on_where_a_run_was_cut_off(tmp_path: Path) -> None:
    """Rows are found again by their key; half a line at the end is as if it were not there."""
    file = tmp_path / "rows.jsonl"
    plan = Plan(1, 10, 2.0)
    point = Point(POLICIES["none"], 1.0, 2.0, plan)
    Journal(file).add(point.key, {"turns/s": 2.0})
    with file.open("a") as half:
        half.write('{"key": {"policy": "be')
    again = Journal(file)
    assert again.find(point.key) == {"turns/s": 2.0}
    assert again.find(Point(POLICIES["best"], 1.0, 2.0, plan).key) is None
    assert again.find(Point(POLICIES["none"], 1.0, 3.0, plan).key) is None


def test_percentile_is_the_nearest_rank() -> None:
    """Of a hundred values the 95th; of one the one; of none nothing."""
    assert percentile([float(value) for value in range(1, 101)], 0.95) == 95.0
    assert percentile([7.0], 0.95) == 7.0
    assert percentile([], 0.5) is None


def test_soak_holds_the_last_third_against_the_second() -> None:
    """Memory that grows by a tenth from the second third to the last fails; what grows in the first does not."""
    flat = [dict.fromkeys(soak.MOST_GROWTH, 100.0) for _ in range(6)]
    assert all(claim.holds for claim in soak.claims(flat))
    warming = [{**row, "memory MiB": 50.0} for row in flat[:2]] + flat[2:]
    assert all(claim.holds for claim in soak.claims(warming))
    growing = [*flat[:4], *({**row, "memory MiB": 110.0} for row in flat[4:])]
    assert [claim.text.partition(":")[0] for claim in soak.claims(growing) if not claim.holds] == [
        "memory MiB"
    ]
    assert soak.claims(flat[:2]) == []


def test_soak_tells_turns_and_samples_by_minute() -> None:
    """A turn and a sample belong to the minute in which they were; a minute without samples is left out."""
    plan = Plan(1, 10, 1.0, warm_s=5.0, duration_s=120.0)
    sample = {
        "at_s": 10.0, "memory_bytes": 2 * soak.MIB, "workers_memory_bytes": 0, "tasks": 7, "blocks": 9, "sessions": 10,
        "lag_p99_ms": 1.0,
    }  # fmt: skip
    turns = [Turn(6.0, first_s=6.5, done_s=7.0, outcome="completed"), Turn(64.9), Turn(65.1)]
    rows = soak.by_minute(plan, Seen(ended_s=70.0, turns=turns), [sample])
    assert [(row["minute"], row["turns"], row["failed"], row["tasks"]) for row in rows] == [(1, 2, 1, 7.0)]
    assert rows[0]["memory MiB"] == 2.0


def _from_server(payload: bytes) -> bytes:
    size = len(payload)
    if size < 126:
        return bytes((0x81, size)) + payload
    if size < 65_536:
        return b"\x81\x7e" + size.to_bytes(2) + payload
    return b"\x81\x7f" + size.to_bytes(8) + payload


@pytest.mark.parametrize("name", ["users", "python", "json_file"])
def test_load_study_and_soak_mean_the_same_by_an_option(name: str) -> None:
    """One definition for both commands: no help that says one thing here and another there."""
    one, other = (get_type_hints(run.command, include_extras=True)[name] for run in (load_study, soak))
    assert get_args(one)[-1] is get_args(other)[-1]
