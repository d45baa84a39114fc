"""Images in clients' items: read, kept under a name, put into prompts, let go."""

import asyncio
import base64
from typing import Any

import pytest

from orchestrator.clock import US_PER_S
from orchestrator.errors import WireError
from orchestrator.scheduling.work import Picture, PromptMessage, Reply
from orchestrator.sessions import effects as do
from orchestrator.sessions.pictures import MOST_PICTURES, PictureStore
from orchestrator.sessions.rules import SessionRules
from orchestrator.wire.items import InputImage, InputText, Item, Message
from tests.sessions.running import House, client, in_house
from tests.sessions.talk import Talk

PNG = "data:image/png;base64," + base64.b64encode(b"\x89PNG\r\n\x1a\n" + bytes(100)).decode()
JPEG = "data:image/jpeg;base64," + base64.b64encode(b"\xff\xd8\xff\xe0" + bytes(100)).decode()


def read(store: PictureStore, item: Item) -> Item:
    reading = store.read(item)
    while True:
        try:
            next(reading)
        except StopIteration as end:
            found: Item = end.value
            return found


def user(*parts: InputText | InputImage) -> Message:
    return Message("user", parts)


def test_picture_store_keeps_images_under_names() -> None:
    """Words stay, each image becomes a name, and a prompt gets it back as it came."""
    store = PictureStore(takes_images=True)
    item = read(store, user(InputText("Look:"), InputImage(PNG), InputImage(JPEG, detail="low")))
    assert item == user(
        InputText("Look:"), InputImage("chorale:image:1"), InputImage("chorale:image:2", detail="low")
    )
    images = (Picture("chorale:image:2", "low"), Picture("chorale:image:9"))
    shown = store.shown(Reply((PromptMessage("user", "Look:", images=images),)))
    assert shown.messages[0].images == (Picture("chorale:image:2", "low", JPEG),), (
        "what is not held is left out"
    )
    assert store.held_bytes == len(PNG) + len(JPEG)
    store.forget("chorale:image:1")
    store.forget("chorale:image:1")
    assert store.held_bytes == len(JPEG)
    store.clear()
    assert store.held_bytes == 0


@pytest.mark.parametrize(
    ("url", "told"),
    [
        ("data:image/png;base64," + base64.b64encode(b"GIF89a" + bytes(50)).decode(), "no PNG"),
        ("data:image/jpeg;base64," + PNG.partition(",")[2], "no JPEG"),
        (PNG + "*", "base64"),
        ("data:image/png;base64,", "no PNG"),
        ("https://example.com/a.png", "data URI"),
    ],
)
def test_picture_store_refuses_what_is_no_image(url: str, told: str) -> None:
    """What says it is PNG or JPEG begins like one, and is base64 to its end; nothing of a refused item is kept."""
    store = PictureStore(takes_images=True)
    with pytest.raises(WireError, match=told) as caught:
        read(store, user(InputImage(PNG), InputImage(url)))
    assert caught.value.param == "item.content[1].image_url"
    assert store.held_bytes == 0


def test_picture_store_refuses_every_image_where_no_model_sees() -> None:
    """The error says so at once, and where."""
    with pytest.raises(WireError, match="takes no images") as caught:
        read(PictureStore(takes_images=False), user(InputText("Look:"), InputImage(PNG)))
    assert caught.value.param == "item.content[1].type"


def test_picture_store_is_bounded_and_forgets_a_reading_that_ends_early() -> None:
    """Full means refused; what was read of an item whose reading is given up leaves, too."""
    store = PictureStore(takes_images=True, limit=2 * len(PNG))
    reading = store.read(user(InputImage(PNG), InputImage(PNG)))
    next(reading)
    assert store.held_bytes == len(PNG)
    reading.close()
    assert store.held_bytes == 0
    read(store, user(InputImage(PNG), InputImage(PNG)))
    with pytest.raises(WireError, match="Too many images"):
        read(store, user(InputImage(PNG)))
    assert store.held_bytes == 2 * len(PNG)


def last_prompt(talk: Talk) -> tuple[PromptMessage, ...]:
    return [job.work for job in talk.jobs.values() if isinstance(job.work, Reply)][-1].messages


def test_session_puts_images_into_prompts() -> None:
    """Behind the words of their user; neighbours of one user join, and an image needs no words."""
    talk = Talk(SessionRules(images=True))
    talk.image(1, "What is this?")
    talk.image(2)
    talk.client("response.create")
    assert last_prompt(talk)[-1] == PromptMessage(
        "user", "What is this?", images=(Picture("chorale:image:1"), Picture("chorale:image:2"))
    )


def test_session_lets_images_go_with_their_item_and_beyond_the_newest() -> None:
    """A deleted item's image goes; of more than eight the oldest leaves prompts and the store. Its words stay."""
    talk = Talk(SessionRules(images=True))
    talk.image(100, id="gone")
    talk.client("conversation.item.delete", item_id="gone")
    for number in range(MOST_PICTURES + 1):
        talk.image(number, f"number {number}")
    talk.client("response.create")
    forgotten = [effect.name for effect in talk.effects if isinstance(effect, do.ForgetPicture)]
    assert forgotten == ["chorale:image:100", "chorale:image:0"]
    (message,) = last_prompt(talk)[1:]
    assert [one.name for one in message.images] == [f"chorale:image:{n}" for n in range(1, MOST_PICTURES + 1)]
    assert message.content.startswith("number 0\n")


def test_session_lets_the_image_of_a_refused_item_go() -> None:
    """A second item of one id is an error, and its image nobody's."""
    talk = Talk(SessionRules(images=True))
    talk.image(1, id="one")
    talk.image(2, id="one")
    assert [effect.name for effect in talk.effects if isinstance(effect, do.ForgetPicture)] == [
        "chorale:image:2"
    ]


def test_session_answers_a_typed_image_like_typed_words() -> None:
    """Where typed messages are turns, an image alone is one."""
    talk = Talk(SessionRules(images=True))
    talk.update(chorale={"typed_turns": True})
    talk.image(1)
    assert last_prompt(talk)[-1].images == (Picture("chorale:image:1"),)


def test_runner_gives_the_model_the_image_and_shows_clients_its_name() -> None:
    """From a client's item to the worker's prompt; what is shown of it is short."""

    async def test(house: House) -> None:
        session, link = house.open()
        await client(session, "conversation.item.create", item=_item(PNG))
        await client(session, "response.create", response={"output_modalities": ["text"]})
        await asyncio.sleep(2)
        assert link.events[-1]["response"]["status"] == "completed"
        (added,) = [
            e for e in link.events if e["type"] == "conversation.item.added" and e["item"]["role"] == "user"
        ]
        assert added["item"]["content"][1]["image_url"] == "chorale:image:1"
        (work,) = [job.work for job in house.workers.jobs if isinstance(job.work, Reply)]
        assert work.messages[-1].images == (Picture("chorale:image:1", "", PNG),)
        assert session.statistics().clip_bytes == len(PNG)
        session.close()
        assert session.statistics().clip_bytes == 0

    in_house(test, rules=SessionRules(images=True, grace_us=10 * US_PER_S))


def test_runner_refuses_an_image_that_no_model_sees() -> None:
    """A clear error, and no item."""

    async def test(house: House) -> None:
        session, link = house.open()
        await client(session, "conversation.item.create", event_id="mine", item=_item(PNG))
        await asyncio.sleep(0.01)
        error = link.events[-1]["error"]
        assert (error["code"], error["param"]) == ("invalid_value", "item.content[1].type")
        assert error["event_id"] == "mine"
        assert "takes no images" in error["message"]
        assert len(session.heart.conversation) == 0

    in_house(test)


def test_runner_lets_an_image_go_whose_items_sound_is_none() -> None:
    """What is refused as a whole leaves nothing behind."""

    async def test(house: House) -> None:
        session, link = house.open()
        item = _item(PNG)
        item["content"].append({"type": "input_audio", "audio": "no!"})
        await client(session, "conversation.item.create", item=item)
        await asyncio.sleep(0.01)
        error = link.events[-1]["error"]
        assert (error["code"], error["param"]) == ("invalid_value", "item.content[2].audio")
        assert session.statistics().clip_bytes == 0

    in_house(test, rules=SessionRules(images=True, grace_us=10 * US_PER_S))


def test_runner_keeps_nothing_of_an_item_whose_client_has_gone_before_there_was_room_for_it() -> None:
    """Sound and image of an event that waits at a full inbox go with the one who waits."""

    async def test(house: House) -> None:
        session, _ = house.open()
        item = _item(PNG)
        item["content"].append({"type": "input_audio", "audio": base64.b64encode(bytes(48_000)).decode()})
        waiting = asyncio.create_task(client(session, "conversation.item.create", item=item))
        for _ in range(70):  # more than an inbox holds, before anybody takes them
            session.refuse("link", WireError("invalid_value", "no"), None)
        while not session.statistics().inbox.waited:
            await asyncio.sleep(0)
            for _ in range(70):
                session.refuse("link", WireError("invalid_value", "no"), None)
        assert session.statistics().clip_bytes > len(PNG)
        waiting.cancel()
        await asyncio.wait([waiting])
        assert session.statistics().clip_bytes == 0

    in_house(test, rules=SessionRules(images=True, grace_us=10 * US_PER_S))


def _item(url: str) -> dict[str, Any]:
    parts = [{"type": "input_text", "text": "What is this?"}, {"type": "input_image", "image_url": url}]
    return {"type": "message", "role": "user", "content": parts}
