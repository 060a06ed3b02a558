// The server that this page comes from: requests with the key of this tab, and its errors as sentences.

const kKeyName = "syrinx-key";
let askForKey = async () => false;
let asking = null;

export class Fault extends Error {
  constructor(message, status = 0) {
    super(message);
    this.status = status;
  }
}

export const key = () => sessionStorage.getItem(kKeyName) ?? "";

export function keepKey(value) {
  sessionStorage.setItem(kKeyName, value);
}

// `ask` resolves to whether the user has given a key.  Requests that are refused at the same time ask once.
export function onKeyWanted(ask) {
  askForKey = ask;
}

function wantKey() {
  asking ??= askForKey().finally(() => {
    asking = null;
  });
  return asking;
}

async function sentenceOf(reply) {
  try {
    return (await reply.json()).error.message;
  } catch {
    return `the server answers ${reply.status}`;
  }
}

// Resolves to an answer that is 200, or else throws a Fault with the server's sentence.  `quiet`: does not ask for a key.
export async function ask(path, { quiet = false, ...options } = {}) {
  for (;;) {
    const headers = { ...options.headers };
    const used = key();
    if (used) headers.Authorization = `Bearer ${used}`;
    let reply;
    try {
      reply = await fetch(path, { ...options, headers, cache: "no-store" });
    } catch (error) {
      if (error.name === "AbortError") throw error;
      throw new Fault("the server cannot be reached");
    }
    if (reply.ok) return reply;
    const fault = new Fault(await sentenceOf(reply), reply.status);
    if (reply.status !== 401 || quiet || !(await wantKey())) throw fault;
  }
}

export async function askJson(path, options) {
  return (await ask(path, options)).json();
}
