/** A typed message on its way to the server. */

/** Returns a name for a message that nobody else chooses. */
export function newId() {
  return `item_${Array.from(crypto.getRandomValues(new BigUint64Array(2)), (n) => n.toString(36)).join("")}`;
}

/** Returns the event that sends an entry. It is named after its item, so that an error that answers it can be shown there. */
export function creation({ id, parts: [text] }) {
  const item = { id, type: "message", role: "user", content: [{ type: "input_text", text }] };
  return { type: "conversation.item.create", event_id: id, item };
}
