/** What keys mean anywhere on the page. Pure. */

/** Returns "stop" for Escape and "mute" for M where no text is written; null for all else. */
export function shortcutOf(event) {
  if (event.isComposing) {
    return null;
  }
  if (event.key === "Escape") {
    return "stop";
  }
  const isTyping = (event.target.closest?.("input, textarea, select, [contenteditable]") ?? null) !== null;
  const isModified = event.ctrlKey || event.metaKey || event.altKey;
  return event.key.toLowerCase() === "m" && !isTyping && !isModified ? "mute" : null;
}
