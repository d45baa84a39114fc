"""Streamed chunks of llama.cpp taken as the reply they are: text, or the writing of a tool call."""

import hashlib
import json
from collections.abc import Callable, Mapping

from modalities.adapters.grammar import NOTHING, Node, Text, after, alt, seq, shortest
from modalities.adapters.json_end import json_end
from modalities.adapters.llama_server import Chunk, TooLong
from modalities.adapters.reply_end import ReplyEnd
from modalities.errors import ModalityError
from modalities.ports import Completion, Prompt, ReplyDelta, TextDelta, ToolCall, ToolCallDelta

Emit = Callable[[ReplyDelta], bool]


class Answer:
    """Counts what every answer has: tokens, and how it ended. `room` is what a prompt may have of tokens.

    While the prompt is computed, `emit` is asked with an empty text after each batch whether the answer is wanted.
    """

    def __init__(self, emit: Emit) -> None:
        self._emit = emit
        self.room = 0
        self._finish = "cancelled"
        self._input = self._cached = self._output = 0

    def take(self, chunk: Chunk) -> bool:
        """Takes one chunk; returns whether more is wanted. Raises `TooLong` before the prompt is computed."""
        progress = chunk.get("prompt_progress")
        if progress:
            self._input, self._cached = progress["total"], progress["cache"]
            if progress["total"] > self.room:
                raise TooLong(progress["total"], self.room)
            if not self._emit(TextDelta("")):
                return False
        usage = chunk.get("usage")
        if usage:
            self._input, self._output = usage["prompt_tokens"], usage["completion_tokens"]
            self._cached = usage["prompt_tokens_details"]["cached_tokens"]
        for choice in chunk["choices"]:
            self._output += bool(choice["delta"].get("content"))
            if not self._take_delta(choice["delta"]):
                return False
            if choice["finish_reason"]:
                self._finish = choice["finish_reason"]
        return True

    def _take_delta(self, delta: Chunk) -> bool:
        raise NotImplementedError


class TextAnswer(Answer):
    """Text as it comes, behind `end` where a limit of our own applies, and calls that a model makes by itself."""

    def __init__(self, emit: Emit, end: ReplyEnd | None, prompt: Prompt) -> None:
        super().__init__(emit)
        self._end = end
        self._prompt = prompt
        self._calls: list[ToolCall] = []

    def _take_delta(self, delta: Chunk) -> bool:
        for piece in delta.get("tool_calls") or ():
            if not self._take_call(piece):
                return False
        text = delta.get("content")
        if not text:
            return True
        free = text if self._end is None else self._end.take(text)
        if free and not self._emit(TextDelta(free)):
            return False
        if self._end is not None and self._end.ended:
            self._finish = "stop"
            return False
        return True

    def _take_call(self, piece: Chunk) -> bool:
        index, function = piece.get("index", 0), piece.get("function") or {}
        arguments = function.get("arguments") or ""
        if index < len(self._calls):
            call = self._calls[index]
            self._calls[index] = ToolCall(call.call_id, call.name, call.arguments + arguments)
            return self._emit(ToolCallDelta(index, arguments))
        name = function.get("name") or ""
        call = ToolCall(piece.get("id") or call_id(self._prompt, name, index), name, arguments)
        self._calls.append(call)
        return self._emit(ToolCallDelta(index, arguments, name, call.call_id))

    def completion(self) -> Completion:
        """Says what was held back and ends calls that were cut."""
        if self._finish != "cancelled":
            self._say_the_rest()
        finish = "tool_calls" if self._calls and self._finish != "cancelled" else self._finish
        return Completion(finish, self._input, self._cached, self._output, tuple(self._calls))

    def _say_the_rest(self) -> None:
        end = self._end
        if end is not None:
            rest = end.close(cut=self._finish == "length")
            if rest:
                self._emit(TextDelta(rest))
            if end.ended:
                self._finish = "stop"
        for index, call in enumerate(self._calls):
            rest = json_end(call.arguments)
            if rest:
                self._calls[index] = ToolCall(call.call_id, call.name, call.arguments + rest)
                self._emit(ToolCallDelta(index, rest))


class CallAnswer(Answer):
    """The writing of one call under a grammar: arguments alone for one tool, name and arguments for several."""

    def __init__(self, emit: Emit, languages: Mapping[str, Node], prompt: Prompt) -> None:
        super().__init__(emit)
        self._languages = languages
        self._prompt = prompt
        self._written = ""
        self._call: ToolCall | None = None
        self._wrapped = len(languages) > 1
        self.language = alt(*(self._written_call(name) for name in languages))

    def _written_call(self, name: str) -> Node:
        if not self._wrapped:
            return self._languages[name]
        return seq(Text(_head(name)), self._languages[name], Text("}"))

    def _take_delta(self, delta: Chunk) -> bool:
        self._written += delta.get("content") or ""
        return self._advance()

    def _advance(self) -> bool:
        """Emits what is new of the arguments, the name first."""
        name = self._call.name if self._call else self._name()
        if name is None:
            return True
        start = len(_head(name)) if self._wrapped else 0
        stop = max(start, len(self._written) - self._wrapped)  # the last brace closes the wrapping
        arguments = self._written[start:stop]
        if self._call is None:
            if not arguments:
                return True
            self._call = ToolCall(call_id(self._prompt, name, 0), name, arguments)
            return self._emit(ToolCallDelta(0, arguments, name, self._call.call_id))
        piece = arguments[len(self._call.arguments) :]
        self._call = ToolCall(self._call.call_id, name, arguments)
        return not piece or self._emit(ToolCallDelta(0, piece))

    def _name(self) -> str | None:
        if not self._wrapped:
            return next(iter(self._languages))
        return next((name for name in self._languages if self._written.startswith(_head(name))), None)

    def completion(self) -> Completion:
        """Ends what was cut by the shortest text that the schema allows; a cancelled call stays as it is."""
        return self._completed() if self._finish == "cancelled" else self.least()

    def least(self) -> Completion:
        """Writes the rest of the call without the model, as short as the schema allows."""
        left = after(self.language, self._written)
        rest = None if left is NOTHING else shortest(left)
        if rest is None:
            raise ModalityError(f"llama.cpp left its grammar: {self._written!r}")
        self._written += rest
        self._finish = "tool_calls" if self._advance() else "cancelled"
        return self._completed()

    def _completed(self) -> Completion:
        calls = (self._call,) if self._call else ()
        return Completion(self._finish, self._input, self._cached, self._output, calls)


def call_id(prompt: Prompt, name: str, index: int) -> str:
    """Returns an id that a repeat of the same prompt gives again."""
    told = repr((prompt.messages, name, index))
    return "call_" + hashlib.blake2b(told.encode(), digest_size=8).hexdigest()


def _head(name: str) -> str:
    return f'{{"name":{json.dumps(name)},"arguments":'
