// OpenAI's realtime client for Node, which speaks wss alone: text in, sound out.  node node_realtime.mjs BASE_URL
import { createHash } from "node:crypto";
import OpenAI from "openai";
import { OpenAIRealtimeWebSocket } from "openai/realtime/websocket";

const client = new OpenAI({ baseURL: process.argv[2], apiKey: "secret", maxRetries: 0 });
const session = new OpenAIRealtimeWebSocket({ model: "gpt-realtime" }, client);
const sound = [], seen = new Set();
session.on("event", (event) => seen.add(event.type));
session.on("error", (error) => {
  console.error(error);
  process.exit(1);
});
session.on("session.created", () => session.send({ type: "response.create", response: { input: [
  { type: "message", role: "user", content: [{ type: "input_text", text: "Hello there." }] }] } }));
session.on("response.output_audio.delta", (event) => sound.push(Buffer.from(event.delta, "base64")));
session.on("response.done", (event) => {
  session.close();
  console.log(JSON.stringify({ status: event.response.status, seen: [...seen].sort(),
                               sound: createHash("sha256").update(Buffer.concat(sound)).digest("hex") }));
});
