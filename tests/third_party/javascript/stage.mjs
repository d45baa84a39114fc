// What the programs for Node have in common; the same task file and report as `stage.py`.

import { appendFileSync, readFileSync } from 'node:fs';
import { must, silence, sleep, user } from './script.mjs';

export const task = JSON.parse(readFileSync(process.argv[2], 'utf8'));

/** The samples of the spoken question: a WAV file's data chunk. */
user.question = (() => {
  const wav = readFileSync(task.question);
  return wav.subarray(wav.indexOf('data') + 8);
})();

/** The version of an installed package. */
function version(name) {
  const file = new URL(`node_modules/${name}/package.json`, import.meta.url);
  return JSON.parse(readFileSync(file, 'utf8')).version;
}

/** Runs the scenarios that the task names and reports one line about each. */
export async function play(packages, scenarios) {
  const versions = Object.fromEntries(packages.map((name) => [name, version(name)]));
  versions.node = process.versions.node;
  const uncaught = [];
  process.on('uncaughtException', (error) => uncaught.push(`uncaught: ${error.message}`));
  process.on('unhandledRejection', (error) => uncaught.push(`unhandled: ${error?.message ?? error}`));
  for (const [scenario, url] of Object.entries(task.scenarios)) {
    silence();
    uncaught.length = 0;
    const began = Date.now();
    let ok = true;
    let detail;
    try {
      const limit = sleep(task.limit_s * 1_000).then(() => { throw new Error('took too long'); });
      limit.catch(() => {});
      detail = await Promise.race([scenarios[scenario](url), limit]);
      must(uncaught.length === 0, uncaught.join('; '));
    } catch (error) {
      ok = false;
      detail = [`${error.message}`, ...uncaught].join('; ').slice(0, 600);
    }
    const seconds = Math.round((Date.now() - began) / 100) / 10;
    appendFileSync(task.report, `${JSON.stringify({ scenario, ok, detail, seconds, versions })}\n`);
  }
  process.exit(0);
}
