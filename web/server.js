// The server that this page comes from: requests with the key of this tab, and its errors as sentences.

const kKeyName = "syrinx-key";
let askForKey = async (_why) => false;
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

// `ask`, told why another key is wanted (empty: there was none), resolves to whether the user has given one.  Requests
// that are refused at the same time ask once.
export function onKeyWanted(ask) {
  askForKey = ask;
}

function wantKey(why) {
  asking ??= askForKey(why).finally(() => {
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

async function askOnce(path, options) {
  const used = key();
  // The browser's own words for it would show the key.
  if (!/^[ -~]*$/.test(used)) throw new Fault("no request can bear an API key with other letters than ASCII's; give another one", 401);
  const headers = { ...options.headers, ...(used && { Authorization: `Bearer ${used}` }) };
  let reply;
  try {
    reply = await fetch(path, { ...options, headers, cache: "no-store" });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Fault("the server cannot be reached");
  }
  // The server's own sentence is for who writes a client: it names a header.
  if (reply.status === 401) throw new Fault(used ? "this key was not accepted" : "the server asks for an API key", 401);
  if (!reply.ok) throw new Fault(await sentenceOf(reply), reply.status);
  return reply;
}

// `path` is relative to the page, which may lie behind a proxy's prefix.
// Resolves to an answer that is 200, or else throws a Fault with the server's sentence.  `quiet`: does not ask for a key.
export async function ask(path, { quiet = false, ...options } = {}) {
  for (;;) {
    const used = key();
    try {
      return await askOnce(path, options);
    } catch (fault) {
      if (fault.status !== 401 || quiet) throw fault;
      const isNew = key() !== used;  // another request has asked meanwhile
      if (!isNew && !(await wantKey(used && fault.message))) throw fault;
    }
  }
}

export async function askJson(path, options) {
  return (await ask(path, options)).json();
}
