// A session of /v1/realtime with the microphone: what is said goes to the server, and its events come back.

import { ask, Fault, key } from "./server.js";

export const base64Of = (samples) =>
  btoa(String.fromCharCode(...new Uint8Array(samples.buffer, samples.byteOffset, samples.byteLength)));

export const bytesOf = (base64) => Uint8Array.from(atob(base64), (letter) => letter.charCodeAt(0));

// Who cannot be heard yet is told why in a sentence.
export async function openMicrophone(cleaning = { echoCancellation: true, noiseSuppression: true, autoGainControl: true }) {
  if (!navigator.mediaDevices) throw new Fault("browsers give the microphone to pages of this machine or with TLS alone");
  try {
    return await navigator.mediaDevices.getUserMedia({ audio: { channelCount: 1, ...cleaning } });
  } catch (error) {
    throw new Fault(error.name === "NotAllowedError" ? "the browser does not give this page the microphone" : "there is no microphone");
  }
}

// The worklet that hands over what a microphone hears; the browser does not say why it has not come.
export async function loadCapture(context) {
  try {
    await context.audioWorklet.addModule("assets/capture.js");
  } catch {
    throw new Fault("the server cannot be reached");
  }
}

// Nor why a WebSocket did not open: a request does.
async function whyNoSession() {
  try {
    await ask("v1/models", { quiet: true });
    return new Fault("the server gives no session; it may be busy");
  } catch (fault) {
    return fault;
  }
}

// What a subprotocol may be: no '/', '+' or '='.
const base64Url = (text) => base64Of(new TextEncoder().encode(text)).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");

// `query` names the models of the session, which are loaded first where they are not.
function openSocket(query) {
  const used = key();
  const protocols = ["realtime", ...(used ? [`syrinx-api-key-base64url.${base64Url(used)}`] : [])];
  const address = new URL(`v1/realtime?${new URLSearchParams(query)}`, document.baseURI);
  address.protocol = location.protocol === "https:" ? "wss:" : "ws:";
  return new Promise((resolve, reject) => {
    let socket;
    try {
      socket = new WebSocket(address, protocols);
    } catch {  // whose words would show the key
      reject(new Fault("the browser opens no session with this server; another API key may help"));
      return;
    }
    socket.addEventListener("open", () => resolve(socket), { once: true });
    socket.addEventListener("error", async () => reject(await whyNoSession()), { once: true });
  });
}

const kAsking = "ask";  // the id of the event that says what the session is to be

export class Listener {
  #socket = null;
  #microphone = null;
  #context = null;

  // `onSound` is given what the microphone heard, `onEvent` each event of the server, `onEnd` why a session ended by
  // itself.
  constructor({ onSound, onEvent, onEnd }) {
    Object.assign(this, { onSound, onEvent, onEnd });
  }

  // In the handler of a user's action.  Throws a Fault.
  async start(session, query) {
    try {
      this.#microphone = await openMicrophone();
      this.#context = new AudioContext();
      await this.#context.resume();
      await loadCapture(this.#context);
      this.#socket = await openSocket(query);
    } catch (error) {
      this.stop();
      throw error;
    }
    this.#socket.addEventListener("message", ({ data }) => this.#take(JSON.parse(data)));
    this.#socket.addEventListener("close", ({ reason }) => {
      if (!this.#socket) return;
      this.stop();
      this.onEnd(reason || "the server has closed the session");
    });
    this.send("session.update", { event_id: kAsking, session });
    const capture = new AudioWorkletNode(this.#context, "capture", { numberOfOutputs: 0 });
    capture.port.onmessage = ({ data }) => {
      if (!this.#microphone) return;
      this.onSound(data);
      this.send("input_audio_buffer.append", { audio: base64Of(data) });
    };
    this.#context.createMediaStreamSource(this.#microphone).connect(capture);
  }

  // A session that cannot be as it was asked for is none.
  #take(event) {
    if (event.type !== "error" || event.error.event_id !== kAsking) return this.onEvent(event);
    this.stop();
    this.onEnd(event.error.message);
  }

  send(type, fields = {}) {
    if (this.#socket?.readyState === WebSocket.OPEN) this.#socket.send(JSON.stringify({ type, ...fields }));
  }

  // What has been said so far is still heard: its words come, until stop().
  closeMicrophone() {
    for (const track of this.#microphone?.getTracks() ?? []) track.stop();
    this.#microphone = null;
    this.#context?.close();
    this.#context = null;
  }

  stop() {
    this.closeMicrophone();
    const socket = this.#socket;
    this.#socket = null;
    socket?.close();
  }
}
