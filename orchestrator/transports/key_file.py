"""The file of keys: YAML in, `KeyRing` out, or one error that lists every fault without showing any key."""

import re
from collections.abc import Mapping
from pathlib import Path

import yaml

from orchestrator.errors import ConfigError
from orchestrator.flow.tenants import Quotas, fits_no_reply, quotas
from orchestrator.scheduling.job import Tier
from orchestrator.transports.auth import SECRET_PREFIX, Key, KeyRing, Principal, digest_of
from orchestrator.transports.origins import check_entry

MIN_KEY_CHARACTERS = 16
_FIELDS = ("key", "sha256", "tenant", "tier", "origins", "limits")
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
    try:
        tree = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}") from None
    except yaml.MarkedYAMLError as error:
        where = f"line {error.problem_mark.line + 1}" if error.problem_mark else "it"
        raise ConfigError(f"{path}: {where} is not YAML") from None
    except (yaml.YAMLError, UnicodeDecodeError):
        raise ConfigError(f"{path}: not YAML text") from None
    entries = tree.get("keys") if isinstance(tree, dict) else None
    if not isinstance(entries, list) or not entries:
        raise ConfigError(f"{path}: expected 'keys:' with a list of at least one key")
    found: list[str] = [f"there is no such section: {name}" for name in tree if name != "keys"]
    keys = [_read(entry, f"keys.{index}", found, output_tokens) for index, entry in enumerate(entries)]
    read = [key for key in keys if key is not None]
    if len({key.digest for key in read}) < len(read):
        found.append("keys: one key stands in the list twice")
    found += [f"keys: the limits of {tenant} are not the same for all its keys" for tenant in _torn(read)]
    if found:
        count = "1 fault" if len(found) == 1 else f"{len(found)} faults"
        raise ConfigError("\n".join([f"{count} in {path}:", *(f"  {fault}" for fault in found)]))
    return KeyRing(read)


def _read(entry: object, where: str, found: list[str], output_tokens: int) -> Key | None:
    """Reads one entry; adds what is wrong with it to `found`."""
    if not isinstance(entry, Mapping):
        found.append(f"{where}: expected a mapping with key (or sha256), tenant and tier")
        return None
    before = len(found)
    found += [f"{where}.{name}: there is no such key" for name in entry if name not in _FIELDS]
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
    limits = _limits(entry["limits"], f"{where}.limits", found) if "limits" in entry else None
    if limits is not None and (fault := fits_no_reply(limits, output_tokens)) is not None:
        found.append(f"{where}.limits.{fault}")
    if len(found) > before or digest is None or tier is None:
        return None
    return Key(digest, Principal(str(tenant), tier, origins), limits)


def _torn(keys: list[Key]) -> list[str]:
    """Returns the tenants whose keys name different limits: a tenant has one account."""
    named: dict[str, Quotas] = {}
    return [
        tenant
        for key in keys
        if key.quotas is not None
        and named.setdefault(tenant := key.principal.tenant, key.quotas) != key.quotas
    ]


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
    found += [f"{where}.{name}: there is no such key" for name in entry if name not in _LIMITS]
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
