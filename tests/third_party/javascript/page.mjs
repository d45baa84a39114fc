// What the page in the browser has: its clients' scenarios, to be played by whoever drives the browser.

import { scenarios as events } from './events.mjs';
import { bytesOf, silence, user } from './script.mjs';
import { scenarios as connect, service } from './talk.mjs';

const clients = { connect, events };

/** Tells the user's question and the service's descriptors, both in base64. */
window.prepare = (question, descriptors) => {
  user.question = bytesOf(question);
  service.describe(descriptors);
};

/** Plays one scenario; gives whether it went well, and what was said or was wrong. */
window.play = async (client, scenario, url) => {
  try {
    return [true, await clients[client][scenario](url)];
  } catch (error) {
    return [false, `${error.message}`];
  } finally {
    silence();
  }
};
