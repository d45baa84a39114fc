"""The end of a JSON text that was cut."""

import json

_LITERALS = ("true", "false", "null")


def json_end(text: str) -> str:
    """Returns what must follow `text`, the beginning of a JSON object, to make it one; "" where it is whole.

    A text that is no beginning of JSON gets an end too, of no promise.
    """
    if not text.strip():
        return "{}"
    scan = _Scan()
    for character in text:
        scan.step(character)
    return scan.end()


class _Scan:
    """Follows a JSON text. `_expects` is what may come: a value, a key, a colon, or a comma or the end."""

    def __init__(self) -> None:
        self._open: list[str] = []
        self._expects = "value"
        self._string = ""
        self._in_string = False
        self._bare = ""
        self._fresh = False  # just behind an opening bracket, where a closing one may stand

    def step(self, character: str) -> None:
        if self._in_string:
            self._in_a_string(character)
        elif character in " \t\r\n" or character in ",:{}[]":
            self._structure(character)
        elif character == '"':
            self._in_string, self._string, self._fresh = True, "", False
        else:
            self._bare += character
            self._fresh = False

    def _in_a_string(self, character: str) -> None:
        if character == '"' and not self._escaping():
            self._in_string = False
            self._after_value()
        else:
            self._string += character

    def _escaping(self) -> bool:
        tail = len(self._string) - len(self._string.rstrip("\\"))
        return tail % 2 == 1

    def _after_value(self) -> None:
        self._expects = "colon" if self._expects == "key" else "more"

    def _structure(self, character: str) -> None:
        if self._bare:
            self._bare = ""
            self._after_value()
        if character in "{[":
            self._open.append(character)
            self._expects = "key" if character == "{" else "value"
        elif character in "}]":
            if self._open:
                self._open.pop()
            self._expects = "more"
        elif character == ",":
            self._expects = "key" if self._open and self._open[-1] == "{" else "value"
        elif character == ":":
            self._expects = "value"
        if character.strip():
            self._fresh = character in "{["

    def end(self) -> str:
        rest = self._end_of_token()
        if self._expects == "key" and not self._fresh:
            rest += '"":null'
        elif self._expects == "colon":
            rest += ":null"
        elif self._expects == "value" and not self._fresh:
            rest += "null"
        return rest + "".join("}" if bracket == "{" else "]" for bracket in reversed(self._open))

    def _end_of_token(self) -> str:
        if self._in_string:
            rest = _string_end(self._string)
        elif self._bare:
            rest = _bare_end(self._bare)
        else:
            return ""
        self._after_value()
        return rest


def _string_end(begun: str) -> str:
    """The end of a string: an escape that was cut is ended first."""
    for filling in ("", "\\", "0", "00", "000", "0000"):
        try:
            json.loads(f'"{begun}{filling}"')
        except ValueError:
            continue
        return f'{filling}"'
    return '"'


def _bare_end(begun: str) -> str:
    for literal in _LITERALS:
        if literal.startswith(begun):
            return literal[len(begun) :]
    return "" if begun[-1].isdigit() else "0"
