"""Play the recorded sessions of samples/sessions/ to the server's models and tell what came of each:

    make demo-consistency                                     all of them
    .venv/bin/python samples/demo_consistency.py day place    two of them
    .venv/bin/python samples/demo_consistency.py my/own.session.yaml
    .venv/bin/python samples/demo_consistency.py --out recordings/     … written down, for `chorale replay`

Exit codes: 0 all went as expected, 1 one did not, 2 one cannot be read or the models do not start.
"""

import sys
import textwrap
from argparse import ArgumentParser, RawDescriptionHelpFormatter
from collections.abc import Iterator
from pathlib import Path

from orchestrator.errors import ChoraleError
from orchestrator.recording.rehearsal import Rehearsed
from orchestrator.recording.scenario import SUFFIX, Input, Scenario, parse
from orchestrator.recording.story import Story
from orchestrator.settings.studio import Studio, store

LEFT_OUT = ("input_audio_buffer.", "response.", "chorale.frozen", "chorale.rolled_back")
"""The last two say what the verdict before them says."""

WIDTH = 118
LEGEND = """D is the probability that two texts contradict each other. From 0.5 on it is looked into, with the sound of
what was said; where the sound bears it out, nothing of the turn counts until one of both is chosen.
"hangs together" tells how well what was noted fits the conversation; below 0.6 it leaves again.
"the sound says 50 for 15: -5.7": 15 was said rather than 50, with that logarithm of a likelihood ratio.
Answers are those of a small model, cut short: they are not what this is about."""
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
        return "the user fills in: " + ", ".join(f"{slot} = {value}" for slot, value in one.tokens.items())
    if one.text is not None:
        return f"the user types: {one.text}"
    if one.event is not None and one.event.get("type") == "chorale.caption":
        return f"the client's own recogniser hears: {one.event.get('text')}"
    if one.event is not None:
        return f"the client sends: {one.event.get('type')}"
    return f"the user says: {one.words or 'what is in a recording'}"


def lines(scenario: Scenario, story: Story) -> Iterator[str]:
    """Yields what happened, in the order in which it did: the user at the margin, the server's part below it."""
    happened = [(round(one.at * 1e6), 0, done(one)) for one in scenario.inputs]
    happened += [
        (one.at_us, 1 if one.type.endswith("transcription.completed") else 2, one.text)
        for one in story.told
        if not one.type.startswith(LEFT_OUT)
    ]
    happened += [
        (one.at_us, 3, f"answered: {flat(one.words)}") for one in story.said if one.role == "assistant"
    ]
    happened.sort(key=lambda one: one[:2])
    last_us, last = -1, ""
    for at_us, part, text in happened:
        if text != last:
            time = f"{at_us / 1e6:7.2f} s" if at_us != last_us else ""
            margin = f"{time:>9}  " + ("  " if part else "")
            yield from textwrap.wrap(text, WIDTH, initial_indent=margin, subsequent_indent=" " * 15)
        last_us, last = at_us, text


def flat(text: str) -> str:
    return " ".join(text.split())


def show(name: str, scenario: Scenario, rehearsed: Rehearsed) -> None:
    story = rehearsed.story
    print(f"\n{name}")
    print("\n".join(textwrap.wrap(scenario.about, WIDTH, initial_indent="  ", subsequent_indent="  ")))
    for line in lines(scenario, story):
        print(line)
    users = [flat(one.words) for one in story.said if one.role == "user" and one.words.strip()]
    print(f"  stands in the end: {' | '.join(users) or 'nothing'}")
    slots = ", ".join(f"{slot} = {value}" for slot, value in sorted(story.slots.items()))
    print(f"  committed: {slots or 'nothing'}")
    for miss in rehearsed.misses:
        print(f"  NOT AS EXPECTED: {miss.what}: expected {miss.expected}, got {miss.got}")
    if not rehearsed.misses:
        print("  as expected")


def main(names: list[str], out: Path | None) -> int:
    paths, failed = chosen(names), []
    studio = Studio()
    print(LEGEND)
    try:
        for path in paths:
            name = path.name.removesuffix(SUFFIX)
            scenario = parse(path.read_text(encoding="utf-8"), path.name)
            rehearsed = studio.rehearse(scenario, path)
            show(name, scenario, rehearsed)
            if out is not None:
                store(rehearsed, out, name)
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
    parser = ArgumentParser(description=__doc__, formatter_class=RawDescriptionHelpFormatter)
    parser.add_argument("sessions", nargs="*", metavar="SESSION", help="its name, or a *.session.yaml")
    parser.add_argument("--out", type=Path, metavar="DIR", help="where the sessions are written down")
    options = parser.parse_args()
    sys.exit(main(options.sessions, options.out))
