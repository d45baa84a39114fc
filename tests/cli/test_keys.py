"""`chorale keys`: a key is shown once, and its file is changed as a whole or not at all."""

import stat
from datetime import UTC, datetime
from pathlib import Path

import pytest
from typer.testing import CliRunner

from orchestrator.cli.keys import app
from orchestrator.transports.key_file import read_key_file

HELD = ".keys.yaml.new"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "keys.yaml"


def run(file: Path, *arguments: str) -> tuple[int, str, str]:
    done = CliRunner().invoke(app, [*arguments, "--file", str(file)])
    return done.exit_code, done.stdout, done.stderr


def test_new_prints_the_key_and_writes_its_hash(file: Path) -> None:
    """What is printed opens the tenant's door; the file shows nothing of it and is the owner's alone."""
    code, key, told = run(
        file, "new", "acme", "--tier", "silver", "--sessions", "2", "--expires", "2130-01-31"
    )
    assert code == 0
    key = key.strip()
    assert key not in file.read_text()
    assert key not in told
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    (entry,) = read_key_file(file).keys
    assert read_key_file(file).find(key) == entry.principal
    assert (entry.principal.tenant, entry.principal.tier.name) == ("acme", "SILVER")
    assert entry.principal.allowance.sessions == 2
    assert entry.expires_us == datetime(2130, 1, 31, tzinfo=UTC).timestamp() * 1_000_000
    assert entry.id in told
    assert list(file.parent.iterdir()) == [file]


def test_keys_are_listed_and_revoked_by_their_ids(file: Path) -> None:
    """A tenant's key is changed by making a second and withdrawing the first; the last one stays."""
    _, first, _ = run(file, "new", "acme")
    _, second, _ = run(file, "new", "acme")
    ids = [key.id for key in read_key_file(file).keys]
    listed = run(file, "list")[1]
    assert all(key_id in listed for key_id in ids)
    assert first.strip() not in listed
    assert run(file, "revoke", ids[0])[0] == 0
    ring = read_key_file(file)
    assert ring.find(first.strip()) is None
    assert ring.find(second.strip()) is not None
    code, _, told = run(file, "revoke", ids[1])
    assert (code, "last key" in told) == (2, True)
    assert len(read_key_file(file)) == 1


def test_change_keeps_the_rights_that_the_file_has_but_for_everybodys(file: Path) -> None:
    """A server that reads it by its group still does; the others never."""
    run(file, "new", "acme")
    file.chmod(0o644)
    run(file, "new", "acme")
    assert stat.S_IMODE(file.stat().st_mode) == 0o640


def test_change_follows_a_link(file: Path, tmp_path: Path) -> None:
    """The link stays one, and what it points to is changed."""
    run(file, "new", "acme")
    link = tmp_path / "link.yaml"
    link.symlink_to(file)
    assert run(link, "new", "lab")[0] == 0
    assert link.is_symlink()
    assert len(read_key_file(file)) == 2


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("new", "acme", "--tier", "tin"), "tier"),
        (("new", "acme", "--expires", "tomorrow"), "--expires"),
        (("new", "acme", "--origin", "nonsense"), "origins"),
        (("revoke", "0123456789ab"), "no key"),
    ],
)
def test_what_is_wrong_changes_nothing(file: Path, arguments: tuple[str, ...], says: str) -> None:
    """Exit code 2 with the reason, no key printed, the file as it was and nothing beside it."""
    run(file, "new", "acme")
    before = file.read_bytes()
    code, out, told = run(file, *arguments)
    assert (code, out, says in told) == (2, "", True)
    assert file.read_bytes() == before
    assert list(file.parent.iterdir()) == [file]


def test_two_at_one_time_do_not_lose_a_key(file: Path) -> None:
    """While another is at work a change is refused, and what the other writes is left alone."""
    run(file, "new", "acme")
    held = file.parent / HELD
    held.write_text("half")
    code, out, told = run(file, "new", "lab")
    assert (code, out, HELD in told) == (1, "", True)
    assert held.read_text() == "half"
    held.unlink()
    assert run(file, "new", "lab")[0] == 0


def test_missing_file_is_said(file: Path) -> None:
    """Only `new` makes one."""
    assert run(file, "list")[0] == 2
    for arguments in (("revoke", "0123456789ab"), ("hash",)):
        code, _, told = run(file, *arguments)
        assert (code, "cannot be read: No such file" in told) == (1, True)
    assert not file.exists()


def test_hash_hides_keys_in_clear(file: Path) -> None:
    """Both are valid before and after; `list` says that one stands in clear."""
    file.write_text("keys:\n- {key: sk-0123456789abcdef, tenant: acme}\n")
    assert "in clear" in run(file, "list")[2]
    assert run(file, "hash")[0] == 0
    assert "0123456789abcdef" not in file.read_text()
    assert read_key_file(file).find("sk-0123456789abcdef") is not None
