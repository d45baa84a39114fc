from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class ClientMessage(_message.Message):
    __slots__ = ("open", "join", "event", "sound")
    OPEN_FIELD_NUMBER: _ClassVar[int]
    JOIN_FIELD_NUMBER: _ClassVar[int]
    EVENT_FIELD_NUMBER: _ClassVar[int]
    SOUND_FIELD_NUMBER: _ClassVar[int]
    open: Open
    join: Join
    event: Event
    sound: Sound
    def __init__(self, open: _Optional[_Union[Open, _Mapping]] = ..., join: _Optional[_Union[Join, _Mapping]] = ..., event: _Optional[_Union[Event, _Mapping]] = ..., sound: _Optional[_Union[Sound, _Mapping]] = ...) -> None: ...

class ServerMessage(_message.Message):
    __slots__ = ("number", "opened", "event", "speech", "gap")
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    OPENED_FIELD_NUMBER: _ClassVar[int]
    EVENT_FIELD_NUMBER: _ClassVar[int]
    SPEECH_FIELD_NUMBER: _ClassVar[int]
    GAP_FIELD_NUMBER: _ClassVar[int]
    number: int
    opened: SessionOpened
    event: Event
    speech: Speech
    gap: Gap
    def __init__(self, number: _Optional[int] = ..., opened: _Optional[_Union[SessionOpened, _Mapping]] = ..., event: _Optional[_Union[Event, _Mapping]] = ..., speech: _Optional[_Union[Speech, _Mapping]] = ..., gap: _Optional[_Union[Gap, _Mapping]] = ...) -> None: ...

class Open(_message.Message):
    __slots__ = ("model", "session")
    MODEL_FIELD_NUMBER: _ClassVar[int]
    SESSION_FIELD_NUMBER: _ClassVar[int]
    model: str
    session: str
    def __init__(self, model: _Optional[str] = ..., session: _Optional[str] = ...) -> None: ...

class Join(_message.Message):
    __slots__ = ("session_id", "secret", "after")
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    SECRET_FIELD_NUMBER: _ClassVar[int]
    AFTER_FIELD_NUMBER: _ClassVar[int]
    session_id: str
    secret: str
    after: int
    def __init__(self, session_id: _Optional[str] = ..., secret: _Optional[str] = ..., after: _Optional[int] = ...) -> None: ...

class Event(_message.Message):
    __slots__ = ("json",)
    JSON_FIELD_NUMBER: _ClassVar[int]
    json: str
    def __init__(self, json: _Optional[str] = ...) -> None: ...

class Sound(_message.Message):
    __slots__ = ("data",)
    DATA_FIELD_NUMBER: _ClassVar[int]
    data: bytes
    def __init__(self, data: _Optional[bytes] = ...) -> None: ...

class Speech(_message.Message):
    __slots__ = ("data", "response_id", "item_id", "output_index", "content_index")
    DATA_FIELD_NUMBER: _ClassVar[int]
    RESPONSE_ID_FIELD_NUMBER: _ClassVar[int]
    ITEM_ID_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_INDEX_FIELD_NUMBER: _ClassVar[int]
    CONTENT_INDEX_FIELD_NUMBER: _ClassVar[int]
    data: bytes
    response_id: str
    item_id: str
    output_index: int
    content_index: int
    def __init__(self, data: _Optional[bytes] = ..., response_id: _Optional[str] = ..., item_id: _Optional[str] = ..., output_index: _Optional[int] = ..., content_index: _Optional[int] = ...) -> None: ...

class Gap(_message.Message):
    __slots__ = ("after", "first")
    AFTER_FIELD_NUMBER: _ClassVar[int]
    FIRST_FIELD_NUMBER: _ClassVar[int]
    after: int
    first: int
    def __init__(self, after: _Optional[int] = ..., first: _Optional[int] = ...) -> None: ...

class SessionOpened(_message.Message):
    __slots__ = ("session_id", "secret", "expires_at", "last", "session")
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    SECRET_FIELD_NUMBER: _ClassVar[int]
    EXPIRES_AT_FIELD_NUMBER: _ClassVar[int]
    LAST_FIELD_NUMBER: _ClassVar[int]
    SESSION_FIELD_NUMBER: _ClassVar[int]
    session_id: str
    secret: str
    expires_at: int
    last: int
    session: str
    def __init__(self, session_id: _Optional[str] = ..., secret: _Optional[str] = ..., expires_at: _Optional[int] = ..., last: _Optional[int] = ..., session: _Optional[str] = ...) -> None: ...

class WatchRequest(_message.Message):
    __slots__ = ("session_id", "secret", "after", "speech")
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    SECRET_FIELD_NUMBER: _ClassVar[int]
    AFTER_FIELD_NUMBER: _ClassVar[int]
    SPEECH_FIELD_NUMBER: _ClassVar[int]
    session_id: str
    secret: str
    after: int
    speech: bool
    def __init__(self, session_id: _Optional[str] = ..., secret: _Optional[str] = ..., after: _Optional[int] = ..., speech: _Optional[bool] = ...) -> None: ...

class CreateRequest(_message.Message):
    __slots__ = ("model", "session")
    MODEL_FIELD_NUMBER: _ClassVar[int]
    SESSION_FIELD_NUMBER: _ClassVar[int]
    model: str
    session: str
    def __init__(self, model: _Optional[str] = ..., session: _Optional[str] = ...) -> None: ...

class GetRequest(_message.Message):
    __slots__ = ("session_id", "secret")
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    SECRET_FIELD_NUMBER: _ClassVar[int]
    session_id: str
    secret: str
    def __init__(self, session_id: _Optional[str] = ..., secret: _Optional[str] = ...) -> None: ...

class GetReply(_message.Message):
    __slots__ = ("session", "last")
    SESSION_FIELD_NUMBER: _ClassVar[int]
    LAST_FIELD_NUMBER: _ClassVar[int]
    session: str
    last: int
    def __init__(self, session: _Optional[str] = ..., last: _Optional[int] = ...) -> None: ...

class EndRequest(_message.Message):
    __slots__ = ("session_id", "secret")
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    SECRET_FIELD_NUMBER: _ClassVar[int]
    session_id: str
    secret: str
    def __init__(self, session_id: _Optional[str] = ..., secret: _Optional[str] = ...) -> None: ...

class EndReply(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class SendRequest(_message.Message):
    __slots__ = ("session_id", "secret", "events", "sound")
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    SECRET_FIELD_NUMBER: _ClassVar[int]
    EVENTS_FIELD_NUMBER: _ClassVar[int]
    SOUND_FIELD_NUMBER: _ClassVar[int]
    session_id: str
    secret: str
    events: _containers.RepeatedScalarFieldContainer[str]
    sound: bytes
    def __init__(self, session_id: _Optional[str] = ..., secret: _Optional[str] = ..., events: _Optional[_Iterable[str]] = ..., sound: _Optional[bytes] = ...) -> None: ...

class SendReply(_message.Message):
    __slots__ = ("accepted", "last", "error")
    ACCEPTED_FIELD_NUMBER: _ClassVar[int]
    LAST_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    accepted: int
    last: int
    error: str
    def __init__(self, accepted: _Optional[int] = ..., last: _Optional[int] = ..., error: _Optional[str] = ...) -> None: ...
