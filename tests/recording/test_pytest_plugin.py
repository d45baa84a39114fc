"""Scenarios as tests, in a pytest of their own: collected, failed with the time line, and out of others' way."""

import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path

import pytest

HERE = Path(__file__).parent
SAMPLES = HERE.parents[1] / "samples" / "sessions"
PLUGIN = "orchestrator.recording.pytest_plugin"
INSTALLED = [point for point in entry_points(group="pytest11") if point.value == PLUGIN]


def pytest_in(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Runs pytest in a folder, with the plugin, whether or not it is installed as one."""
    given = [] if INSTALLED else ["-p", PLUGIN]
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "-p",
        "no:randomly",
        *given,
        *arguments,
    ]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300, check=False)


def scenario(folder: Path, text: str, name: str = "one") -> None:
    (folder / f"{name}.session.yaml").write_text(text)


GOOD = (HERE / "order.session.yaml").read_text()


def test_a_scenario_is_collected_and_passes(tmp_path: Path) -> None:
    """A file is a test, by its name; the strict settings of others do not trip over it."""
    scenario(tmp_path, GOOD)
    (tmp_path / "pytest.ini").write_text("[pytest]\naddopts = --strict-markers\nfilterwarnings = error\n")
    result = pytest_in(tmp_path, "-rA")
    assert result.returncode == 0, result.stdout + result.stderr
    assert "PASSED one.session.yaml::one" in result.stdout


def test_a_failed_scenario_shows_the_time_line_around_what_is_different(tmp_path: Path) -> None:
    """Both sides, the time, and what happened near it, without a stack of ours."""
    scenario(tmp_path, GOOD.replace("lacks: [sorry]", "lacks: [noted]").replace("  errors: 0", "  errors: 2"))
    result = pytest_in(tmp_path)
    assert result.returncode == 1
    assert "reply 2 at 8.000 s" in result.stdout
    assert "expected: lacks 'noted'" in result.stdout
    assert "user: We will also need parking." in result.stdout
    assert "expected: 2" in result.stdout
    assert "Traceback" not in result.stdout
    assert "rehearsal.py" not in result.stdout


def test_a_faulty_scenario_is_told_in_words(tmp_path: Path) -> None:
    """A typo names its field and line; a sound that is not there, and a rule that is none, are named too."""
    scenario(tmp_path, GOOD.replace("conflicts:", "conflict:"), "typo")
    scenario(tmp_path, GOOD.replace("script:", "rules: {early_reply: false}\nscript:"), "rule")
    scenario(tmp_path, GOOD.replace("speech: 1.6", "audio: gone.wav"), "gone")
    result = pytest_in(tmp_path)
    assert "conflict" in result.stdout
    line = GOOD[: GOOD.index("conflicts:")].count("\n") + 1
    assert (
        f"typo.session.yaml:{line}: expect.conflict: there is no such field; do you mean conflicts?"
        in result.stdout
    )
    rule = pytest_in(tmp_path, "rule.session.yaml")
    assert "rule.session.yaml: rules: early_reply: there is no such rule" in rule.stdout
    gone = pytest_in(tmp_path, "gone.session.yaml")
    assert "cannot read gone.wav" in gone.stdout
    assert "Traceback" not in gone.stdout + result.stdout


def test_real_scenarios_can_be_left_out(tmp_path: Path) -> None:
    """Those that load models carry a mark."""
    scenario(tmp_path, GOOD.replace("engines: scripted", "engines: real"))
    result = pytest_in(tmp_path, "-m", "not chorale_real")
    assert "1 deselected" in result.stdout


@pytest.mark.real
def test_a_scenario_with_real_engines_runs_and_fails_as_any_other(tmp_path: Path) -> None:
    """`engines: real` hears a recording with the models of this machine; one that expects other words fails with both
    sides; the fixture for models gives the story; models are loaded once in a run."""
    sound = SAMPLES / "timer-fifteen.flac"
    text = (
        "engines: real\n"
        "session: {output_modalities: [text], max_output_tokens: 8}\n"
        f"inputs: [{{at: 0.5, audio: {sound}, words: Set a timer for fifteen minutes.}}]\n"
        "expect: {words: [Set a timer for 15 minutes.], slots: {duration: 15 minutes}, other_slots: 0,\n"
        "  intent: set_timer, conflicts: 0, freezes: 0, questions: 0, verdict: accept, rollbacks: 0, errors: 0}\n"
    )
    scenario(tmp_path, text, "good")
    scenario(tmp_path, text.replace("[Set a timer for 15 minutes.]", "[Close the window.]"), "bad")
    (tmp_path / "test_it.py").write_text(
        "from pathlib import Path\n"
        "def test_it(chorale_models):\n"
        "    rehearsed = chorale_models(Path(__file__).parent / 'good.session.yaml')\n"
        "    assert rehearsed.story.slots == {'duration': '15 minutes'}\n"
    )
    result = pytest_in(tmp_path, "-rA")
    assert result.returncode == 1, result.stdout + result.stderr
    assert "PASSED good.session.yaml::good" in result.stdout
    assert "PASSED test_it.py::test_it" in result.stdout
    assert "1 failed, 2 passed" in result.stdout
    assert "expected: Close the window." in result.stdout
    assert "got:      Set a timer for 15 minutes." in result.stdout


def test_fixtures_give_a_scenario_to_a_test(tmp_path: Path) -> None:
    """Who wants to look closer gets journal and story from a fixture."""
    scenario(tmp_path, GOOD.replace("engines: scripted", "engines: real"))
    (tmp_path / "test_it.py").write_text(
        "from pathlib import Path\n"
        "def test_it(chorale_scripted):\n"
        "    rehearsed = chorale_scripted(Path(__file__).parent / 'one.session.yaml')\n"
        "    assert [one.role for one in rehearsed.story.said] == ['user', 'assistant'] * 2\n"
        "    assert not rehearsed.misses\n"
    )
    result = pytest_in(tmp_path, "test_it.py")
    assert result.returncode == 0, result.stdout


def test_the_plugin_loads_nothing_for_those_without_scenarios(tmp_path: Path) -> None:
    """Others' runs import none of the server, nor numpy; and it can be switched off."""
    (tmp_path / "test_it.py").write_text(
        "import sys\n"
        "def test_it():\n"
        "    mine = [name for name in sys.modules if name.startswith(('orchestrator', 'modalities'))]\n"
        f"    assert set(mine) <= {{'orchestrator', 'orchestrator.recording', '{PLUGIN}'}}\n"
        "    assert 'numpy' not in sys.modules\n"
        "    assert 'msgspec' not in sys.modules\n"
    )
    result = pytest_in(tmp_path)
    assert result.returncode == 0, result.stdout
    if INSTALLED:
        scenario(tmp_path, "not: a scenario")
        assert pytest_in(tmp_path, "-p", "no:chorale").returncode == 0
