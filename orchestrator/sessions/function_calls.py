"""The function calls of one response: which events each sends, and how it ends (heart)."""

from dataclasses import dataclass, field

import msgspec
from msgspec import structs

from orchestrator.ids import IdSequence
from orchestrator.wire import server as wire
from orchestrator.wire.items import OBJECT, FunctionCall, Item, ItemStatus
from orchestrator.wire.splitting import parts_of


@dataclass(slots=True)
class _Call:
    item: FunctionCall
    output_index: int
    arguments: list[str] = field(default_factory=list)
    open: bool = True


class FunctionCalls:
    """Puts calls among the `items` of the response. `parallel` False: the first call is the only one, whatever else the
    model would like."""

    def __init__(self, ids: IdSequence, response_id: str, items: list[Item], parallel: bool) -> None:
        self._ids = ids
        self._response_id = response_id
        self._items = items
        self._parallel = parallel
        self._calls: dict[int, _Call] = {}

    def takes(self, index: int) -> bool:
        """Whether call `index` of the reply is one of this response."""
        return self._parallel or not self._calls or index in self._calls

    def has(self, index: int) -> bool:
        return index in self._calls

    def open(self, index: int, name: str) -> FunctionCall:
        """Makes the item of tool call `index`."""
        call = FunctionCall(
            name=name,
            call_id=self._ids.take("call"),
            arguments="",
            id=self._ids.take("item"),
            object=OBJECT,
            status="in_progress",
        )
        self._calls[index] = _Call(call, len(self._items))
        self._items.append(call)
        return call

    def add(self, index: int, arguments: str) -> list[wire.ServerEvent]:
        """Takes more of a call's arguments; returns their events."""
        return self._add(self._calls[index], arguments)

    def close(self, status: ItemStatus) -> list[tuple[list[wire.ServerEvent], Item]]:
        """Closes what is open; returns for each call its ``…done`` events and its final state."""
        return [
            (self._close(call, status), self._items[call.output_index])
            for call in self._calls.values()
            if call.open
        ]

    def _add(self, call: _Call, arguments: str) -> list[wire.ServerEvent]:
        call.arguments.append(arguments)
        item = call.item
        return [
            wire.ArgumentsDelta(self._response_id, str(item.id), call.output_index, item.call_id, delta=part)
            for part in parts_of(arguments)
        ]

    def _close(self, call: _Call, status: ItemStatus) -> list[wire.ServerEvent]:
        events: list[wire.ServerEvent] = []
        if status == "completed" and not "".join(call.arguments).strip():
            events = self._add(call, "{}")
        arguments = "".join(call.arguments)
        if status == "completed" and not _is_json(arguments):
            status = "incomplete"
        call.open = False
        call.item = item = structs.replace(call.item, arguments=arguments, status=status)
        self._items[call.output_index] = item
        if status != "completed":
            return []  # clients run a call as soon as its arguments are "done": a broken one must not be announced
        return [
            *events,
            wire.ArgumentsDone(
                self._response_id,
                str(item.id),
                call.output_index,
                item.call_id,
                name=item.name,
                arguments=arguments,
            ),
        ]


def _is_json(text: str) -> bool:
    try:
        msgspec.json.decode(text)
    except msgspec.DecodeError:
        return False
    return True
