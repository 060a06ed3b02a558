// A language model as OpenAI's package for Node sees it, one JSON object: node node_chat.mjs BASE_URL MESSAGES TOKENS
import OpenAI from "openai";

const [base, messages, tokens] = process.argv.slice(2);
const client = new OpenAI({ baseURL: base, apiKey: "secret", maxRetries: 0 });
const asked = { model: "gpt-4o-mini", messages: JSON.parse(messages), temperature: 0, repetition_penalty: 1, max_completion_tokens: Number(tokens) };

async function streamed() {
  const chunks = [];
  for await (const chunk of await client.chat.completions.create({ ...asked, stream: true, stream_options: { include_usage: true } }))
    chunks.push(chunk);
  return { text: chunks.map((chunk) => chunk.choices[0]?.delta.content ?? "").join(""),
           reason: chunks.at(-2).choices[0].finish_reason, usage: chunks.at(-1).usage };
}

async function left() {
  const stream = await client.chat.completions.create({ ...asked, stream: true, temperature: 2, top_p: 1, max_completion_tokens: 4000 });
  for await (const chunk of stream) {
    stream.controller.abort();
    return chunk.choices[0].delta.role;
  }
}

async function refused() {
  try {
    await client.chat.completions.create({ ...asked, model: "llama3" });
  } catch (error) {
    return { kind: error.constructor.name, status: error.status, code: error.code, param: error.param };
  }
}

const whole = await client.chat.completions.create(asked);
console.log(JSON.stringify({ whole: whole.choices[0], streamed: await streamed(), left: await left(), refused: await refused() }));
