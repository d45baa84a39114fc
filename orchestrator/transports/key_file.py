"""The file of keys: YAML in, `KeyRing` out, or one error that lists every fault without showing any key."""

import re
from collections.abc import Mapping
from datetime import UTC, date, datetime
from datetime import time as time_of_day
from pathlib import Path

import yaml

from orchestrator.clock import US_PER_S
from orchestrator.errors import ConfigError
from orchestrator.flow.tenants import Allowance, Quotas, fits_no_reply, quotas
from orchestrator.scheduling.job import Tier
from orchestrator.transports.auth import Key, KeyRing, Principal, digest_of
from orchestrator.transports.origins import check_entry
from orchestrator.transports.signed_secret import SECRET_PREFIX, SIGNING_KEY_BYTES
from orchestrator.transports.strict_yaml import StandsTwice, StrictLoader

MIN_KEY_CHARACTERS = 16
_FIELDS = ("key", "sha256", "tenant", "tier", "origins", "sessions", "links", "limits", "expires")
_MOST_PLACES = 1_000_000
_LARGEST_BYTES = 4 * 1024 * 1024
_LIMITS: Mapping[str, tuple[float, float, bool]] = {
    # least, most, and whether only whole numbers will do
    "llm_tokens": (1, 4_000_000_000, True),
    "audio_s": (0.001, 4_000_000, False),
    "requests": (1, 4_000_000_000, True),
    "window_s": (1, 2_678_400, False),
    "burst": (0.001, 1, False),
}
_TIERS = {tier.name.lower(): tier for tier in Tier}
_PUBLISHED = frozenset(
    digest_of(f"sk-example-do-not-use-{form}") for form in ("in-clear", "hashed")
)  # configs/keys.example.yaml
_DIGEST = re.compile(r"[0-9a-fA-F]{64}")


def read_key_file(path: Path, output_tokens: int = 0) -> KeyRing:
    """Returns the keys of a file. Raises `ConfigError` with every fault; none of them shows a key. A fault is a quota
    too that fits no reply of `output_tokens`."""
    return parse_keys(_text_of(path), path, output_tokens)


def read_signing_key(path: Path) -> bytes:
    """Returns what signs client secrets. Raises `ConfigError` where there is too little of it."""
    try:
        key = path.read_bytes()
    except OSError as error:
        raise ConfigError(f"server.secret_file: {path} cannot be read: {error.strerror}") from None
    if len(key) < SIGNING_KEY_BYTES:
        raise ConfigError(
            f"server.secret_file: {path} holds {len(key)} bytes; it takes at least {SIGNING_KEY_BYTES} that nobody can "
            f"guess. To make it: head -c {SIGNING_KEY_BYTES} /dev/urandom > {path} && chmod 600 {path}"
        )
    return key


def _text_of(path: Path) -> str:
    try:
        if path.stat().st_size > _LARGEST_BYTES:
            raise ConfigError(f"{path}: larger than {_LARGEST_BYTES} bytes")
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise ConfigError(f"{path}: not YAML text") from None


def parse_keys(text: str, path: Path, output_tokens: int = 0) -> KeyRing:
    """As `read_key_file`, for the text of the file at `path`."""
    try:
        tree = yaml.load(text, Loader=StrictLoader)
    except StandsTwice as twice:
        shown = _shown(twice.name)
        raise ConfigError(f"{path}: line {twice.line}: {shown} stands twice in one place") from None
    except yaml.MarkedYAMLError as error:
        where = f"line {error.problem_mark.line + 1}" if error.problem_mark else "it"
        raise ConfigError(f"{path}: {where} is not YAML") from None
    except (yaml.YAMLError, ValueError, RecursionError):  # a date that is none is no fault of its grammar
        raise ConfigError(f"{path}: not YAML text") from None
    entries = tree.get("keys") if isinstance(tree, dict) else None
    if not isinstance(entries, list) or not entries:
        raise ConfigError(f"{path}: expected 'keys:' with a list of at least one key")
    found: list[str] = [f"there is no such section: {_shown(name)}" for name in tree if name != "keys"]
    keys = [_read(entry, f"keys.{index}", found, output_tokens) for index, entry in enumerate(entries)]
    read = [key for key in keys if key is not None]
    if len({key.id for key in read}) < len(read):
        found.append("keys: one key stands in the list twice")
    found += [f"keys: the limits of {tenant} are not the same for all its keys" for tenant in _torn(read)]
    if found:
        count = "1 fault" if len(found) == 1 else f"{len(found)} faults"
        raise ConfigError("\n".join([f"{count} in {path}:", *(f"  {fault}" for fault in found)]))
    return KeyRing(read, sum("key" in entry for entry in entries))


def _shown(name: object) -> str:
    """Returns a name that is wrong; not one as long as a key, which is one in the wrong place."""
    written = str(name)
    return written if len(written) < MIN_KEY_CHARACTERS else f"(a name of {len(written)} characters)"


def _read(entry: object, where: str, found: list[str], output_tokens: int) -> Key | None:
    """Reads one entry; adds what is wrong with it to `found`."""
    if not isinstance(entry, Mapping):
        found.append(f"{where}: expected a mapping with key (or sha256), tenant and tier")
        return None
    before = len(found)
    found += [f"{where}.{_shown(name)}: there is no such key" for name in entry if name not in _FIELDS]
    digest = _digest(entry, where, found)
    if digest in _PUBLISHED:
        found.append(f"{where}: this is a key of the example file, which everyone can read; make your own")
    tenant = entry.get("tenant")
    if not isinstance(tenant, str) or not tenant:
        found.append(f"{where}.tenant: expected a name")
    tier = _TIERS.get(str(entry.get("tier", "gold")))
    if tier is None:
        found.append(f"{where}.tier: expected {', '.join(_TIERS)}")
    origins = _origins(entry.get("origins"), where, found)
    allowance = Allowance(_places(entry, "sessions", where, found), _places(entry, "links", where, found))
    limits = _limits(entry["limits"], f"{where}.limits", found) if "limits" in entry else None
    expires_us = _expires_us(entry.get("expires"), where, found)
    if limits is not None and (fault := fits_no_reply(limits, output_tokens)) is not None:
        found.append(f"{where}.limits.{fault}")
    if len(found) > before or digest is None or tier is None:
        return None
    return Key(digest, Principal(str(tenant), tier, origins, allowance=allowance), limits, expires_us)


def _torn(keys: list[Key]) -> list[str]:
    """Returns the tenants whose keys name different limits: a tenant has one account."""
    named: dict[tuple[str, str], object] = {}
    torn: dict[str, None] = {}
    for key in keys:
        tenant, allowance = key.principal.tenant, key.principal.allowance
        for what, value in (
            ("limits", key.quotas),
            ("sessions", allowance.sessions),
            ("links", allowance.links),
        ):
            if value is not None and named.setdefault((tenant, what), value) != value:
                torn[tenant] = None
    return list(torn)


def _places(entry: Mapping[str, object], name: str, where: str, found: list[str]) -> int | None:
    value = entry.get(name)
    if value is None:
        return None
    if isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= _MOST_PLACES:
        return value
    found.append(f"{where}.{name}: expected a whole number from 1 to {_MOST_PLACES}")
    return None


def _expires_us(value: object, where: str, found: list[str]) -> int | None:
    """Returns when a key expires, in microseconds since 1970: a day begins, and a time is one of UTC unless it says
    otherwise."""
    if isinstance(value, str):  # in quotation marks
        try:
            value = datetime.fromisoformat(value)
        except ValueError:
            value = 0
    if value is None:
        return None
    if isinstance(value, date) and not isinstance(value, datetime):
        value = datetime.combine(value, time_of_day())
    if isinstance(value, datetime):
        aware = value if value.tzinfo is not None else value.replace(tzinfo=UTC)
        return int(aware.timestamp() * US_PER_S)
    found.append(f"{where}.expires: expected a day or a time, like 2027-01-31 or 2027-01-31T12:00:00Z")
    return None


def _digest(entry: Mapping[str, object], where: str, found: list[str]) -> bytes | None:
    clear, hashed = entry.get("key"), entry.get("sha256")
    if (clear is None) == (hashed is None):
        found.append(f"{where}: expected either key or sha256")
    elif isinstance(hashed, str) and _DIGEST.fullmatch(hashed):
        return bytes.fromhex(hashed)
    elif hashed is not None:
        found.append(f"{where}.sha256: expected 64 hexadecimal digits")
    elif not isinstance(clear, str) or len(clear) < MIN_KEY_CHARACTERS or not clear.isascii() or " " in clear:
        found.append(f"{where}.key: expected at least {MIN_KEY_CHARACTERS} characters without spaces")
    elif clear.startswith(SECRET_PREFIX):
        found.append(f"{where}.key: {SECRET_PREFIX} is kept for client secrets")
    else:
        return digest_of(clear)
    return None


def _origins(entries: object, where: str, found: list[str]) -> tuple[str, ...] | None:
    if entries is None:
        return None
    if not isinstance(entries, list):
        found.append(f"{where}.origins: expected a list")
        return None
    checked = []
    for index, entry in enumerate(entries):
        try:
            checked.append(check_entry(str(entry)))
        except ValueError as error:
            found.append(f"{where}.origins.{index}: expected {error}")
    return tuple(checked)


def _limits(entry: object, where: str, found: list[str]) -> Quotas | None:
    """Reads what a tenant may use; `{}` is as much as it likes, whatever its tier may."""
    if not isinstance(entry, Mapping):
        found.append(f"{where}: expected a mapping with any of {', '.join(_LIMITS)}")
        return None
    before = len(found)
    found += [f"{where}.{_shown(name)}: there is no such key" for name in entry if name not in _LIMITS]
    numbers: dict[str, float] = {}
    for name, (least, most, whole) in _LIMITS.items():
        value = entry.get(name)
        if value is None:
            continue
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if not is_number or not least <= value <= most or (whole and value != int(value)):
            found.append(
                f"{where}.{name}: expected {'a whole number' if whole else 'a number'} from {least} to {most}"
            )
        else:
            numbers[name] = value
    if len(found) > before:
        return None
    return quotas(
        llm_tokens=_whole(numbers.get("llm_tokens")),
        audio_s=numbers.get("audio_s"),
        requests=_whole(numbers.get("requests")),
        window_s=numbers.get("window_s", 60.0),
        burst=numbers.get("burst", 1.0),
    )


def _whole(value: float | None) -> int | None:
    return None if value is None else int(value)
