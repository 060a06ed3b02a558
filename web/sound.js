// Samples: 16-bit as they travel, their WAV file, and their playing while they come.

export const kRate = 24000;  // of everything that the server speaks and hears here, in Hz

// Of little-endian bytes that come in pieces of any length: samples; an odd byte waits for its other half.
export class SampleReader {
  #rest = new Uint8Array(0);

  read(bytes) {
    const all = new Uint8Array(this.#rest.length + bytes.length);
    all.set(this.#rest);
    all.set(bytes, this.#rest.length);
    const whole = all.length & ~1;
    this.#rest = all.slice(whole);
    const view = new DataView(all.buffer, 0, whole);
    return Int16Array.from({ length: whole / 2 }, (_, i) => view.getInt16(2 * i, true));
  }
}

export function wavOf(pieces) {
  const count = pieces.reduce((sum, piece) => sum + piece.length, 0);
  const view = new DataView(new ArrayBuffer(44 + 2 * count));
  const name = (at, text) => [...text].forEach((letter, i) => view.setUint8(at + i, letter.charCodeAt(0)));
  name(0, "RIFF");
  view.setUint32(4, 36 + 2 * count, true);
  name(8, "WAVEfmt ");
  view.setUint32(16, 16, true);
  view.setUint16(20, 1, true);  // PCM
  view.setUint16(22, 1, true);  // one channel
  view.setUint32(24, kRate, true);
  view.setUint32(28, 2 * kRate, true);
  view.setUint16(32, 2, true);
  view.setUint16(34, 16, true);
  name(36, "data");
  view.setUint32(40, 2 * count, true);
  let at = 44;
  for (const piece of pieces)
    for (const sample of piece) {
      view.setInt16(at, sample, true);
      at += 2;
    }
  return new Blob([view], { type: "audio/wav" });
}

// Pieces play one behind the other, without a gap as long as they come in time.
export class Player {
  #context = null;
  #sources = new Set();
  #ends = 0;       // on the context's clock: when what has been given will have been played
  #heard = 0;      // seconds of sound in the pieces that have ended
  #started = null;  // of the piece that plays, and its seconds
  onended = () => {};

  // In the handler of a user's action, since browsers let no page make sound by itself.
  async wake() {
    this.#context ??= new AudioContext({ sampleRate: kRate });
    if (this.#context.state !== "running") await this.#context.resume();
  }

  get isPlaying() {
    return this.#sources.size > 0;
  }

  // Seconds of sound that have left the loudspeaker since stop() or the beginning.
  get position() {
    if (!this.#started) return this.#heard;
    const since = this.#context.currentTime - this.#started.at;
    return this.#heard + Math.min(Math.max(since, 0), this.#started.seconds);
  }

  play(samples) {
    if (samples.length === 0) return;
    const kLead = 0.03;  // seconds, so that the first piece begins whole
    const buffer = this.#context.createBuffer(1, samples.length, kRate);
    buffer.copyToChannel(Float32Array.from(samples, (value) => value / 32768), 0);
    const source = this.#context.createBufferSource();
    source.buffer = buffer;
    source.connect(this.#context.destination);
    const at = Math.max(this.#ends, this.#context.currentTime + (this.#sources.size ? 0 : kLead));
    this.#ends = at + buffer.duration;
    const piece = { source, at, seconds: buffer.duration };
    this.#sources.add(piece);
    this.#started ??= piece;
    source.onended = () => this.#pieceEnded(piece);
    source.start(at);
  }

  #pieceEnded(piece) {
    if (!this.#sources.delete(piece)) return;  // stopped
    this.#heard += piece.seconds;
    this.#started = this.#sources.values().next().value ?? null;
    if (!this.#started) this.onended();
  }

  // At once; what comes next begins anew.
  stop() {
    const pieces = [...this.#sources];
    this.#sources.clear();
    for (const { source } of pieces) source.stop();
    this.#ends = 0;
    this.#heard = 0;
    this.#started = null;
  }
}
