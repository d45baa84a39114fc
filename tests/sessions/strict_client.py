"""A client that believes nothing: follows every event as the strictest of the known clients do, and says what is wrong.

It mirrors the conversation by `previous_item_id` alone, and knows of responses and items what the events said so far.
What single events have to look like is in `strict_shapes`; here is what they have to do with each other.
"""

import json
from dataclasses import dataclass, field

from tests.sessions.strict_shapes import Shown, Violation, check_shape, must


@dataclass
class Output:
    """An item of a response."""

    item: Shown
    index: int
    part: str = ""
    text: str = ""
    arguments: str = ""
    finished: set[str] = field(default_factory=set)


@dataclass
class Response:
    """A response that was created."""

    shown: Shown
    done: bool = False
    outputs: dict[str, Output] = field(default_factory=dict)


class StrictClient:
    """Feed it every event in order; `end` once nothing more can come.

    `on_the_wire`: the events are those of one connection, whole, with what is told to it alone. Without, they are
    what a session logs for all of its connections.
    """

    def __init__(self, *, on_the_wire: bool = False) -> None:
        self._on_the_wire = on_the_wire
        self._event_ids: set[str] = set()
        self._session_id: str | None = None
        self.order: list[str] = []
        """The conversation, as the events tell it."""
        self.items: dict[str, Shown] = {}
        self.finished: set[str] = set()
        self.responses: dict[str, Response] = {}
        self.transcripts: dict[str, str] = {}
        self.owed: set[str] = set()
        self.speech: dict[str, Shown] = {}
        self.committed: dict[str, str | None] = {}
        """Behind which item each stands."""
        self.playing: dict[str, str] = {}
        self._transcribes = False
        self._hears_early = False

    def feed(self, event: Shown) -> None:
        """Takes one event. Raises `Violation`."""
        name = event["type"]
        try:
            if self._on_the_wire:
                self._envelope(event)
            check_shape(event)
            match name.split("."):
                case [
                    "conversation",
                    "item",
                    "added" | "done" | "deleted" | "truncated" | "retrieved" as what,
                ]:
                    self._item(what, event)
                case ["conversation", "item", "input_audio_transcription", what]:
                    self._transcription(what, event)
                case ["input_audio_buffer", what]:
                    self._buffer(what, event)
                case ["response", "created"]:
                    self._created(event["response"])
                case ["response", "done"]:
                    self._done(event["response"])
                case ["response", _, _]:
                    self._inside(event)
                case ["output_audio_buffer", what]:
                    self._playout(what, event["response_id"])
                case ["session", "created"]:
                    must(self._session_id is None, "a second session.created")
                    self._session_id = event["session"]["id"]
                case ["session", "updated"]:
                    must(self._session_id in (None, event["session"]["id"]), "another session")
                    self._transcribes = event["session"]["audio"]["input"]["transcription"] is not None
                    # Clients of Chorale's own are shown words while they are spoken, before there is an item.
                    self._hears_early = "chorale" in event["session"]
                case ["error"] | ["rate_limits", "updated"]:
                    pass
                case ["chorale", _]:
                    must(self._hears_early, "an event of Chorale's own that nobody asked for")
                    if event["type"] == "chorale.overload" and event["response_id"] is not None:
                        must(not self.responses[event["response_id"]].done, "of a response that is done")
                case _:
                    raise Violation("outside of the catalogue")
        except (Violation, KeyError, ValueError) as why:
            raise Violation(f"{why}: {json.dumps(event)[:500]}") from why

    def _envelope(self, event: Shown) -> None:
        first = not self._event_ids
        must(first == (event["type"] == "session.created"), "session.created is not what comes first")
        event_id = event["event_id"]
        must(isinstance(event_id, str) and event_id != "", "no event_id")
        must(event_id not in self._event_ids, "an event_id that was there before")
        self._event_ids.add(event_id)

    def end(self, call_is_there: bool = True) -> None:
        """Everything that began has ended. Raises `Violation`."""
        must(all(response.done for response in self.responses.values()), "a response was never done")
        must(set(self.order) <= self.finished, "an item was never done")
        must(not self.owed, f"no end of the transcription of {self.owed}")
        must(self.speech.keys() <= self.committed.keys() | self._unfinished(), "speech was never committed")
        if call_is_there:
            must("started" not in self.playing.values(), "sound neither stopped nor was cleared")

    def _unfinished(self) -> set[str]:
        return {item_id for item_id, event in self.speech.items() if event["type"].endswith("started")}

    # -- items ------------------------------------------------------------------------------------------------------

    def _item(self, what: str, event: Shown) -> None:
        item = event.get("item", {})
        item_id = item["id"] if item else event["item_id"]
        if what == "added":
            must(item_id not in self.order, "added twice")
            previous = event["previous_item_id"]
            must(previous is None or previous in self.order, "previous_item_id is unknown")
            must(item_id not in self.speech or item_id in self.committed, "added before it was committed")
            must(self.committed.get(item_id, previous) == previous, "not where it was committed")
            made = [
                response.outputs[item_id]
                for response in self.responses.values()
                if item_id in response.outputs
            ]
            must(not made or item["status"] == "in_progress", "added completed")
            self.order.insert(0 if previous is None else self.order.index(previous) + 1, item_id)
            self.finished.discard(item_id)
        elif what == "done":
            must(item_id in self.order and item_id not in self.finished, "done twice or not added")
            must(item["status"] != "in_progress", "done in progress")
            at = self.order.index(item_id)
            must(event["previous_item_id"] == (self.order[at - 1] if at else None), "wrong previous_item_id")
            self.finished.add(item_id)
            if self._transcribes and any(part == "input_audio" for part in _parts(item)):
                self.owed.add(item_id)
        else:
            must(item_id in self.items, "of an item that never was")
            if what == "deleted" and item_id in self.order:
                self.order.remove(item_id)
        if what == "retrieved" and item_id in self.transcripts:
            must(
                item["content"][0]["transcript"] == self.transcripts[item_id],
                "the transcript is not on the item",
            )
        if what == "truncated":
            must(self.items[item_id].get("role") == "assistant", "of what was not said by the assistant")
        if item:
            self.items[item_id] = item

    def _transcription(self, what: str, event: Shown) -> None:
        item_id = event["item_id"]
        early = self._hears_early and what == "delta" and item_id in self.speech
        must(item_id in self.items or early, "of an item that was not added")
        must(item_id not in self.transcripts, "after its end")
        must(event["content_index"] == 0, "content_index")
        if what == "completed":
            self.transcripts[item_id] = event["transcript"]
            must(event["usage"]["type"] == "duration" and event["usage"]["seconds"] >= 0, "usage")
        elif what == "failed":
            self.transcripts[item_id] = ""
        else:
            must(bool(event["delta"]), "empty delta")
        if what != "delta":
            self.owed.discard(item_id)

    # -- sound in ---------------------------------------------------------------------------------------------------

    def _buffer(self, what: str, event: Shown) -> None:
        item_id = event.get("item_id", "")
        match what:
            case "speech_started":
                must(item_id not in self.speech, "started twice")
                ends = [e["audio_end_ms"] for e in self.speech.values() if "audio_end_ms" in e]
                must(event["audio_start_ms"] >= max(ends, default=0), "begins before the last one ended")
                self.speech[item_id] = event
            case "speech_stopped":
                started = self.speech[item_id]
                must(started["type"].endswith("started"), "stopped twice")
                must(event["audio_end_ms"] >= started["audio_start_ms"], "ends before it begins")
                self.speech[item_id] = event
            case "committed":
                must(item_id not in self.committed, "committed twice")
                must(item_id not in self._unfinished(), "committed while it goes on")
                previous = event["previous_item_id"]
                must(previous is None or previous in self.order, "previous_item_id is unknown")
                self.committed[item_id] = previous
            case "timeout_triggered":
                must(
                    item_id not in self.committed and item_id not in self.speech, "of an item that was there"
                )
                must(event["audio_start_ms"] <= event["audio_end_ms"], "ends before it begins")
            case "cleared":
                pass
            case _:
                raise Violation("unknown")

    # -- responses --------------------------------------------------------------------------------------------------

    def _created(self, shown: Shown) -> None:
        must(shown["id"] not in self.responses, "created twice")
        must(
            (shown["status"], shown["output"], shown["usage"]) == ("in_progress", [], None), "not as at birth"
        )
        if shown["conversation_id"] is not None:
            active = [r for r in self.responses.values() if not r.done and r.shown["conversation_id"]]
            must(not active, "a second one in the default conversation")
        self.responses[shown["id"]] = Response(shown)

    def _done(self, shown: Shown) -> None:
        response = self.responses[shown["id"]]
        must(not response.done, "done twice")
        response.done = True
        must(shown["metadata"] == response.shown["metadata"], "metadata")
        must(shown["conversation_id"] == response.shown["conversation_id"], "conversation_id")
        must(shown["output"] == [output.item for output in response.outputs.values()], "output")
        for item_id, output in response.outputs.items():
            must("item" in output.finished, f"{item_id} is open")
            if shown["conversation_id"] is not None:
                must(item_id in self.finished or item_id not in self.order, f"{item_id} is not done")

    def _inside(self, event: Shown) -> None:
        response = self.responses[event["response_id"]]
        must(not response.done, "after response.done")
        _, what, step = event["type"].split(".")
        if what == "output_item" and step == "added":
            must(event["output_index"] == len(response.outputs), "output_index")
            must(event["item"]["status"] == "in_progress", "added completed")
            response.outputs[event["item"]["id"]] = Output(event["item"], event["output_index"])
            return
        output = response.outputs[event["item"]["id"] if "item" in event else event["item_id"]]
        must(event["output_index"] == output.index, "output_index")
        must("item" not in output.finished, "after output_item.done")
        if response.shown["conversation_id"] is not None:
            must(output.item["id"] in self.items, "before conversation.item.added")
        match what:
            case "output_item":
                self._output_done(output, event["item"])
            case "content_part":
                self._part(response, output, step, event["part"])
            case "function_call_arguments":
                if step == "delta":
                    output.arguments += event["delta"]
                else:
                    must(event["arguments"] == output.arguments, "arguments are not their deltas")
                    named = (event["name"], event["call_id"]) == (output.item["name"], output.item["call_id"])
                    must(named, "another call")
                    json.loads(event["arguments"])
                    output.finished.add(what)
            case _:
                self._text(output, what, step, event)

    def _part(self, response: Response, output: Output, step: str, part: Shown) -> None:
        if step == "added":
            must(not output.part, "a second part")
            must([part["type"]] == response.shown["output_modalities"], "modality")
            output.part = part["type"]
            return
        wanted = {"text": {"output_text"}, "audio": {"output_audio", "output_audio_transcript"}}[output.part]
        must(output.finished == wanted, "closed before its text and sound")
        must(part["text" if output.part == "text" else "transcript"] == output.text, "text of the part")
        output.finished.add("part")

    def _text(self, output: Output, what: str, step: str, event: Shown) -> None:
        must(what.startswith(f"output_{output.part}"), "of another modality, or before its part")
        must(what not in output.finished and "part" not in output.finished, "after its end")
        if step == "delta" and what != "output_audio":
            output.text += event["delta"]
        elif step == "done":
            output.finished.add(what)
            if what != "output_audio":
                must(event["text" if output.part == "text" else "transcript"] == output.text, "deltas differ")

    def _output_done(self, output: Output, item: Shown) -> None:
        must(item["status"] in ("completed", "incomplete"), "status")
        must(not output.part or "part" in output.finished, "its part is open")
        if item["type"] == "function_call":
            announced = "function_call_arguments" in output.finished
            must(announced == (item["status"] == "completed"), "a call is done once its arguments are")
            must(announced is False or item["arguments"] == output.arguments, "the call's arguments")
        elif output.part:
            kind, words = ("output_text", "text") if output.part == "text" else ("output_audio", "transcript")
            must([part["type"] for part in item["content"]] == [kind], "the part of the item")
            must(item["content"][0][words] == output.text, "the words of the item")
        output.item = item
        output.finished.add("item")

    # -- sound out --------------------------------------------------------------------------------------------------

    def _playout(self, what: str, response_id: str) -> None:
        response = self.responses[response_id]
        if what == "started":
            must(response_id not in self.playing, "started twice")
            must(
                any(o.part and "part" not in o.finished for o in response.outputs.values()), "before its part"
            )
        else:
            must(self.playing.get(response_id) == "started", "nothing sounds")
            must(what == "cleared" or response.done, "stopped before it was done")
        self.playing[response_id] = what


def _parts(item: Shown) -> list[str]:
    return [part["type"] for part in item.get("content", ())]
