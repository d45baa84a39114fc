// The `openai` package for Node without a session: the HTTP API.

import OpenAI, { toFile } from 'openai';
import { STORY, TEXT, TOOL, WEATHER, must, peak } from './script.mjs';

const { type: kind, ...described } = WEATHER;
const TOOLS = [{ type: kind, function: described }];
const MODEL = { model: 'chorale' };

const asking = (url) => new OpenAI({ apiKey: 'none', baseURL: url, maxRetries: 0 });

async function all(stream) {
  const found = [];
  for await (const one of stream) found.push(one);
  return found;
}

/** The same words whole and in a stream with its usage; a stream that is left early; a refusal by name. */
async function words(client) {
  const asked = { ...MODEL, messages: [{ role: 'user', content: TEXT }] };
  const { data: whole, request_id: id } = await client.chat.completions.create(asked).withResponse();
  must(id && whole.usage.total_tokens > 0, JSON.stringify(whole));
  const chunks = await all(await client.chat.completions.create({ ...asked, stream: true, stream_options: { include_usage: true } }));
  const written = chunks.map((chunk) => chunk.choices[0]?.delta.content ?? '').join('');
  must(written === whole.choices[0].message.content, `${written} is not ${whole.choices[0].message.content}`);
  must(chunks.at(-1).usage.completion_tokens === whole.usage.completion_tokens, JSON.stringify(chunks.at(-1)));
  must(chunks.at(-2).choices[0].finish_reason === 'stop', JSON.stringify(chunks.at(-2)));
  const story = await client.chat.completions.create({ ...MODEL, messages: [{ role: 'user', content: STORY }], stream: true });
  for await (const _ of story) break;
  const refused = await client.chat.completions.create({ ...asked, n: 2 }).catch((error) => error);
  must(refused instanceof OpenAI.BadRequestError && refused.param === 'n', JSON.stringify(refused));
  return written;
}

/** A call whole, in a stream, and by the package's own runner, which calls the function and asks again. */
async function calls(client) {
  const messages = [{ role: 'user', content: TOOL }];
  const first = await client.chat.completions.create({ ...MODEL, messages, tools: TOOLS });
  const { message, finish_reason: reason } = first.choices[0];
  must(reason === 'tool_calls' && message.tool_calls.length === 1, JSON.stringify(first));
  must(JSON.parse(message.tool_calls[0].function.arguments).city === 'Paris', JSON.stringify(message));
  const output = { role: 'tool', tool_call_id: message.tool_calls[0].id, content: 'sunny, 21 degrees' };
  const then = await client.chat.completions.create({ ...MODEL, messages: [...messages, message, output], tools: TOOLS });
  must(then.choices[0].message.content.includes('sunny'), JSON.stringify(then));
  const streamed = await client.chat.completions.stream({ ...MODEL, messages, tools: TOOLS }).finalChatCompletion();
  const [call] = streamed.choices[0].message.tool_calls;
  must(JSON.parse(call.function.arguments).city === 'Paris', JSON.stringify(streamed));
  const asked = [];
  const weather = ({ city }) => { asked.push(city); return 'sunny, 21 degrees'; };
  const tools = [{ type: kind, function: { ...described, function: weather, parse: JSON.parse } }];
  const answer = await client.chat.completions.runTools({ ...MODEL, messages, tools }).finalContent();
  must(asked.join() === 'Paris' && answer.includes('sunny'), `${asked}: ${answer}`);
  return answer;
}

async function chat(url) {
  const client = asking(url);
  return `${await words(client)} / ${await calls(client)}`;
}

/** What is said in a file, in every form it can be told in. */
async function transcribe(url) {
  const client = asking(url);
  const spoken = await client.audio.speech.create({ ...MODEL, voice: 'alloy', input: TEXT, response_format: 'wav' });
  const file = await toFile(Buffer.from(await spoken.arrayBuffer()), 'question.wav');
  const asked = { ...MODEL, file, language: 'en' };
  const told = (form) => client.audio.transcriptions.create({ ...asked, ...form });
  const heard = await told({ response_format: 'json' });
  must(heard.text.includes('capital of France'), JSON.stringify(heard));
  const text = await told({ response_format: 'text' });
  must(text.trim() === heard.text, `${text}`);
  const whole = await told({ response_format: 'verbose_json', timestamp_granularities: ['word', 'segment'] });
  must(whole.text === heard.text && whole.segments.length && whole.words.length >= 5, JSON.stringify(whole));
  must(whole.words.every((word, n) => word.end >= word.start && word.start >= (whole.words[n - 1]?.start ?? 0)), JSON.stringify(whole.words));
  must(whole.duration > 1 && whole.segments.at(-1).end <= whole.duration, JSON.stringify(whole));
  const srt = await told({ response_format: 'srt' });
  must(/^1\n\d\d:\d\d:\d\d,\d{3} --> \d\d:\d\d:\d\d,\d{3}\n/.test(srt) && srt.includes('capital of France'), srt);
  const vtt = await told({ response_format: 'vtt' });
  must(vtt.startsWith('WEBVTT\n') && vtt.includes('capital of France'), vtt);
  const events = await all(await told({ stream: true }));
  const deltas = events.filter((event) => event.type === 'transcript.text.delta').map((event) => event.delta).join('');
  must(events.at(-1).type === 'transcript.text.done' && events.at(-1).text === deltas, JSON.stringify(events));
  must(deltas.includes('capital of France'), deltas);
  const wrong = await toFile(Buffer.from('this is no sound'), 'question.wav');
  const refused = await client.audio.transcriptions.create({ ...MODEL, file: wrong }).catch((error) => error);
  must(refused instanceof OpenAI.BadRequestError, `${refused}`);
  return `${heard.text} / ${whole.words.length} words`;
}

const BEGINNINGS = { mp3: ['ID3', '\xff\xfb', '\xff\xf3'], opus: ['OggS'], aac: ['\xff\xf1'], flac: ['fLaC'], wav: ['RIFF'] };

/** A text is spoken in every format, as it is made, and in events. */
async function speech(url) {
  const client = asking(url);
  const asked = { ...MODEL, voice: 'alloy', input: TEXT };
  const sizes = [];
  for (const [format, beginnings] of Object.entries(BEGINNINGS)) {
    const spoken = await client.audio.speech.create({ ...asked, response_format: format });
    const bytes = Buffer.from(await spoken.arrayBuffer());
    const begins = bytes.subarray(0, 8).toString('latin1');
    must(beginnings.some((one) => begins.startsWith(one)), `${format} begins with ${JSON.stringify(begins)}`);
    sizes.push(`${format} ${bytes.length}`);
  }
  const made = await client.audio.speech.create({ ...asked, response_format: 'pcm', speed: 1.5 });
  const pieces = await all(made.body);
  must(peak(Buffer.concat(pieces.map((piece) => Buffer.from(piece)))) > 1_000, 'silence');
  const told = await client.audio.speech.create({ ...asked, response_format: 'pcm', stream_format: 'sse' });
  const lines = (await told.text()).split('\n').filter((line) => line.startsWith('data: ')).map((line) => line.slice(6));
  must(lines.pop() === '[DONE]', 'the stream has no end');
  const events = lines.map((line) => JSON.parse(line));
  must(events.at(-1).type === 'speech.audio.done', JSON.stringify(events.at(-1)));
  must(events.some((event) => event.type === 'speech.audio.delta' && event.audio), 'no sound in events');
  return sizes.join(', ');
}

/** Vectors, and the models: all of them, one of them, one that is not there. */
async function embed(url) {
  const client = asking(url);
  const input = ['the weather in Paris', 'how is the weather in Paris', 'a king in a castle'];
  const { data } = await client.embeddings.create({ ...MODEL, input });
  const like = (n) => data[0].embedding.reduce((sum, x, at) => sum + x * data[n].embedding[at], 0);
  must(like(1) > like(2), `${like(1)} ${like(2)}`);
  const models = (await all(client.models.list())).map((model) => model.id);
  must(models.includes('chorale'), models.join());
  must((await client.models.retrieve('chorale')).id === 'chorale', 'another model');
  const missing = await client.models.retrieve('nobody').catch((error) => error);
  must(missing instanceof OpenAI.NotFoundError, `${missing}`);
  return `${like(1).toFixed(2)} > ${like(2).toFixed(2)} / ${models.join()}`;
}

export const scenarios = { chat, transcribe, speech, embed };
