// A picture of sound: one bar for each few milliseconds, all of it in the canvas's width, what has been heard in the
// accent's colour.  A live one shows the newest seconds alone.

const kPeakSamples = 240;  // 10 ms

export class Waveform {
  #canvas;
  #peaks = [];
  #open = { peak: 0, count: 0 };  // of samples that fill no bar yet
  #heard = 0;
  #liveSeconds;
  #drawing = false;

  constructor(canvas, { liveSeconds = 0 } = {}) {
    this.#canvas = canvas;
    this.#liveSeconds = liveSeconds;
    new ResizeObserver(() => this.#draw()).observe(canvas);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.#draw());
  }

  clear() {
    this.#peaks = [];
    this.#open = { peak: 0, count: 0 };
    this.#heard = 0;
    this.#draw();
  }

  add(samples) {
    for (const sample of samples) {
      this.#open.peak = Math.max(this.#open.peak, Math.abs(sample) / 32768);
      if (++this.#open.count < kPeakSamples) continue;
      this.#peaks.push(this.#open.peak);
      this.#open = { peak: 0, count: 0 };
    }
    if (this.#liveSeconds) this.#peaks = this.#peaks.slice(-this.#liveSeconds * 100);
    this.#draw();
  }

  set heardSeconds(seconds) {
    this.#heard = seconds * 100;
    this.#draw();
  }

  #draw() {
    if (this.#drawing) return;
    this.#drawing = true;
    requestAnimationFrame(() => {
      this.#drawing = false;
      this.#paint();
    });
  }

  #paint() {
    const { clientWidth, clientHeight } = this.#canvas;
    const scale = devicePixelRatio;
    this.#canvas.width = Math.round(clientWidth * scale);
    this.#canvas.height = Math.round(clientHeight * scale);
    const paint = this.#canvas.getContext("2d");
    paint.scale(scale, scale);
    const style = getComputedStyle(this.#canvas);
    const [heard, coming] = ["--accent", "--line-strong"].map((name) => style.getPropertyValue(name));
    const bars = Math.max(Math.floor(clientWidth / 4), 1);
    const count = this.#liveSeconds ? this.#liveSeconds * 100 : Math.max(this.#peaks.length, 100);
    const skipped = this.#liveSeconds ? count - this.#peaks.length : 0;
    for (let bar = 0; bar < bars; ++bar) {
      const begin = Math.floor((bar * count) / bars) - skipped;
      const end = Math.max(Math.floor(((bar + 1) * count) / bars) - skipped, begin + 1);
      const peak = Math.max(0, ...this.#peaks.slice(Math.max(begin, 0), Math.max(end, 0)));
      const height = Math.max(Math.sqrt(peak) * (clientHeight - 4), 2);  // speech is mostly far below the loudest
      paint.fillStyle = this.#liveSeconds || end <= this.#heard ? heard : coming;
      paint.fillRect(bar * 4, (clientHeight - height) / 2, 2.5, height);
    }
  }
}
