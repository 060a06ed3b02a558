// OpenAI's realtime client for Node: a transcription session, sound in, words out.
// node node_transcription.mjs BASE_URL FILE, which holds s16 at 24 kHz
import { readFileSync } from "node:fs";
import OpenAI from "openai";
import { OpenAIRealtimeWebSocket } from "openai/realtime/websocket";

const client = new OpenAI({ baseURL: process.argv[2], apiKey: "secret", maxRetries: 0 });
const session = new OpenAIRealtimeWebSocket({ intent: "transcription" }, client);
const sound = readFileSync(process.argv[3]);
const deltas = [], seen = new Set();
session.on("event", (event) => seen.add(event.type));
session.on("error", (error) => {
  console.error(error);
  process.exit(1);
});
session.on("session.created", () => session.send({ type: "session.update", session: {
  type: "transcription", audio: { input: { format: { type: "audio/pcm", rate: 24000 }, turn_detection: null } } } }));
session.on("session.updated", () => {
  for (let at = 0; at < sound.length; at += 4800)
    session.send({ type: "input_audio_buffer.append", audio: sound.subarray(at, at + 4800).toString("base64") });
  session.send({ type: "input_audio_buffer.commit" });
});
session.on("conversation.item.input_audio_transcription.delta", (event) => deltas.push(event.delta));
session.on("conversation.item.input_audio_transcription.completed", (event) => {
  session.close();
  console.log(JSON.stringify({ seen: [...seen].sort(), deltas: deltas.join(""), transcript: event.transcript,
                               seconds: event.usage.seconds }));
});
