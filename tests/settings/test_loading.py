"""The configuration is read from three layers, and everything wrong with it is said at once."""

import json
from pathlib import Path

import pytest

from orchestrator.errors import ConfigError
from orchestrator.settings import Settings, load

ROOT = Path(__file__).parents[2]


def faults_of(text: str, folder: Path, environment: dict[str, str] | None = None) -> list[str]:
    """The fault lines that a file with this text brings."""
    file = folder / "chorale.yaml"
    file.write_text(text)
    with pytest.raises(ConfigError) as caught:
        load(file, environment or {})
    return [line.strip() for line in str(caught.value).splitlines()[1:]]


def test_load_without_a_file_gives_the_embedded_server() -> None:
    """No file and no variables are needed to run."""
    settings = load(None, {})
    assert settings == Settings()
    assert settings.server.host == "127.0.0.1"


def test_load_of_the_shipped_file_equals_the_defaults() -> None:
    """`configs/default.yaml` documents every key with the value that it has anyway."""
    assert load(ROOT / "configs/default.yaml", {}) == Settings()


def test_load_of_the_shipped_file_names_every_key() -> None:
    """A reader of `configs/default.yaml` sees all there is to set."""
    text = (ROOT / "configs/default.yaml").read_text()
    for section, model in Settings().model_dump().items():
        for key in model:
            assert f"  {key}:" in text, f"{section}.{key}"


def test_load_lets_the_environment_win_over_the_file_and_options_over_both(tmp_path: Path) -> None:
    """Defaults, file, environment, command line: later wins, key by key."""
    file = tmp_path / "chorale.yaml"
    file.write_text("server: {port: 1111, max_sessions: 7, drain_s: 3}\n")
    environment = {"CHORALE_SERVER__PORT": "2222", "CHORALE_SERVER__DRAIN_S": "4"}
    server = load(file, environment, {"server.port": 3333}).server
    assert (server.port, server.drain_s, server.max_sessions) == (3333, 4, 7)


@pytest.mark.parametrize("proxy", ["10.0.0.0/33", "10.1.0.0/8", "proxy.example.com", ""])
def test_load_refuses_a_proxy_that_is_no_network(tmp_path: Path, proxy: str) -> None:
    """Who is believed about other addresses is written exactly; names and half networks are none."""
    (fault,) = faults_of(f"server: {{proxies: [10.0.0.0/8, '{proxy}']}}\n", tmp_path)
    assert fault.startswith("server.proxies.1")


def test_load_asks_for_keys_where_grpc_can_be_reached(tmp_path: Path) -> None:
    """The same rule as for the HTTP port."""
    (fault,) = faults_of("server: {grpc: {host: 0.0.0.0}}\n", tmp_path)
    assert fault.startswith("server.key_file: expected a key file, since server.grpc.host 0.0.0.0")
    file = tmp_path / "sound.yaml"
    file.write_text("server: {grpc: {}, proxies: [127.0.0.1, '::1'], secret_file: signing}\n")
    server = load(file, {}).server
    assert server.grpc is not None
    assert server.proxies == ("127.0.0.1/32", "::1/128")
    assert server.secret_file == tmp_path / "signing"


@pytest.mark.parametrize(
    ("server", "is_one_place"),
    [
        ("port: 9000, grpc: {port: 9000}", True),
        ("host: '::1', port: 9000, grpc: {host: '::', port: 9000}, key_file: k", True),
        ("port: 9000, grpc: {host: 127.0.0.2, port: 9000}", False),
        ("port: 0, grpc: {port: 0}", False),
    ],
)
def test_load_refuses_one_port_for_http_and_grpc(server: str, is_one_place: bool, tmp_path: Path) -> None:
    """Two addresses of a machine may have the same, and free ones are two."""
    if is_one_place:
        (fault,) = faults_of(f"server: {{{server}}}\n", tmp_path)
        assert fault == "server.grpc.port: expected another than that of server.port, got 9000 for both"
    else:
        file = tmp_path / "chorale.yaml"
        file.write_text(f"server: {{{server}}}\n")
        assert load(file, {}).server.grpc is not None


def test_load_reads_structured_values_from_the_environment() -> None:
    """A variable holds YAML: lists and mappings too."""
    settings = load(
        None,
        {
            "CHORALE_SERVER__ORIGINS": "[loopback, https://App.Example.com:443]",
            "CHORALE_WORKERS__LLM__OPTIONS__CONTEXT": "2048",
            "CHORALE_WORKERS__SPEECH": "null",
        },
    )
    assert settings.server.origins == ("loopback", "https://app.example.com")
    assert settings.workers.llm.options == {"context": 2048}
    assert settings.workers.speech is None
    assert list(settings.workers.by_role()) == ["asr", "understand", "llm"]


def test_load_leaves_variables_without_a_second_level_alone() -> None:
    """Folders of recorded data share the prefix and are no settings."""
    assert load(None, {"CHORALE_SPEECH_DATA": "/data"}) == Settings()


def test_load_names_every_fault_with_its_key_and_what_was_expected(tmp_path: Path) -> None:
    """One error lists all that is wrong: types, bounds, unknown keys at any depth, and the layer they came from."""
    found = faults_of(
        "server: {prot: 1, drain_s: soon}\nsessions: {align: {window: 3}}\nworkers: {llm: {count: 0, threads: lots}}\n",
        tmp_path,
        {"CHORALE_SERVER__PORT": "99999"},
    )
    assert found == [
        "server.port (CHORALE_SERVER__PORT): expected less than or equal to 65535, got 99999",
        "server.drain_s: expected a valid number, got 'soon'",
        "server.prot: there is no such key; did you mean port?",
        "sessions.align.window: there is no such key; did you mean window_ms?",
        "workers.llm.threads: expected a valid integer or 'auto', got 'lots'",
        "workers.llm.count: expected greater than or equal to 1, got 0",
    ]


def test_load_points_a_key_in_the_wrong_place_to_the_right_one(tmp_path: Path) -> None:
    """A known key at the wrong level is told where it belongs."""
    assert faults_of("port: 1\n", tmp_path) == [
        "port: there is no such key; did you mean server.port or server.grpc.port?"
    ]


def test_load_refuses_several_processes(tmp_path: Path) -> None:
    """Sessions live in one process; asking for more is a fault, also in uvicorn's own variable."""
    found = faults_of("server: {workers: 2}\n", tmp_path, {"WEB_CONCURRENCY": "3"})
    assert len(found) == 2
    assert found[0].startswith("server.workers: expected 1")
    assert found[1].startswith("WEB_CONCURRENCY: expected 1")


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.4", "example.com"])
def test_load_refuses_to_listen_beyond_this_machine_without_keys(host: str, tmp_path: Path) -> None:
    """A server that others can reach needs a key file, and the fault says how to make one."""
    found = faults_of(f"server: {{host: '{host}'}}\n", tmp_path)
    assert len(found) == 1
    assert found[0].startswith("server.key_file: expected a key file")
    assert "keys.example.yaml" in found[0]


@pytest.mark.parametrize("host", ["127.0.0.1", "127.1.2.3", "::1", "localhost"])
def test_load_needs_no_keys_on_loopback(host: str) -> None:
    """This machine alone may come in without a key."""
    assert load(None, {}, {"server.host": host}).server.host == host


def test_load_refuses_any_origin_without_keys(tmp_path: Path) -> None:
    """A keyless server is never open to every web page."""
    found = faults_of("server: {origins: ['*']}\n", tmp_path)
    assert found == [
        "server.origins: '*' needs server.key_file: without keys any web page could talk to this server"
    ]


def test_load_reads_paths_relative_to_the_file(tmp_path: Path) -> None:
    """`key_file: keys.yaml` is beside the file that names it, wherever the server is started."""
    file = tmp_path / "chorale.yaml"
    file.write_text("server: {key_file: keys.yaml, tls: {cert: c.pem, key: /etc/k.pem}}\n")
    server = load(file, {}).server
    assert server.tls is not None
    assert (server.key_file, server.tls.cert, server.tls.key) == (
        tmp_path / "keys.yaml",
        tmp_path / "c.pem",
        Path("/etc/k.pem"),
    )


def test_load_says_where_yaml_is_broken(tmp_path: Path) -> None:
    """A syntax error is named by line and column."""
    (fault,) = faults_of("server:\n  port: [1\n", tmp_path)
    assert "chorale.yaml: line 3, column 1" in fault


def test_load_refuses_a_key_that_stands_twice(tmp_path: Path) -> None:
    """YAML would silently take the last of two; here it is a fault."""
    (fault,) = faults_of("server: {port: 1, port: 2}\n", tmp_path)
    assert "'port' stands twice" in fault


def test_load_refuses_a_list_for_a_name(tmp_path: Path) -> None:
    """It is told where, like any other fault."""
    (fault,) = faults_of("server: {[port]: 1}\n", tmp_path)
    assert "line 1, column 10" in fault


def test_load_of_a_missing_file_names_it(tmp_path: Path) -> None:
    """The file that was asked for is named, not replaced by defaults."""
    with pytest.raises(ConfigError, match=r"nowhere\.yaml: cannot be read"):
        load(tmp_path / "nowhere.yaml", {})


def test_load_never_shows_values_of_private_keys(tmp_path: Path) -> None:
    """A fault in a credential names the key and keeps the value to itself."""
    (fault,) = faults_of("calls: {ice_servers: [{urls: 'turn:x', credential: [hunter2]}]}\n", tmp_path)
    assert fault.startswith("calls.ice_servers.0.credential: expected")
    assert "hunter2" not in fault
    for plain in (
        "server: {key_poll_s: -7}",
        "server: {max_secrets: -7}",
        "limits: {gold: {llm_tokens: -7}}",
    ):
        assert faults_of(f"{plain}\n", tmp_path)[0].endswith(", got -7"), plain


def test_load_says_that_a_list_is_expected(tmp_path: Path) -> None:
    """In the words of the file, not of Python."""
    assert faults_of("server: {proxies: 10.0.0.7}\n", tmp_path) == [
        "server.proxies: expected a list, like [one, another], got '10.0.0.7'"
    ]


def test_load_takes_an_empty_section_as_left_out(tmp_path: Path) -> None:
    """Commenting all keys of a section out is no fault."""
    file = tmp_path / "chorale.yaml"
    file.write_text("server:\n  # port: 1\n")
    assert load(file, {}) == Settings()


@pytest.mark.parametrize(
    ("limits", "fault"),
    [
        ("silver: {llm_tokens: 1024}", "limits.silver.llm_tokens: expected at least 1025, got 1024"),
        (
            "gold: {llm_tokens: 60000, burst: 0.01}",
            "limits.gold.burst: expected a share of at least 1025 of 60000",
        ),
        (
            "platinum: {llm_tokens: 100}, default_output_tokens: 100",
            "limits.platinum.llm_tokens: expected at least 101",
        ),
    ],
)
def test_load_refuses_a_quota_that_fits_no_reply(limits: str, fault: str, tmp_path: Path) -> None:
    """Else every reply of that tier would be refused, and nobody would say why."""
    found = faults_of(f"limits: {{{limits}}}\n", tmp_path)
    assert len(found) == 1
    assert found[0].startswith(fault)
    assert "limits.default_output_tokens" in found[0]


@pytest.mark.parametrize(
    "limits",
    [
        "silver: {llm_tokens: 1025}",
        "silver: {llm_tokens: 100}, default_output_tokens: 99",
        "silver: {requests: 1}",
    ],
)
def test_load_takes_a_quota_that_fits_one_reply(limits: str, tmp_path: Path) -> None:
    """One token to read and what may be written: that is enough."""
    file = tmp_path / "chorale.yaml"
    file.write_text(f"limits: {{{limits}}}\n")
    load(file, {})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("x team", "speech"),
        ("", "speech"),
        ("x-team\r\nx-other", "speech"),
        ("x-té", "speech"),
        ("x-team", ""),
        ("x-team", " padded"),
        ("x-team", "sp33ch\nx-other: 1"),
        ("x-team", "sp33ch →"),
    ],
)
def test_load_refuses_headers_that_no_request_can_carry(name: str, value: str) -> None:
    """The collector would never be reached; the fault names the field, and not the value: it may be a key."""
    variables = {"CHORALE_TELEMETRY__OTLP_HEADERS": json.dumps({name: value})}
    with pytest.raises(ConfigError) as caught:
        load(None, variables)
    assert "telemetry.otlp_headers" in str(caught.value)
    assert "a header's " in str(caught.value)
    assert "sp33ch" not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("TELEMETRY__OTLP_HEADERS", "{authorization: Bearer M4RK"),
        ("TELEMETRY__OTLP_ENDPOINT", "ftp://user:M4RK@collector"),
        ("CALLS__ICE_SERVERS", "{urls: 'turn:x', credential: M4RK"),
        ("CALLS__ICE_SERVERS", "[M4RK]"),
        ("CALLS__ICE_SERVERS", "[{urls: {M4RK: 1}}]"),
        ("WORKERS__LLM__OPTIONS", "{api_key: M4RK"),
        ("SERVER__SECRET_FILE", "[M4RK]"),
    ],
)
def test_load_shows_nothing_that_may_be_secret_in_a_fault(name: str, value: str) -> None:
    """Also where it is of a wrong type as a whole: a bracket that was forgotten makes a text of it."""
    with pytest.raises(ConfigError) as caught:
        load(None, {f"CHORALE_{name}": value})
    assert name.lower().replace("__", ".") in str(caught.value)
    assert "M4RK" not in str(caught.value)


def test_load_takes_headers_that_a_request_can_carry() -> None:
    """Spaces within, any Latin-1 letter, any token as a name."""
    headers = {"authorization": "Basic YTpi=", "x-team.1": "Zoë and Bob", "x-n": "7"}
    assert (
        load(None, {"CHORALE_TELEMETRY__OTLP_HEADERS": json.dumps(headers)}).telemetry.otlp_headers == headers
    )


@pytest.mark.parametrize("policy", ["fixed", "aimd", "gradient"])
def test_load_refuses_a_limit_that_begins_above_what_a_worker_has(policy: str, tmp_path: Path) -> None:
    """`parallel` is the most of one worker: a base above it would be cut in silence, and the reader of the file would
    wait for jobs that never come side by side."""
    found = faults_of(f"workers: {{llm: {{limit: {{policy: {policy}, base: 5}}}}}}\n", tmp_path)
    assert found == [
        "workers.llm.limit.base: expected at most workers.llm.parallel (4), got 5: raise parallel where a worker is "
        "to have more jobs at one time"
    ]


@pytest.mark.parametrize(
    "worker",
    [
        "{parallel: 5, limit: {policy: gradient, base: 5}}",
        "{limit: {policy: aimd}}",
        "{limit: {policy: reference, base: 64}}",
    ],
)
def test_load_takes_a_limit_within_parallel_and_a_formula_that_begins_above_it(
    worker: str, tmp_path: Path
) -> None:
    """The reference formula takes shares off its base: above `parallel` it says from where on they are felt."""
    file = tmp_path / "chorale.yaml"
    file.write_text(f"workers: {{llm: {worker}, speech: null}}\n")
    assert load(file, {}).workers.speech is None
