// The state of the server, asked for every two seconds while the page can be seen: /ready, and the figures of /metrics.

import { ask, askJson, Fault } from "./server.js";

const kPollMs = 2000;

// Of Prometheus's text: [{name, labels, value}].
export function readMetrics(text) {
  const series = [];
  for (const line of text.split("\n")) {
    const found = /^([a-z_]+)(?:\{(.*)\})? (\S+)$/.exec(line);
    if (!found) continue;
    const labels = {};
    for (const [, name, value] of (found[2] ?? "").matchAll(/(\w+)="((?:[^"\\]|\\.)*)"/g)) labels[name] = value;
    series.push({ name: found[1], labels, value: Number(found[3]) });
  }
  return series;
}

// The bound under which half of a histogram's values lie; null where there are none.
export function halfWithin(series, name) {
  const buckets = series.filter((each) => each.name === `${name}_bucket`);
  const bounds = new Map();
  for (const { labels, value } of buckets) bounds.set(labels.le, (bounds.get(labels.le) ?? 0) + value);
  const sorted = [...bounds].map(([le, count]) => [le === "+Inf" ? Infinity : Number(le), count]);
  sorted.sort((a, b) => a[0] - b[0]);
  const all = sorted.at(-1)?.[1] ?? 0;
  return all ? sorted.find(([, count]) => count * 2 >= all)[0] : null;
}

const sum = (series, name, wanted = () => true) =>
  series.filter((each) => each.name === name && wanted(each.labels)).reduce((total, each) => total + each.value, 0);

export class StatePanel {
  #chip = document.getElementById("ready");
  #slots = document.getElementById("slots");
  #onReady;
  #onStates;
  #wasReady = false;
  #timer = 0;

  // `onReady` is called each time that the server has become ready, `onStates` with those of its models.
  constructor(onReady, onStates) {
    this.#onReady = onReady;
    this.#onStates = onStates;
    document.addEventListener("visibilitychange", () => this.#poll());
    this.#poll();
  }

  async #poll() {
    clearTimeout(this.#timer);
    if (document.hidden) return;
    await this.#askReady();
    await this.#askMetrics();
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#poll(), kPollMs);
  }

  async #askReady() {
    let state = "ready";
    let words = "ready";
    try {
      const { modules } = await askJson("ready", { quiet: true });
      this.#onStates(modules);
    } catch (fault) {
      state = fault.status === 503 ? "waiting" : "gone";
      words = fault.message;
    }
    this.#chip.dataset.state = state;
    if (this.#chip.textContent !== words) this.#chip.textContent = words;
    const isReady = state === "ready";
    if (isReady && !this.#wasReady) this.#onReady();
    this.#wasReady = isReady;
  }

  async #askMetrics() {
    try {
      const reply = await ask("metrics", { quiet: true });
      const text = await reply.text().catch(() => {
        throw new Fault("the server cannot be reached");
      });
      this.#show(readMetrics(text));
      document.getElementById("state-fault").textContent = "";
    } catch (fault) {
      if (!(fault instanceof Fault)) throw fault;
      document.getElementById("state-fault").textContent = `No figures: ${fault.message}.`;
    }
  }

  #show(series) {
    this.#showSlots(series);
    const put = (id, text) => {
      document.getElementById(id).textContent = text;
    };
    const within = (bound) =>
      bound === null ? "none yet" : bound === Infinity ? "over the scale" : `≤ ${bound * 1000} ms`;
    put("first-sound", within(halfWithin(series, "syrinx_time_to_first_audio_seconds")));
    put("first-word", within(halfWithin(series, "syrinx_time_to_first_word_seconds")));
    const spoken = sum(series, "syrinx_audio_seconds_total", (labels) => labels.direction === "out");
    const factor = sum(series, "syrinx_compute_seconds_total") / spoken;
    put("factor", spoken ? factor.toFixed(2) : "none yet");
    put("spoken", `${spoken.toFixed(0)} s`);
    put("heard", `${sum(series, "syrinx_audio_seconds_total", (labels) => labels.direction === "in").toFixed(0)} s`);
    put("sessions", String(sum(series, "syrinx_realtime_sessions")));
    put("errors", String(sum(series, "syrinx_requests_total", (labels) => labels.code.startsWith("5") && labels.code !== "503")));
    put("refused", String(sum(series, "syrinx_rejected_total")));
    put("memory", `${(sum(series, "process_resident_memory_bytes") / 1e6).toFixed(0)} MB`);
  }

  // A line for each model, made once and then changed, so that a screen reader's place in it stays.
  #showSlots(series) {
    for (const { labels, value: busy } of series.filter((each) => each.name === "syrinx_slots" && each.labels.state === "busy")) {
      const all = busy + sum(series, "syrinx_slots", (other) => other.model === labels.model && other.state === "free");
      let line = [...this.#slots.children].find((each) => each.dataset.model === labels.model);
      if (!line) {
        line = document.createElement("li");
        line.dataset.model = labels.model;
        line.append(document.createElement("span"), document.createElement("meter"));
        this.#slots.append(line);
      }
      const words = `${labels.model}: ${busy} of ${all} slots busy`;
      const [name, meter] = line.children;
      if (name.textContent !== words) name.textContent = words;
      meter.setAttribute("aria-label", words);
      Object.assign(meter, { min: 0, max: all, value: busy });
    }
  }
}
