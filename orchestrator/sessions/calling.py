"""The call of a session (heart): one at a time, and one that was lost may come back for a while."""

from orchestrator.sessions.attendance import Attendance
from orchestrator.sessions.editing import Editor
from orchestrator.sessions.effects import CloseLink
from orchestrator.sessions.outbound import Outbound
from orchestrator.sessions.speaking import Speaker


class Calling:
    """Lets a call take over from the one before, at the sample where that one stopped."""

    def __init__(self, out: Outbound, attendance: Attendance, speaker: Speaker, editor: Editor) -> None:
        self.back_by: int | None = None
        """Until when a call that was lost may come back; None where none was."""
        self._out = out
        self._attendance = attendance
        self._speaker = speaker
        self._editor = editor

    def joined(self, link_id: str) -> None:
        """A call is there. One that still is has been replaced by it."""
        if not self._out.rules.returns:
            self._speaker.playback.has_call = True
            return
        for other in self._attendance.calls:
            if other != link_id:
                self._attendance.left(other, self._out.now)
                self._editor.left(other)
                self._out.do(CloseLink(other, 1000, "Another call took over."))
        self.back_by = None
        self._speaker.playback.call_came()

    def lost(self, may_return: bool) -> None:
        """The call is gone. Nothing is held for its return where the user hears by other means meanwhile."""
        if not self._out.rules.returns:
            if not self._attendance.calls:
                self.end()
            return
        self._speaker.playback.is_held = True
        self.back_by = self._out.now + self._out.rules.grace_us
        if self._attendance.hears_by_events or not may_return:
            self.give_up()

    def give_up(self) -> None:
        """A call that was lost, if one was, does not come back."""
        if self.back_by is not None:
            self.end()

    def end(self) -> None:
        """There is no call any more, if there was one."""
        self.back_by = None
        if self._speaker.playback.has_call:
            self._speaker.call_left()

    def time_passed(self, now: int) -> None:
        if self.back_by is not None and now >= self.back_by:
            self.give_up()

    def sound_lost(self, response_id: str) -> None:
        """What a call that came back has yet to play is gone: its sound ends where the user has heard it."""
        if response_id in self._speaker.playback.responses:
            self._speaker.clear_playout()
