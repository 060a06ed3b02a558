// What OpenAI's package for Node sees of a server, as one JSON object: node node_clients.mjs BASE_URL SOUND_FILE TEXT
import { createHash } from "node:crypto";
import fs from "node:fs";
import OpenAI from "openai";

const [base, recording, text] = process.argv.slice(2);
const client = new OpenAI({ baseURL: base, apiKey: "secret", maxRetries: 0 });
const digest = (bytes) => createHash("sha256").update(bytes).digest("hex");

async function speech() {
  const asked = { model: "tts-1", voice: "alloy", input: text, response_format: "pcm" };
  const reply = await client.audio.speech.create(asked);
  const parts = [];
  for await (const part of reply.body) parts.push(Buffer.from(part));
  const mp3 = Buffer.from(await (await client.audio.speech.create({ ...asked, response_format: "mp3" })).arrayBuffer());
  return { parts: parts.length, sound: digest(Buffer.concat(parts)), mp3: mp3.length };
}

async function transcriptions() {
  const asked = { model: "whisper-1" };
  const file = () => fs.createReadStream(recording);
  const whole = await client.audio.transcriptions.create({ ...asked, file: file() });
  const verbose = await client.audio.transcriptions.create(
      { ...asked, file: file(), response_format: "verbose_json", timestamp_granularities: ["word"] });
  const events = [];
  for await (const event of await client.audio.transcriptions.create({ ...asked, file: file(), stream: true })) events.push(event);
  return { text: whole.text, words: verbose.words.length, duration: verbose.duration,
           deltas: events.filter((event) => event.type === "transcript.text.delta").map((event) => event.delta).join(""),
           done: events.at(-1) };
}

async function refused() {
  try {
    await client.audio.speech.create({ model: "gpt-9", voice: "alloy", input: "x" });
  } catch (error) {
    return { kind: error.constructor.name, status: error.status, code: error.code, param: error.param };
  }
}

const models = [];
for await (const model of client.models.list()) models.push(model.id);
console.log(JSON.stringify({ models, speech: await speech(), transcriptions: await transcriptions(), refused: await refused() }));
