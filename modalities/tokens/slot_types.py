"""Slots that every domain can use by name: how numbers, times, days and lengths of time are written and said.

Patterns only find the words; what they are worth is computed elsewhere.
"""

from collections.abc import Mapping

_UNIT = "one|two|three|four|five|six|seven|eight|nine"
_TEEN = "ten|eleven|twelve|thirteen|fourteen|fifteen|sixteen|seventeen|eighteen|nineteen"
_TENS = "twenty|thirty|forty|fifty|sixty|seventy|eighty|ninety"
_SPOKEN = rf"(?:(?:{_TENS})(?:[ -](?:{_UNIT}))?|{_TEEN}|{_UNIT}|a hundred|one hundred|zero)"
_NUMBER = rf"(?:\d+(?:[.,]\d+)?|{_SPOKEN})"
_LENGTH = r"(?:second|minute|hour|day|week)s?"
_HALF = r"(?:(?:half an|an|half a|a)\s+(?:second|minute|hour|day|week)(?:\s+and a half)?)"
_ONE_LENGTH = rf"(?:{_NUMBER}(?:\s+and a half)?[\s-]+{_LENGTH}|{_HALF})"
_HOUR = rf"(?:\d{{1,2}}|{_UNIT}|ten|eleven|twelve)"
_MINUTES = rf"(?:[:.][0-5]\d|\s+(?:(?:twenty|thirty|forty|fifty)(?:[ -](?:{_UNIT}))?|{_TEEN}|oh (?:{_UNIT})))"
_HALF_DAY = r"(?:\s*(?:[ap]\.m\b\.?|[ap]m\b|in the (?:morning|afternoon|evening)|at night))"
_WEEKDAY = r"(?:mon|tues|wednes|thurs|fri|satur|sun)day"
_MONTH = r"(?:january|february|march|april|may|june|july|august|september|october|november|december)"
_ORDINAL = r"\d{1,2}(?:st|nd|rd|th)?"

SLOT_TYPES: Mapping[str, tuple[str, ...]] = {
    "percentage": (rf"\b{_NUMBER}\s*(?:%|percent\b|per cent\b)", r"\b(?:half|full)\s+brightness\b"),
    "duration": (rf"\b{_ONE_LENGTH}(?:\s+(?:and\s+)?{_ONE_LENGTH})*\b",),
    "time": (
        rf"\b{_HOUR}{_MINUTES}?{_HALF_DAY}",
        r"\b\d{1,2}:[0-5]\d\b",
        rf"\b{_HOUR}\s+o'?clock\b{_HALF_DAY}?",
        rf"\b(?:half|quarter|{_SPOKEN}|\d{{1,2}})(?:\s+minutes)?\s+(?:past|to)\s+{_HOUR}\b{_HALF_DAY}?",
        rf"\b(?:at|by|for)\s+(?P<value>{_HOUR}{_MINUTES}?)\b(?!\s*(?:%|percent|per cent|[\s-]*{_LENGTH}))",
        r"\b(?:noon|midday|midnight)\b",
    ),
    "day": (
        r"\b(?:today|tonight|tomorrow|the day after tomorrow|yesterday|this weekend|next weekend|next week)\b",
        rf"\b(?:(?:this|next|on)\s+)?(?P<value>{_WEEKDAY})\b",
        rf"\b{_MONTH}\s+(?:the\s+)?{_ORDINAL}\b",
        rf"\b(?:the\s+)?{_ORDINAL}\s+(?:of\s+)?{_MONTH}\b",
    ),
    # Last: of two that find the same words, the one that says more of them is it.
    "number": (rf"\b{_NUMBER}\b",),
}
