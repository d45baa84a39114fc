"""Functions that the model wants called."""

from orchestrator.scheduling.work import Reply, ReplyCall
from tests.sessions.talk import Talk

TEXT = {"output_modalities": ["text"]}


def test_session_calls_functions_and_continues_with_their_output() -> None:
    """A call is completed only in its done events; its output and a new response.create continue."""
    talk = Talk()
    tool = {"type": "function", "name": "get_weather", "parameters": {"type": "object"}}
    talk.update(tools=[tool], tool_choice="required", **TEXT)
    talk.typed("Weather?")
    talk.client("response.create")
    work = talk.jobs[talk.reply_job()].work
    assert isinstance(work, Reply)
    assert work.tool_choice == "required"
    talk.calls("get_weather", '{"city":')
    talk.calls("get_weather", '"Rome"}')
    talk.finishes("tool_calls")
    added = talk.last("response.output_item.added")["item"]
    assert (added["status"], added["arguments"]) == ("in_progress", "")
    done = talk.last("response.function_call_arguments.done")
    assert done["arguments"] == '{"city":"Rome"}'
    assert talk.last("response.output_item.done")["item"]["status"] == "completed"
    call_id = talk.last("response.done")["response"]["output"][0]["call_id"]
    output = {"type": "function_call_output", "call_id": call_id, "output": "sunny"}
    talk.client("conversation.item.create", item=output)
    talk.client("response.create", response={"tool_choice": "none"})
    assert talk.prompt()[-1] == ("tool", "sunny")


def test_session_announces_no_call_whose_arguments_cannot_be_read() -> None:
    """Clients parse arguments as JSON once they are done: none at all are ``{}``, broken ones are never done."""
    for arguments, told in (("", "{}"), ('{"city": "Ro', None)):
        talk = Talk()
        talk.update(**TEXT)
        talk.client("response.create")
        talk.calls("get_weather", arguments)
        talk.finishes("tool_calls")
        done = talk.all("response.function_call_arguments.done")
        assert [event["arguments"] for event in done] == ([told] if told else [])
        if told:
            assert [e["delta"] for e in talk.all("response.function_call_arguments.delta")] == [told]
        status = talk.last("response.output_item.done")["item"]["status"]
        assert status == ("completed" if told else "incomplete")
        assert talk.last("response.done")["response"]["status"] == "completed"


def test_session_refuses_the_output_of_an_unknown_call() -> None:
    """The error names the field; the conversation stays as it was."""
    talk = Talk()
    talk.client(
        "conversation.item.create", item={"type": "function_call_output", "call_id": "no", "output": ""}
    )
    assert talk.errors()[0]["param"] == "item.call_id"
    assert talk.log == []


def test_session_makes_one_call_where_a_client_wants_no_parallel_ones() -> None:
    """The first of a reply, whole; whatever else the model would like called is left out. A response may differ."""
    for session, response, made in ((False, None, 1), (True, None, 2), (None, False, 1), (False, True, 2)):
        talk = Talk()
        talk.update(**TEXT, parallel_tool_calls=session)
        params = {} if response is None else {"parallel_tool_calls": response}
        talk.client("response.create", response=params)
        for index, arguments in ((0, '{"city":'), (1, "{}"), (0, '"Rome"}')):
            name = "get_weather" if arguments != '"Rome"}' else None
            talk.report(ReplyCall(talk.reply_job(), index, arguments, name))
        talk.finishes("tool_calls")
        done = talk.all("response.function_call_arguments.done")
        assert sorted(event["arguments"] for event in done) == sorted(['{"city":"Rome"}', "{}"][:made])
        assert len(talk.last("response.done")["response"]["output"]) == made
