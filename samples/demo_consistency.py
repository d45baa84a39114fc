"""Play the recorded sessions of samples/sessions/ to the server's models and tell what came of each:

    make demo-consistency                                     all of them
    .venv/bin/python samples/demo_consistency.py day place    two of them
    .venv/bin/python samples/demo_consistency.py my/own.session.yaml

Exit codes: 0 all went as expected, 1 one did not, 2 one cannot be read or the models do not start.
"""

import sys
from pathlib import Path

from orchestrator.errors import ChoraleError
from orchestrator.recording.rehearsal import Rehearsed
from orchestrator.recording.scenario import SUFFIX, Input, Scenario, parse
from orchestrator.settings.studio import Studio

LEFT_OUT = ("input_audio_buffer.", "response.created")
SESSIONS = Path(__file__).parent / "sessions"


def chosen(names: list[str]) -> list[Path]:
    everything = sorted(SESSIONS.glob(f"*{SUFFIX}"))
    paths = [
        Path(one) if one.endswith(SUFFIX) else SESSIONS / f"{one}{SUFFIX}" for one in names
    ] or everything
    for path in paths:
        if not path.is_file():
            there = ", ".join(one.name.removesuffix(SUFFIX) for one in everything)
            print(
                f"There is no session {path.name.removesuffix(SUFFIX)}; there are: {there}", file=sys.stderr
            )
            sys.exit(2)
    return paths


def done(one: Input) -> str:
    """Says in words what an input does."""
    if one.tokens is not None:
        return "filled in: " + ", ".join(f"{slot} = {value}" for slot, value in one.tokens.items())
    if one.text is not None:
        return f"typed: {one.text}"
    if one.event is not None:
        return f"sent: {one.event.get('type')} {one.event.get('text', '')}".rstrip()
    return f"said: {one.words}" if one.words else "a recording"


def show(name: str, scenario: Scenario, rehearsed: Rehearsed) -> None:
    story = rehearsed.story
    print(f"\n{name}: {scenario.about}")
    for one in scenario.inputs:
        print(f"  {one.at:8.3f} s  {done(one)}")
    print("  what the server made of it:")
    for line in story.lines():
        if not any(part in line for part in LEFT_OUT):
            print(f"  {line}")
    slots = ", ".join(f"{slot} = {value}" for slot, value in sorted(story.slots.items()))
    print(f"  committed: {slots or 'nothing'}")
    for miss in rehearsed.misses:
        print(f"  NOT AS EXPECTED: {miss.what}: expected {miss.expected}, got {miss.got}")
    if not rehearsed.misses:
        print("  as expected")


def main(names: list[str]) -> int:
    paths, failed = chosen(names), []
    studio = Studio()
    try:
        for path in paths:
            name = path.name.removesuffix(SUFFIX)
            scenario = parse(path.read_text(encoding="utf-8"), path.name)
            rehearsed = studio.rehearse(scenario, path)
            show(name, scenario, rehearsed)
            if rehearsed.misses:
                failed.append(name)
    except (ChoraleError, OSError) as error:
        print(error, file=sys.stderr)
        return 2
    finally:
        studio.close()
    print(f"\n{len(paths) - len(failed)} of {len(paths)} sessions went as expected.")
    if failed:
        print(f"Not as expected: {', '.join(failed)}")
    return 1 if failed else 0


if __name__ == "__main__":
    if set(sys.argv[1:]) & {"-h", "--help"}:
        print(__doc__)
        sys.exit()
    sys.exit(main(sys.argv[1:]))
