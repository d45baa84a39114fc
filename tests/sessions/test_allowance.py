"""How many sessions a tenant may have, and what becomes of them when the key that opened them is withdrawn."""

import asyncio
from dataclasses import replace

import pytest

from orchestrator.errors import Overloaded, SessionClosed, WireError
from orchestrator.flow.tenants import Allowance
from orchestrator.sessions.links import LinkKind
from orchestrator.sessions.registry import KEY_WITHDRAWN
from tests.fakes.links import FakeLink
from tests.sessions.running import ASK, House, in_house

TWO = replace(ASK, tenant="acme", key_id="key1", allowance=Allowance(sessions=2))
OTHER = replace(TWO, tenant="lab", key_id="key2")


def test_registry_opens_no_more_sessions_for_a_tenant_than_it_may_have() -> None:
    """F-C5: the third is refused as the tenant's own fault; another tenant, and one without a number, are not asked."""

    async def test(house: House) -> None:
        for _ in range(2):
            house.registry.open(TWO, LinkKind.WEBSOCKET)
        for open_one in (
            lambda: house.registry.open(TWO, LinkKind.WEBSOCKET),
            lambda: house.registry.open_call(TWO),
        ):
            with pytest.raises(Overloaded) as caught:
                open_one()
            assert caught.value.is_tenant
        house.registry.open(OTHER, LinkKind.WEBSOCKET)
        for _ in range(3):
            house.registry.open(ASK, LinkKind.WEBSOCKET)
        assert len(house.registry) == 6

    in_house(test)


def test_registry_gives_a_tenants_place_back_on_every_path() -> None:
    """Sessions that end, that nobody joins, that were asked for wrongly, and for which the server had no place."""

    async def test(house: House) -> None:
        for _ in range(5):
            one = house.registry.open(TWO, LinkKind.WEBSOCKET)
            call_id, _ = house.registry.open_call(TWO)
            with pytest.raises(Overloaded):
                house.registry.open(TWO, LinkKind.WEBSOCKET)
            house.registry.end(one, "bye")
            house.registry.end(house.registry.by_call(call_id, "acme"), "bye")
            await asyncio.sleep(1)
            with pytest.raises(WireError):
                house.registry.open(replace(TWO, initial=b'{"voice": 7}'), LinkKind.WEBSOCKET)
            for _ in range(3):
                house.registry.open(ASK, LinkKind.WEBSOCKET)
            with pytest.raises(Overloaded) as caught:
                house.registry.open(TWO, LinkKind.WEBSOCKET)
            assert not caught.value.is_tenant
            await asyncio.sleep(60)
            assert len(house.registry) == 0

    in_house(test, max_sessions=3)


def test_registry_knows_by_which_key_a_session_was_opened() -> None:
    """ "" where it was opened without one, and where it is there no more."""

    async def test(house: House) -> None:
        one, keyless = (house.registry.open(ask, LinkKind.WEBSOCKET) for ask in (TWO, ASK))
        assert [house.registry.key_of(session) for session in (one, keyless)] == ["key1", ""]
        house.registry.end(one, "bye")
        await asyncio.sleep(1)
        assert house.registry.key_of(one) == ""

    in_house(test)


def test_registry_ends_the_sessions_of_a_withdrawn_key() -> None:
    """With all their links, closed as of one who may not be here; those of other keys go on."""

    async def test(house: House) -> None:
        gone, stays = (house.registry.open(request, LinkKind.WEBSOCKET) for request in (TWO, OTHER))
        links = [FakeLink("first"), FakeLink("second"), FakeLink("other")]
        for link, session in zip(links, (gone, gone, stays), strict=True):
            link.attach(session)
        house.registry.withdraw(frozenset({"key1"}))
        await asyncio.sleep(1)
        assert [link.closed for link in links] == [(1008, KEY_WITHDRAWN), (1008, KEY_WITHDRAWN), None]
        with pytest.raises(SessionClosed):
            house.registry.by_id(gone.id, gone.secret, None)
        assert house.registry.by_id(stays.id, stays.secret, None) is stays

    in_house(test)


def test_registry_names_a_session_as_a_proxy_wants_it_once() -> None:
    """The session and its calls carry the chosen part; a second of the name gets its own, and no call is guessed."""

    async def test(house: House) -> None:
        wanted = replace(ASK, session_id="sess_" + "0a" * 16)
        call_id, call = house.registry.open_call(wanted)
        assert call.id == wanted.session_id
        assert call_id.startswith("rtc_" + "0a" * 16 + "_")
        assert len(call_id) > 50
        other = house.registry.open(wanted, LinkKind.WEBSOCKET)
        assert other.id != wanted.session_id
        again, _ = house.registry.open_call(ASK, call)
        assert again.startswith("rtc_" + "0a" * 16 + "_")
        assert again != call_id
        plain, _ = house.registry.open_call(ASK)
        assert len(plain) < 30

    in_house(test)
