"""Who has shown wrong keys too often lately, by address. Guessing a good key is hopeless; asking all day costs us.

Ten wrong ones in a minute are let pass, then the address waits: 2 s, and twice as long each time it errs again, up to a
minute. What it shows meanwhile is not looked at. A right key neither shortens that nor forgets anything: behind one
address there may be many.
"""

from collections import OrderedDict
from dataclasses import dataclass
from ipaddress import IPv6Address, ip_address

from orchestrator.clock import US_PER_S

MOST_ADDRESSES = 4_096
ALLOWED = 10
WINDOW_US = 60 * US_PER_S
_FIRST_WAIT_S = 2
_LONGEST_WAIT_S = 60
_IPV6_NET = 64


@dataclass(slots=True)
class _Record:
    """`level` wrong ones count at `since_us`; it falls by `ALLOWED` in `WINDOW_US`, but not before `until_us`."""

    level: float = 0.0
    since_us: int = 0
    until_us: int = 0
    waits: int = 0


class Attempts:
    """At most `capacity` addresses; who erred longest ago is forgotten for others."""

    def __init__(self, capacity: int = MOST_ADDRESSES) -> None:
        self._capacity = capacity
        self._records: OrderedDict[str, _Record] = OrderedDict()
        self._forgotten = 0

    def __len__(self) -> int:
        return len(self._records)

    @property
    def forgotten(self) -> int:
        """How many were forgotten for others."""
        return self._forgotten

    def blocked_for(self, address: str, now_us: int) -> float:
        """Returns the seconds for which this address is not listened to; 0 where it is."""
        record = self._records.get(_place(address))
        return 0.0 if record is None else max(0, record.until_us - now_us) / US_PER_S

    def failure(self, address: str, now_us: int) -> float:
        """A wrong key came from this address. Returns the seconds that it has to wait from now on, mostly 0."""
        place = _place(address)
        record = self._records.pop(place, None) or _Record(since_us=now_us)
        self._records[place] = record
        if len(self._records) > self._capacity:
            self._records.popitem(last=False)
            self._forgotten += 1
        passed_us = max(0, now_us - record.since_us)
        record.level = max(0.0, record.level - passed_us * ALLOWED / WINDOW_US)
        if record.level == 0:
            record.waits = 0
        record.level += 1
        record.since_us = now_us
        if record.level <= ALLOWED:
            return 0.0
        wait_s = min(_FIRST_WAIT_S << min(record.waits, 16), _LONGEST_WAIT_S)
        record.waits += 1
        record.until_us = record.since_us = now_us + wait_s * US_PER_S
        return float(wait_s)


def _place(address: str) -> str:
    """Returns what counts as one address: of IPv6 what a household gets, as text where it is no address at all."""
    try:
        known = ip_address(address)
    except ValueError:
        return address
    if isinstance(known, IPv6Address):
        if known.ipv4_mapped is not None:
            return str(known.ipv4_mapped)
        return f"{IPv6Address(int(known) >> _IPV6_NET << _IPV6_NET)}/{_IPV6_NET}"
    return str(known)
