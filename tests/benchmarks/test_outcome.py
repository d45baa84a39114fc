import json
from pathlib import Path

from benchmarks.outcome import Claim, Outcome, shown, this_machine


def test_an_outcome_is_written_with_its_machine(tmp_path: Path) -> None:
    """The JSON names the machine, its cores, the arguments, every claim with its figure, and the tables."""
    outcome = Outcome("speed", {"calls": 2})
    outcome.claims.append(Claim("it is fast", False, 1.5))
    outcome.tables["all"] = [{"a": 1}]
    written = json.loads(outcome.write(tmp_path / "deep" / "speed.json", this_machine()).read_text())
    assert written["machine"]["cores"] >= 1
    assert written["machine"]["processor"]
    assert written["arguments"] == {"calls": 2}
    assert written["claims"] == [{"text": "it is fast", "holds": False, "figure": 1.5}]
    assert written["tables"] == {"all": [{"a": 1}]}
    assert not outcome.holds


def test_figures_are_shown_as_people_read_them() -> None:
    """Nothing is a dash; numbers have at most three decimals and no zeros behind."""
    assert [shown(value) for value in (None, 2.0, 0.12345, 7, True, "x")] == [
        "–",
        "2",
        "0.123",
        "7",
        "True",
        "x",
    ]
