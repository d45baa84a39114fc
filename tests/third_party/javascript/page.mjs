// What the page in the browser has: its clients' scenarios, to be played by whoever drives the browser.

import { bytesOf, silence, user } from './script.mjs';

const clients = { connect: () => import('./talk.mjs'), events: () => import('./events.mjs') };

/** Plays one scenario; gives whether it went well, and what was said or was wrong. Base64: the user's question, and what
 * clients of the service know it by. */
window.play = async (client, scenario, url, question, descriptors) => {
  try {
    const { scenarios, service } = await clients[client]();
    user.question = bytesOf(question);
    service?.describe(descriptors);
    return [true, await scenarios[scenario](url)];
  } catch (error) {
    return [false, `${error.message}`];
  } finally {
    silence();
  }
};
