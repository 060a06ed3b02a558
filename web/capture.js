// Runs beside the microphone, on the browser's thread of sound: what comes at the device's rate leaves at 24 kHz in
// 16 bits, 40 ms at a time.

const kRate = 24000;
const kPieceSamples = 960;
const kZeros = 16;  // of the filter, to each side

// A low pass by a windowed sinc, read at the places of the new rate: only what 24 kHz can hold gets through.
class Resampler {
  #step = sampleRate / kRate;
  #width = kZeros * Math.max(this.#step, 1);
  #cutoff = 0.92 * Math.min(1 / this.#step, 1);
  #samples = new Float32Array(0);
  #at = 0;  // of the next sample to be made, in samples that are kept

  *push(coming) {
    const all = new Float32Array(this.#samples.length + coming.length);
    all.set(this.#samples);
    all.set(coming, this.#samples.length);
    for (; this.#at + this.#width < all.length; this.#at += this.#step) yield this.#value(all, this.#at);
    const done = Math.max(Math.floor(this.#at - this.#width), 0);
    this.#samples = all.slice(done);
    this.#at -= done;
  }

  #value(samples, at) {
    let sum = 0;
    for (let i = Math.max(Math.ceil(at - this.#width), 0); i <= at + this.#width; ++i) {
      const distance = i - at;
      const angle = Math.PI * this.#cutoff * distance;
      const sinc = angle === 0 ? 1 : Math.sin(angle) / angle;
      sum += samples[i] * this.#cutoff * sinc * (0.5 + 0.5 * Math.cos((Math.PI * distance) / this.#width));
    }
    return sum;
  }
}

registerProcessor(
  "capture",
  class extends AudioWorkletProcessor {
    #resampler = new Resampler();
    #piece = new Int16Array(kPieceSamples);
    #count = 0;

    process([[channel]]) {
      if (!channel) return true;
      for (const value of this.#resampler.push(channel)) {
        this.#piece[this.#count++] = Math.round(Math.max(-1, Math.min(value, 1)) * 32767);
        if (this.#count < kPieceSamples) continue;
        this.port.postMessage(this.#piece, [this.#piece.buffer]);
        this.#piece = new Int16Array(kPieceSamples);
        this.#count = 0;
      }
      return true;
    }
  },
);
