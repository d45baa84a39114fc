"""Who knows something of a session, and not all of it, gets in nowhere, and learns nothing of what was wrong."""

from dataclasses import replace
from pathlib import Path

import httpx

from orchestrator.clock import US_PER_S
from orchestrator.transports.auth import digest_of
from orchestrator.transports.signed_secret import NO_PART, Claims, Seal, config_digest
from tests.security.doors import (
    ACME,
    ALLOWED,
    EVIL,
    IN,
    JOINING,
    OPENING,
    OTHER,
    PAGE,
    SIGNING_KEY,
    WORKING,
    Fort,
    Shown,
    defended,
)

LONG_AGO_S, LONG_AFTER_S = 1_000_000_000, 4_000_000_000


def test_session_is_entered_by_its_tenant_with_its_secret_only(tmp_path: Path) -> None:
    """By every door: another tenant's key with the right secret, another session's secret, none, and an id that there
    is not are all one: not found. Without a key, or with a wrong one, nobody gets that far, but for readers of
    server-sent events who have the secret. Who has both gets in."""

    async def test(fort: Fort) -> None:
        mine, also_mine, foreign = await fort.opened(), await fort.opened(), await fort.opened(OTHER)
        for name, come in JOINING.items():
            for wrong in (
                replace(mine, key=OTHER),
                replace(mine, secret=also_mine.secret),
                replace(mine, secret=foreign.secret),
                replace(mine, secret=""),
                replace(mine, secret=mine.secret[:-1]),
                replace(mine, session_id=foreign.session_id),
                replace(mine, session_id="sess_nosuch"),
            ):
                assert await come(fort, wrong) == "not found", (name, wrong)
            assert await come(fort, replace(mine, key="sk-wrong-0123456789")) == "unauthorized", name
            keyless = await come(fort, replace(mine, key=None))
            assert keyless == (IN if name == "SSE" else "unauthorized"), name
        for name, come in JOINING.items():
            own = await fort.opened()
            assert await come(fort, own) == IN, name

    defended(tmp_path, test)


def test_session_that_has_ended_is_as_if_it_had_never_been(tmp_path: Path) -> None:
    """Its id and its secret open nothing any more, and cannot be told from ones that never were."""

    async def test(fort: Fort) -> None:
        ended = await fort.opened()
        assert await JOINING["HTTP, ended"](fort, ended) == IN
        async with httpx.AsyncClient(base_url=fort.url, trust_env=False) as client:
            while True:
                answer = await client.get(f"/v1/sessions/{ended.session_id}", headers=ended.with_secret())
                if answer.status_code == 404:
                    break
            never = await client.get("/v1/sessions/sess_never", headers=ended.with_secret())
        assert (answer.status_code, answer.content) == (never.status_code, never.content)
        for name, come in JOINING.items():
            assert await come(fort, ended) == "not found", name

    defended(tmp_path, test)


def sealed(
    expires_s: int,
    uses: int = 0,
    key: str = ACME,
    signed_by: bytes = SIGNING_KEY,
    tenant: str = "acme",
) -> str:
    """A client secret as the server would sign it."""
    nonce = bytes(range(14))
    config = config_digest(tenant, NO_PART)
    claims = Claims(expires_s * US_PER_S, digest_of(key).hex()[:12], config, nonce, uses)
    return Seal(signed_by).close(claims)


def test_client_secret_opens_what_it_is_for_and_in_its_time(tmp_path: Path) -> None:
    """By every door that opens a session: a good one does, an expired one does not, nor one that says more than was
    signed, that another server signed, of a key that is not there, or whose uses nobody remembers. And none is a key:
    it makes no other, and has no work done."""

    async def test(fort: Fort) -> None:
        good = sealed(LONG_AFTER_S)
        for name, come in OPENING.items():
            assert await come(fort, Shown(good)) == IN, name
            for wrong in (
                sealed(LONG_AGO_S),
                good[:-1] + ("A" if good[-1] != "A" else "B"),
                good[:5] + ("A" if good[5] != "A" else "B") + good[6:],
                sealed(LONG_AFTER_S, signed_by=bytes(32)),
                sealed(LONG_AFTER_S, key="sk-withdrawn-0123456789"),
                sealed(LONG_AFTER_S, uses=1),
                sealed(LONG_AFTER_S, tenant="other"),
                "ek_",
            ):
                assert await come(fort, Shown(wrong)) == "unauthorized", (name, wrong)
        for name, come in WORKING.items():
            assert await come(fort, Shown(good)) == "forbidden", name
            assert await come(fort, Shown(ACME)) == IN, name

    defended(tmp_path, test)


def test_client_secret_for_one_use_is_worth_nothing_the_second_time(tmp_path: Path) -> None:
    """Replayed by the same door or by another."""

    async def test(fort: Fort) -> None:
        async with httpx.AsyncClient(base_url=fort.url, trust_env=False) as client:
            for name, come in OPENING.items():
                asked = {"chorale": {"uses": 1}}
                answer = await client.post(
                    "/v1/realtime/client_secrets", json=asked, headers=Shown(ACME).headers()
                )
                once = Shown(answer.json()["value"])
                assert await come(fort, once) == IN, name
                for again, replay in OPENING.items():
                    assert await replay(fort, once) == "unauthorized", (name, again)

    defended(tmp_path, test)


def test_page_of_another_origin_gets_in_nowhere(tmp_path: Path) -> None:
    """Even with a good key, and with all that is needed for a session: by every door. A key that allows a page is good
    on that page, and on no other."""

    async def test(fort: Fort) -> None:
        mine, of_a_page = await fort.opened(), await fort.opened(PAGE)
        for name, come in JOINING.items():
            assert await come(fort, replace(mine, origin=EVIL)) == "forbidden", name
            assert await come(fort, replace(mine, origin=ALLOWED)) == "forbidden", name
            assert await come(fort, replace(mine, origin="null")) == "forbidden", name
        for name, come in {**OPENING, **WORKING}.items():
            assert await come(fort, Shown(ACME, origin=EVIL)) == "forbidden", name
            assert await come(fort, Shown(PAGE, origin=ALLOWED)) == IN, name
            assert await come(fort, Shown(PAGE, origin=f"{ALLOWED}.evil.example")) == "forbidden", name
        assert await JOINING["WebSocket"](fort, replace(of_a_page, origin=ALLOWED)) == IN

    defended(tmp_path, test)
