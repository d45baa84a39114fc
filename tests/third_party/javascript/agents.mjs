// The Agents SDK for JavaScript over a WebSocket, with its defaults.

import { RealtimeAgent, RealtimeSession, OpenAIRealtimeWebSocket, tool as functionTool } from '@openai/agents-realtime';
import { z } from 'zod';
// Its own parser, which drops what it cannot read without a word.
import { parseRealtimeEvent } from './node_modules/@openai/agents-realtime/dist/openaiRealtimeEvents.mjs';
import { LISTENS_MS, STORY, TEXT, TOOL, must, peak, sleep, speak, until } from './script.mjs';
import { play } from './stage.mjs';

/** A running session and what it has told. */
class Talk {
  failures = [];
  events = [];
  written = '';
  sound = new Map();
  interruptions = 0;
  ends = [];

  constructor(url, tools, config) {
    const transport = new OpenAIRealtimeWebSocket({ url: `${url.replace('http', 'ws')}/realtime?model=chorale` });
    const agent = new RealtimeAgent({ name: 'Ada', instructions: 'Be brief.', tools });
    this.session = new RealtimeSession(agent, { transport, model: 'chorale', config });
    this.session.on('transport_event', (event) => this.heard(event));
    this.session.on('audio', (event) => {
      const known = this.sound.get(event.responseId) ?? [];
      this.sound.set(event.responseId, [...known, Buffer.from(event.data)]);
    });
    this.session.on('audio_interrupted', () => { this.interruptions += 1; });
    this.session.on('agent_end', (_context, _agent, output) => this.ends.push(output));
    this.session.on('error', (error) => this.failures.push(JSON.stringify(error.error ?? error)));
  }

  static async open(url, tools = [], config = {}) {
    const talk = new Talk(url, tools, config);
    await talk.session.connect({ apiKey: 'none' });
    await talk.until(() => talk.events.some((event) => event.type === 'session.updated'), 'session.updated');
    return talk;
  }

  heard(event) {
    this.events.push(event);
    if (event.type === 'response.output_text.delta') this.written += event.delta;
    if (parseRealtimeEvent({ data: JSON.stringify(event) }).isGeneric) this.failures.push(`dropped: ${JSON.stringify(event).slice(0, 300)}`);
  }

  async until(condition, what) { await until(condition, what, this.failures); }

  speak() {
    return speak((piece) => this.session.sendAudio(piece.buffer.slice(piece.byteOffset, piece.byteOffset + piece.length)));
  }

  /** What a role said, as the SDK keeps it. */
  history(role) {
    const parts = this.session.history.filter((item) => item.role === role).flatMap((item) => item.content);
    return parts.map((part) => part.text ?? part.transcript ?? '');
  }

  close() { this.session.close(); }
}

async function text(url) {
  const talk = await Talk.open(url, [], { outputModalities: ['text'] });
  talk.session.sendMessage(TEXT);
  await talk.until(() => talk.ends.length, 'the end of the turn');
  must(talk.written && talk.ends[0] === talk.written, `${talk.ends[0]} is not ${talk.written}`);
  await talk.until(() => talk.history('assistant').includes(talk.written), 'the text in the history');
  talk.close();
  return talk.written;
}

async function audio(url) {
  const talk = await Talk.open(url);
  const stop = talk.speak();
  await talk.until(() => talk.ends.length, 'the end of the turn');
  await talk.until(() => talk.history('user').some((said) => said), 'the transcript');
  stop();
  const [heard] = talk.history('user');
  must(heard.includes('capital of France'), heard);
  must(peak(Buffer.concat([...talk.sound.values()].flat())) > 1_000, 'silence');
  talk.close();
  return `${heard} / ${talk.ends[0]}`;
}

async function tool(url) {
  const calls = [];
  const getWeather = functionTool({
    name: 'get_weather',
    description: 'Tells the weather of a city.',
    parameters: z.object({ city: z.string() }),
    execute: async ({ city }) => { calls.push(city); return 'sunny, 21 degrees'; },
  });
  const talk = await Talk.open(url, [getWeather], { outputModalities: ['text'], toolChoice: 'auto' });
  talk.session.sendMessage(TOOL);
  await talk.until(() => talk.written.includes('sunny') && talk.ends.length >= 1, 'an answer with the output');
  must(calls.join() === 'Paris', `called with ${calls}`);
  talk.close();
  return `${calls} / ${talk.written}`;
}

async function interrupt(url) {
  const talk = await Talk.open(url);
  talk.session.sendMessage(STORY);
  await talk.until(() => talk.sound.size, 'sound');
  await sleep(LISTENS_MS);
  const [old] = talk.sound.keys();
  const stop = talk.speak();
  await talk.until(() => talk.interruptions, 'the interruption');
  const done = () => talk.events.filter((event) => event.type === 'response.done').map((event) => event.response);
  await talk.until(() => done().length, 'the end of the old reply');
  const count = talk.sound.get(old).length;
  await talk.until(() => done().length === 2, 'the answer');
  stop();
  must(talk.sound.get(old).length === count, 'the old reply went on');
  const answer = done()[1].output[0].content[0].transcript;
  must(answer.includes('capital of France'), answer);
  const full = done()[0].output[0].content[0].transcript;
  const kept = () => talk.history('assistant')[0] ?? '';
  await talk.until(() => kept() && kept().length < full.length, 'the cut of the old reply in the history');
  talk.close();
  return `kept ${kept().length} of ${full.length} characters / ${answer}`;
}

async function again(url) {
  await text(url);
  const talk = await Talk.open(url, [], { outputModalities: ['text'] });
  talk.session.interrupt();
  talk.session.sendMessage('Tell me a very long story about a king.');
  await talk.until(() => talk.written, 'the reply');
  talk.session.interrupt();
  await talk.until(() => talk.events.some((event) => event.type === 'response.done'), 'its end');
  talk.written = '';
  talk.session.sendMessage(TEXT);
  const done = () => talk.events.filter((event) => event.type === 'response.done').length;
  await talk.until(() => done() === 2, 'the next turn');
  must(talk.written, 'no text');
  talk.close();
  return talk.written;
}

async function odd(url) {
  const talk = await Talk.open(url, [], {
    outputModalities: ['audio'],
    audio: {
      input: {
        format: { type: 'audio/pcmu' },
        noiseReduction: { type: 'far_field' },
        transcription: { model: 'whisper-1', language: 'en', prompt: 'Cities.' },
        turnDetection: { type: 'server_vad', threshold: 0.6, silenceDurationMs: 300, prefixPaddingMs: 200 },
      },
      output: { format: { type: 'audio/pcma' }, speed: 1.1, voice: 'marin' },
    },
  });
  for (const size of [1, 7, 333]) talk.session.sendAudio(new Uint8Array(size).fill(0xff).buffer);
  talk.session.sendMessage(TEXT);
  await talk.until(() => talk.ends.length, 'the end of the turn');
  must(Buffer.concat([...talk.sound.values()].flat()).length > 4_000, 'no sound in A-law');
  await talk.session.updateAgent(new RealtimeAgent({ name: 'Bob', instructions: 'Be short.' }));
  // A history that was kept elsewhere: what is there goes, what is new comes.
  const [said] = talk.session.history;
  talk.session.updateHistory([said, {
    itemId: 'mine_1', type: 'message', role: 'user', status: 'completed', content: [{ type: 'input_text', text: 'And of Italy?' }],
  }]);
  await talk.until(() => talk.session.history.some((item) => item.itemId === 'mine_1'), 'the new history');
  talk.session.transport.sendEvent({
    type: 'response.create',
    response: { conversation: 'none', output_modalities: ['text'], metadata: { a: 'b' } },
  });
  const aside = () => talk.events.find((event) => event.type === 'response.done' && event.response.metadata?.a === 'b');
  await talk.until(aside, 'the response aside');
  must(talk.written, 'no text');
  talk.close();
  return `aside: ${talk.written}`;
}

await play(['@openai/agents-realtime', 'ws'], { text, audio, tool, interrupt, again, odd });
