/**
 * Where this page stands in its session: which one, the secret that lets it come back, and the number of the newest event
 * that it has. Pure; places are values.
 *
 * Events of a session are numbered by their ids, `event_<tag>_<number>`; the tag is the end of the session's id. Private
 * messages (`…_p<number>`) have no place among them.
 */

const TAG_LENGTH = 12;
const LONGEST_NUMBER = 15;

export const NOWHERE = Object.freeze({ sessionId: null, secret: null, last: null });

/** Returns the place after an event came. A session that is not the one before begins anew. */
export function after(place, event) {
  const id = event.session?.id;
  const begins = event.type === "session.created" && typeof id === "string" && id !== place.sessionId;
  const here = begins ? { ...NOWHERE, sessionId: id } : place;
  const secret = event.session?.id === here.sessionId ? event.session?.chorale?.secret : null;
  const number = numberOf(event, here.sessionId);
  return {
    ...here,
    secret: secret || here.secret,
    last: number === null ? here.last : Math.max(number, here.last ?? 0),
  };
}

/** Whether this event came before: a place is told each once, whatever a server sends. */
export function isKnown(place, event) {
  const number = numberOf(event, place.sessionId);
  return number !== null && place.last !== null && number <= place.last;
}

/** What a link needs to come back to this place; null where there is nothing to come back to. */
export function ticketOf(place) {
  return place.sessionId === null || place.secret === null ? null : place;
}

function numberOf(event, sessionId) {
  if (sessionId === null || typeof event.event_id !== "string") {
    return null;
  }
  const prefix = `event_${sessionId.split("_").at(-1).slice(-TAG_LENGTH)}_`;
  const digits = event.event_id.startsWith(prefix) ? event.event_id.slice(prefix.length) : "";
  return /^[0-9]+$/.test(digits) && digits.length <= LONGEST_NUMBER ? Number(digits) : null;
}
