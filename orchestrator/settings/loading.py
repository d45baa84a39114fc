"""From files and environment to `Settings`, or to one error that lists every fault.

Three layers, later wins: the defaults, a YAML file, environment variables (``CHORALE_SERVER__PORT=9000``: two
underscores between the levels, values read as YAML) with the command line's options above them. Paths in the file are
relative to the file.
"""

import os
from collections.abc import Mapping
from pathlib import Path

from pydantic import ValidationError

from orchestrator.errors import ConfigError
from orchestrator.flow.tenants import fits_no_reply
from orchestrator.settings import faults
from orchestrator.settings.layers import (
    Tree,
    read_environment,
    read_options,
    read_yaml,
    stack,
    stack_overlays,
)
from orchestrator.settings.quotas import quotas_of
from orchestrator.settings.schema import Limits, Server, Settings, Workers
from orchestrator.transports.origins import is_loopback

_EVERYWHERE = {"0.0.0.0", "::"}


def load(
    path: Path | None = None,
    environment: Mapping[str, str] | None = None,
    options: Mapping[str, object] | None = None,
) -> Settings:
    """Reads the configuration. `environment` None is ``os.environ``; `options` are dotted keys from the command line
    and win over everything. Raises `ConfigError` naming every fault."""
    variables = os.environ if environment is None else environment
    written, found = read_yaml(path) if path is not None else ({}, [])
    overlay = stack_overlays(read_environment(variables), read_options(options or {}))
    tree = stack(_anchored(written, path), overlay.tree)
    settings = None
    try:
        settings = Settings.model_validate(tree)
    except ValidationError as error:
        found += faults.describe(error, Settings, overlay.sources)
    found += _across(tree, variables)
    found += _quotas(tree)
    found += _bases(tree)
    if found or settings is None:
        raise ConfigError(faults.report(found, str(path) if path else "environment and options"))
    return settings


def _across(tree: Tree, variables: Mapping[str, str]) -> list[str]:
    """Returns the faults that lie between keys, as far as their section is sound by itself."""
    found = []
    if variables.get("WEB_CONCURRENCY", "1") not in ("", "1"):
        found.append("WEB_CONCURRENCY: expected 1 or nothing: one process holds all sessions")
    try:
        server = Server.model_validate(tree.get("server", {}))
    except ValidationError:
        return found
    found += _recording(tree)
    if server.key_file is None and not is_loopback(server.host):
        found.append(
            f"server.key_file: expected a key file, since server.host {server.host} can be reached from other "
            "machines. Copy configs/keys.example.yaml, put your own keys in and name it here, or listen on 127.0.0.1"
        )
    if server.key_file is None and server.grpc is not None and not is_loopback(server.grpc.host):
        found.append(
            f"server.key_file: expected a key file, since server.grpc.host {server.grpc.host} can be reached from "
            "other machines"
        )
    if (
        server.grpc is not None
        and server.grpc.port == server.port != 0
        and _meet(server.grpc.host, server.host)
    ):
        found.append(
            f"server.grpc.port: expected another than that of server.port, got {server.port} for both"
        )
    if server.key_file is None and "*" in server.origins:
        found.append(
            "server.origins: '*' needs server.key_file: without keys any web page could talk to this server"
        )
    return found


def _meet(one: str, other: str) -> bool:
    """Tells whether one port of both would be the same place: not on two addresses of this machine."""
    return one == other or bool({one, other} & _EVERYWHERE)


def _recording(tree: Tree) -> list[str]:
    written = tree.get("recording")
    if isinstance(written, dict) and written.get("enabled") is True and not written.get("dir"):
        return ["recording.dir: expected a folder, since recording.enabled is true"]
    return []


def _quotas(tree: Tree) -> list[str]:
    """Returns the tiers whose quota fits no reply."""
    try:
        limits = Limits.model_validate(tree.get("limits", {}))
    except ValidationError:
        return []
    tiers = {"platinum": limits.platinum, "gold": limits.gold, "silver": limits.silver}
    return [
        f"limits.{tier}.{fault}"
        for tier, quota in tiers.items()
        if (fault := fits_no_reply(quotas_of(quota), limits.default_output_tokens)) is not None
    ]


def _bases(tree: Tree) -> list[str]:
    """Returns the limits of workers that would begin above what a worker has at one time: nobody would see that they
    are cut. The reference formula may: it takes shares off its base."""
    try:
        workers = Workers.model_validate(tree.get("workers", {}))
    except ValidationError:
        return []
    return [
        f"workers.{role}.limit.base: expected at most workers.{role}.parallel ({worker.parallel}), "
        f"got {worker.limit.base}: raise parallel where a worker is to have more jobs at one time"
        for role, worker in workers.by_role().items()
        if worker.limit.policy != "reference" and (worker.limit.base or 0) > worker.parallel
    ]


_FILES = (
    ("server", "key_file"),
    ("server", "secret_file"),
    ("server", "tls", "cert"),
    ("server", "tls", "key"),
    ("workers", "understand", "domain"),
    ("recording", "dir"),
)


def _anchored(tree: Tree, path: Path | None) -> Tree:
    """Reads relative paths of a file from the folder of that file."""
    if path is None:
        return tree
    for *sections, key in _FILES:
        node: object = tree
        for section in sections:
            node = node.get(section) if isinstance(node, dict) else None
        if isinstance(node, dict) and isinstance(node.get(key), str) and node[key] != "default":
            node[key] = str(path.resolve().parent / node[key])
    return tree
