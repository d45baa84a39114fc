"""`chorale bench voice`: from the end of speech to the first sound of the reply, by stage, the peer's beside ours.

The benchmark starts its own servers, calls them as clients do, and asks short questions in real time. Everything is
measured at the client: the last sample of speech that was sent, each event, the first packet with sound in it.
"""

import asyncio
import json
import os
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from benchmarks.outcome import Claim, Outcome, Row, screen, shown, this_machine
from benchmarks.outcome import table as drawn
from benchmarks.voice_cases import (
    INSTRUCTIONS,
    REPLY_TOKENS,
    Case,
    Measured,
    run_case,
    session_of,
    silent_share,
)
from benchmarks.voice_clips import Clip, recorded, synthesized
from benchmarks.voice_lines import CallDoors, Doors, PeerCallDoors, PeerSocketDoors, SocketDoors
from benchmarks.voice_plot import draw
from benchmarks.voice_servers import ChildServer, ServerFailed, chorale, pipecat
from modalities.errors import AdapterUnavailable

OURS, PEER = "chorale", "pipecat"
WEBRTC, WEBSOCKET = "webrtc", "websocket"
SILENT_S = 10.0


def command(
    calls: Annotated[str, typer.Option(help="Calls at the same time, a row for each.")] = "1,2,4,8",
    turns: Annotated[int, typer.Option(min=1, help="Questions of each row, all calls together.")] = 30,
    transports: Annotated[str, typer.Option(help="webrtc, websocket or both.")] = f"{WEBRTC},{WEBSOCKET}",
    ends: Annotated[
        str, typer.Option(help="Ends of turn. All calls for the first, the least number for the others.")
    ] = "server_vad 200",
    early: Annotated[
        str, typer.Option(help="Replies begun before the turn is certain: on, off, both.")
    ] = "on",
    peer_python: Annotated[Path | None, typer.Option(help="An interpreter that has the peer.")] = None,
    only_peer: Annotated[bool, typer.Option(help="Leave ours out.")] = False,
    speech: Annotated[Path | None, typer.Option(help="Folder of recordings to ask with.")] = None,
    overrides: Annotated[
        list[str] | None, typer.Option("--set", help="A setting of ours: KEY=VALUE; as often as wanted.")
    ] = None,
    silent: Annotated[int, typer.Option(help="So many silent calls are measured too; 0: none.")] = 4,
    add_to: Annotated[Path | None, typer.Option(help="JSON of an earlier run: its rows are kept.")] = None,
    json_file: Annotated[Path | None, typer.Option("--json", help="Where the figures go.")] = None,
    plot: Annotated[Path | None, typer.Option(help="Where the picture goes (PNG).")] = None,
) -> None:
    """Time from the end of speech to the first reply sound, by stage; the peer's beside ours.

    \b
    chorale bench voice                                  ours, both transports, 1 to 8 calls
    chorale bench voice --peer-python peer/bin/python    and the peer (docs/speed.md: how to have one)
    chorale bench voice --calls 1 --turns 6 --transports webrtc
    chorale bench voice --ends "server_vad 200,server_vad 500,semantic_vad" --early both
    chorale bench voice --set workers.llm.threads=2 --calls 4
    """
    console, machine = screen(), this_machine()
    console.print(f"[dim]{machine}[/]")
    try:
        settings = dict(_setting(override) for override in overrides or ())
        cases = list(_cases(calls, turns, transports, ends, early, peer_python is not None, only_peer))
        clips = recorded(speech) if speech is not None else synthesized()
    except (ValueError, OSError, LookupError, AdapterUnavailable) as error:
        console.print(str(error), highlight=False)
        raise typer.Exit(2) from None
    if peer_python is None:
        console.print("Without --peer-python only ours is measured.", highlight=False)
    outcome = Outcome(
        "voice", {"calls": calls, "turns": turns, "transports": transports, "ends": ends, "early": early}
    )
    earlier = json.loads(add_to.read_text())["tables"] if add_to is not None else {}
    plan = _Plan(cases, clips, settings, peer_python, silent)

    def keep() -> None:
        """Fills the outcome in; a run that is broken off leaves what it has."""
        _fill(outcome, earlier, plan)
        if json_file is not None:
            outcome.write(json_file, machine)

    try:
        asyncio.run(_run(console, plan, keep))
    except ServerFailed as error:
        console.print(str(error), highlight=False)
        raise typer.Exit(1) from None
    keep()
    rows = outcome.tables["voice"]
    console.print(drawn("End of speech to first sound, ms (stages: medians)", rows))
    if outcome.tables["silent"]:
        console.print(drawn("Silent calls, % of a core", outcome.tables["silent"]))
    if plan.told:
        console.print(drawn("As the server tells it, ms (medians)", plan.told))
    outcome.show(console)
    if plot is not None:
        draw(rows, plot)
    console.print(f"written to {os.path.relpath(outcome.write(json_file, machine))}")
    raise typer.Exit(0 if outcome.holds else 1)


def _fill(outcome: Outcome, earlier: Mapping[str, Sequence[Row]], plan: "_Plan") -> None:
    new: dict[str, Sequence[Row]] = {
        "voice": [one.row() for one in plan.measured],
        "silent": plan.quiet,
        "turns": _turns(plan.measured),
        "early": plan.told,
    }
    outcome.tables = {name: [*earlier.get(name, ()), *rows] for name, rows in new.items()}
    outcome.claims = claims(outcome.tables["voice"])


class _Plan:
    """What is to be run, and what comes of it beside the rows."""

    def __init__(
        self,
        cases: Sequence[Case],
        clips: Sequence[Clip],
        settings: Mapping[str, str],
        peer: Path | None,
        silent: int,
    ) -> None:
        self.cases = cases
        self.clips = clips
        self.settings = settings
        self.peer = peer
        self.silent = silent
        self.measured: list[Measured] = []
        self.quiet: list[Row] = []
        self.told: list[Row] = []

    def servers(self) -> list[list[Case]]:
        """Returns the cases of each server to be started."""
        kinds: dict[tuple[str, bool], list[Case]] = {}
        for case in self.cases:
            kinds.setdefault((case.server, case.early), []).append(case)
        return list(kinds.values())

    def start(self, case: Case, log: Path) -> AbstractAsyncContextManager[ChildServer]:
        """Starts the server that a case needs."""
        if case.server == PEER:
            assert self.peer is not None
            stop_s = int(case.end.partition(" ")[2] or 200) / 1000
            options = {
                "--stop-secs": str(stop_s),
                "--max-tokens": str(REPLY_TOKENS),
                "--instructions": INSTRUCTIONS,
            }
            return pipecat(self.peer, log, options)
        early = {} if case.early else {"CHORALE_SESSIONS__EARLY_REPLIES": "false"}
        return chorale(log, {**self.settings, **early})


async def _run(console: Console, plan: _Plan, keep: Callable[[], None]) -> None:
    total = sum(-(-case.turns // case.calls) * case.calls for case in plan.cases)
    columns = TextColumn("{task.description:58}"), MofNCompleteColumn(), TimeElapsedColumn()
    with tempfile.TemporaryDirectory() as folder, Progress(*columns, console=console) as bar:
        task = bar.add_task("starting", total=total)
        for number, cases in enumerate(plan.servers()):
            async with plan.start(cases[0], Path(folder) / f"{number}.log") as server:
                for case in cases:
                    bar.update(task, description=case.title)
                    doors = _doors(case, server)
                    if case is cases[0]:
                        warm = Case(case.server, case.transport, case.end, 1, 1, case.early)
                        await run_case(warm, doors, server, plan.clips, lambda _: None)
                    told = len(server.turns())
                    plan.measured.append(
                        await run_case(case, doors, server, plan.clips, lambda _: bar.advance(task))
                    )
                    plan.told += _told(case, server.turns()[told:])
                    keep()
                if plan.silent and cases[0].early:
                    plan.quiet += await _silence(cases[0], server, plan.silent)


async def _silence(case: Case, server: ChildServer, calls: int) -> list[Row]:
    own, everything = await silent_share(_doors(case, server), server, calls, SILENT_S)
    return [
        {
            "server": case.server,
            "transport": case.transport,
            "silent calls": calls,
            "server %": round(100 * own, 1),
            "all %": round(100 * everything, 1),
        }
    ]


def _doors(case: Case, server: ChildServer) -> Doors:
    if case.server == PEER:
        if case.transport == WEBRTC:
            return PeerCallDoors(server.url, server.subscribe)
        return PeerSocketDoors(server.url, server.subscribe)
    return CallDoors(server.url) if case.transport == WEBRTC else SocketDoors(server.url)


def _cases(
    calls: str, turns: int, transports: str, ends: str, early: str, peer: bool, only_peer: bool
) -> Iterator[Case]:
    """Yields the rows: first ours and then the peer's. Raises `ValueError`."""
    numbers = [int(number) for number in calls.split(",")]
    ways, ends_of_turn = _split(transports), _split(ends)
    if not set(ways) <= {WEBRTC, WEBSOCKET}:
        raise ValueError(f"transports are {WEBRTC} and {WEBSOCKET}, not {transports}")
    if early not in ("on", "off", "both"):
        raise ValueError("--early is on, off or both")
    for is_early in [] if only_peer else [True, False] if early == "both" else [early == "on"]:
        for way in ways:
            for end in ends_of_turn:
                for number in numbers if end == ends_of_turn[0] else [min(numbers)]:
                    yield Case(OURS, way, end, number, turns, is_early)
    for way in ways if peer else ():
        for number in numbers:
            yield Case(PEER, way, ends_of_turn[0], number, turns)


def _split(names: str) -> list[str]:
    return [name.strip() for name in names.split(",") if name.strip()]


def _setting(override: str) -> tuple[str, str]:
    """Returns a setting as a variable of the environment. Raises `ValueError`."""
    key, equals, value = override.partition("=")
    if not equals:
        raise ValueError(f"--set wants KEY=VALUE, not {override!r}")
    return "CHORALE_" + key.strip().upper().replace(".", "__"), value


def _turns(measured: Sequence[Measured]) -> list[dict[str, Any]]:
    return [{"case": one.case.title, **session_of(turn)} for one in measured for turn in one.turns]


def _told(case: Case, lines: Sequence[Mapping[str, Any]]) -> list[Row]:
    """Returns a row of what the server itself logged about the turns of a case; none where it logs nothing."""
    if not lines:
        return []
    row: dict[str, Any] = {"case": case.title, "turns": len(lines)}
    for name in ("end_point_ms", "transcript_ms", "first_token_ms", "first_sentence_ms", "first_sound_ms"):
        known = sorted(line[name] for line in lines if isinstance(line.get(name), int | float))
        row[name.removesuffix("_ms")] = round(known[len(known) // 2]) if known else None
    row["early"] = sum(line.get("early") in ("reply", "transcript") for line in lines)
    return [row]


def claims(rows: Sequence[Row]) -> list[Claim]:
    """Returns what is claimed of the rows: against the peer's of the same run, and by themselves."""
    found = []
    for row in rows:
        if row["server"] != OURS or "nothing early" in str(row["end of turn by"]):
            continue
        calls, about = row["calls"], f"{row['transport']}, {row['end of turn by']}"
        if row["answered"] != row["turns"]:
            text = f"every turn is answered ({about}, {calls} calls)"
            found.append(Claim(text, False, f"{row['answered']} of {row['turns']}"))
        if calls == 8:
            text = f"with 8 calls 95 % are answered within 3 s ({about})"
            found.append(Claim(text, isinstance(row["p95"], int) and row["p95"] <= 3000, row["p95"]))
        share = {1: 0.5, 4: 0.3}.get(calls if isinstance(calls, int) else 0)
        theirs = [other for other in rows if other["server"] == PEER and _same(row, other)]
        for other in theirs if share is not None else ():
            text = f"p50 with {calls} calls is at most {share} of the peer's ({about})"
            ours_ms, theirs_ms = row["p50"], other["p50"]
            if not isinstance(theirs_ms, int):  # it answers nothing in time
                found.append(Claim(text, isinstance(ours_ms, int), f"{shown(ours_ms)} against none"))
            elif isinstance(ours_ms, int):
                ratio = round(ours_ms / theirs_ms, 2)
                found.append(Claim(text, share is not None and ratio <= share, ratio))
    return found


def _same(row: Row, other: Row) -> bool:
    return all(row[key] == other[key] for key in ("transport", "end of turn by", "calls"))
