"""Random events of a session, of every kind."""

from hypothesis import strategies as st

from orchestrator.scheduling.work import (
    Failed,
    Replied,
    ReplyText,
    SpeechPiece,
    Spoke,
    Transcribed,
    Understood,
    WordFound,
)
from orchestrator.sessions import events as on
from orchestrator.sessions.links import LinkKind
from orchestrator.wire import client
from orchestrator.wire.items import FunctionCallOutput, InputText, Message

IDS = st.sampled_from(["link", "other", "job_T000001", "resp_T000003", 'é\n"x'])
COUNTS = st.integers(0, 2**52)
FRACTIONS = st.floats(0, 1)
TEXTS = st.text(max_size=30)
ITEMS = st.builds(
    Message, role=st.sampled_from(["user", "system"]), content=st.tuples(st.builds(InputText, text=TEXTS))
) | st.builds(FunctionCallOutput, call_id=IDS, output=TEXTS)
SAID = st.one_of(
    st.builds(client.CommitAudio),
    st.builds(client.ClearAudio),
    st.builds(client.CreateItem, item=ITEMS, previous_item_id=st.none() | IDS),
    st.builds(client.TruncateItem, item_id=IDS, audio_end_ms=COUNTS, content_index=COUNTS),
    st.builds(client.CreateResponse),
    st.builds(client.CreateResponse, response=st.builds(client.ResponseParams, instructions=TEXTS)),
    st.builds(client.CancelResponse, response_id=st.none() | IDS, event_id=st.none() | TEXTS),
)
REPORTS = st.one_of(
    st.builds(
        Transcribed,
        job_id=IDS,
        text=TEXTS,
        words=st.lists(st.builds(WordFound, TEXTS, FRACTIONS, FRACTIONS, FRACTIONS), max_size=3).map(tuple),
        average_logprob=st.floats(allow_nan=False),
    ),
    st.builds(Understood, job_id=IDS, vector=st.binary(max_size=8), intent=st.none() | TEXTS),
    st.builds(ReplyText, job_id=IDS, text=TEXTS),
    st.builds(Replied, job_id=IDS, finish_reason=st.sampled_from(["stop", "length"])),
    st.builds(SpeechPiece, job_id=IDS, index=COUNTS, rate_hz=st.just(24_000), samples=COUNTS),
    st.builds(Spoke, job_id=IDS, pieces=COUNTS),
    st.builds(Failed, job_id=IDS, code=TEXTS, message=TEXTS, retry_after_s=FRACTIONS),
)
EVENTS: st.SearchStrategy[on.Event] = st.one_of(
    st.builds(on.LinkJoined, IDS, st.sampled_from(LinkKind)),
    st.builds(on.LinkLeft, IDS),
    st.builds(on.ClientSaid, IDS, SAID, COUNTS, COUNTS),
    st.builds(
        on.AudioHeard, COUNTS, COUNTS, COUNTS, st.lists(FRACTIONS, max_size=6).map(tuple), st.booleans()
    ),
    st.builds(on.ReportCame, REPORTS),
    st.builds(on.PlayoutMoved, IDS, COUNTS),
    st.builds(on.PlayoutEnded, IDS),
    st.builds(on.PlayoutLost, IDS),
    st.builds(on.TimePassed),
    st.builds(on.DrainAsked, COUNTS),
    st.builds(on.EndAsked, TEXTS),
)
