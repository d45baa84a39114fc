"""Makes the reports of a repeated job continue what its lost run had told already.

A reply or a sentence may have been half told when its worker died. Told again from the start it would be doubled; so
the repeat is swallowed as far as it says the same, and goes on from there. A reply that comes out differently the
second time cannot be continued: it fails. Sound is continued by length: a voice never says a sentence twice in exactly
the same samples.
"""

from orchestrator.scheduling.work import (
    ENDS_A_JOB,
    Failed,
    Replied,
    ReplyCall,
    ReplyText,
    Report,
    SpeechPiece,
    Spoke,
)

_TEXT = -1


class Splice:
    """Belongs to one job: sees all reports of all its runs."""

    __slots__ = ("_heard", "_pieces", "_samples", "_samples_told", "_told")

    def __init__(self) -> None:
        self._told: dict[int, str] = {}
        """What was told: text under -1, the arguments of tool call n under n."""
        self._heard: dict[int, int] = {}
        """How far this run has come in each of them, in characters."""
        self._samples_told = 0
        self._samples = 0
        self._pieces = 0

    @property
    def characters(self) -> int:
        """How much of a reply was told."""
        return sum(map(len, self._told.values()))

    def restart(self) -> None:
        """The run is lost; the next report belongs to a repeat."""
        self._heard.clear()
        self._samples = 0

    def receive(self, report: Report) -> Report | None:
        """Returns what is new in a report; None where all of it was told before.

        A repeat that contradicts what was told comes out as `Failed`, whatever its type.
        """
        match report:
            case ReplyText():
                new = self._continue(_TEXT, report.text)
                if new is None:
                    return _broke_off(report.job_id)
                if len(new) == len(report.text):
                    return report
                return ReplyText(report.job_id, new) if new else None
            case ReplyCall():
                return self._call(report)
            case SpeechPiece():
                return self._piece(report)
            case Spoke():
                return Spoke(report.job_id, self._pieces)
            case Replied() if any(self._heard.get(key, 0) < len(told) for key, told in self._told.items()):
                return _broke_off(report.job_id)
            case _:
                return report

    def _call(self, report: ReplyCall) -> Report | None:
        is_first = report.index not in self._told
        new = self._continue(report.index, report.arguments)
        if new is None:
            return _broke_off(report.job_id)
        if not new and not is_first:
            return None
        return ReplyCall(report.job_id, report.index, new, report.name if is_first else None)

    def _piece(self, report: SpeechPiece) -> Report | None:
        skip = min(max(self._samples_told - self._samples, 0), report.samples)
        self._samples += report.samples
        if skip == report.samples:
            return None
        self._samples_told = self._samples
        self._pieces += 1
        return SpeechPiece(
            report.job_id, self._pieces - 1, report.rate_hz, report.samples - skip, report.audio[2 * skip :]
        )

    def _continue(self, key: int, text: str) -> str | None:
        """Returns what `text` adds to what was told under `key`; None where it contradicts it."""
        told = self._told.get(key, "")
        position = self._heard.get(key, 0)
        again = told[position : position + len(text)]
        if not text.startswith(again):
            return None
        self._heard[key] = position + len(text)
        new = text[len(again) :]
        self._told[key] = told + new
        return new


def ends_a_job(report: Report) -> bool:
    """Says whether nothing more comes for this report's job."""
    return type(report) in ENDS_A_JOB


def _broke_off(job_id: str) -> Failed:
    return Failed(job_id, "worker_failed", "the reply broke off and could not be continued")
