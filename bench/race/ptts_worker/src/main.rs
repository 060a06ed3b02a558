//! The maker's Rust port as a racer of ../pocket_tts.py: loads a model, then answers each line of standard input with one
//! line of JSON, times in milliseconds.
//!
//!   ptts_worker WEIGHTS CONFIG TOKENIZER VOICE f32|q8 THREADS
//!
//!   prompt         the voice's frames through the language model
//!   first TEXT     from a text to its first samples
//!   run N TEXT     a text and N frames of sound, as a caller gets them
//!   stages N TEXT  the same in one thread, a frame at a time: text, language model with head, codec
//!   clone SECONDS  a recording through the encoder
//!   rss            memory so far

use std::io::{BufRead, Write};
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context, Result, bail, ensure};
use ptts::flow_lm::{NormalRng, StepInput};
use ptts::preprocess::Normalize;
use ptts::synth::{DeviceKind, Quant, SpeechOptions, Synth, SynthBuilder};
use ptts::tok::Tok;
use ptts::tts_model::{MimiEnc, TTSConfig, TTSModel};
use serde_json::{Value, json};
use xn::{BackendQ, Tensor};

const FRAME: usize = 1920;
const VOICE_ROOM: usize = 2048;

struct Files {
    weights: PathBuf,
    config: PathBuf,
    tokenizer: PathBuf,
    voice: PathBuf,
}

fn ms(start: Instant) -> f64 {
    start.elapsed().as_secs_f64() * 1e3
}

fn read_config(path: &Path) -> Result<TTSConfig> {
    Ok(serde_json::from_str(&std::fs::read_to_string(path)?)?)
}

fn load(files: &Files, quant: Quant, normalize: Normalize) -> Result<Synth> {
    let tts = SynthBuilder::new(read_config(&files.config)?, &files.weights, normalize)
        .tokenizer_file(&files.tokenizer)
        .device(DeviceKind::Cpu)
        .quant(quant)
        .voice("race")
        .add_voice("race", &files.voice)
        .build()?;
    Ok(tts)
}

/// Milliseconds to the first samples and to `frames` frames.
fn speak(tts: &Synth, text: &str, frames: usize) -> Result<(f64, f64)> {
    let start = Instant::now();
    let mut first = None;
    let mut samples = 0;
    for pcm in tts.stream_with(text, &SpeechOptions::default())? {
        samples += pcm?.len();
        if samples > 0 && first.is_none() {
            first = Some(ms(start));
        }
        if samples >= frames * FRAME {
            let total = ms(start);
            return Ok((first.context("no sound")?, total));
        }
    }
    bail!("{} frames of {}: the text is too short", samples / FRAME, frames)
}

/// One stage after another on this thread.
struct Stages<'a> {
    files: &'a Files,
    text: &'a str,
    frames: usize,
    answer: &'a mut Value,
}

impl xn::WithQ for Stages<'_> {
    type Output = ();
    fn run<Q: BackendQ>(self, device: Q::B) -> xn::Result<()> {
        let answer = self.measure::<Q>(device).map_err(|error| xn::Error::msg(format!("{error:?}")))?;
        *self.answer = answer;
        Ok(())
    }
}

impl Stages<'_> {
    fn measure<Q: BackendQ>(&self, device: Q::B) -> Result<Value> {
        let config = read_config(&self.files.config)?;
        let weights = ptts::loader::load_weights::<Q>(&self.files.weights, &device)?;
        let tokenizer = Box::new(Tok::open(&self.files.tokenizer)?);
        let model: TTSModel<Q> = TTSModel::load(&weights, tokenizer, &config, &Default::default())?;
        let voice =
            ptts::loader::load_voice_emb(&self.files.voice, config.embeddings_ext.as_deref(), model.speaker_proj(), &device)?
                .to::<Q::T>()?;
        let encode = model.flow_lm.conditioner.tokenizer.as_deref().context("no tokenizer")?;
        let chunks = ptts::plan::chunks(
            encode,
            self.text,
            "none".parse::<Normalize>()?,
            ptts::tts_model::MAX_TOKENS_PER_CHUNK,
            config.mimi.frame_rate,
        )?;
        ensure!(chunks.len() == 1, "the text is {} chunks, not one", chunks.len());
        let tokens = &chunks[0].tokens;
        let mut prompted = model.init_flow_lm_state(1, voice.dim(1usize)? + tokens.len() + self.frames)?;
        model.prompt_audio(&mut prompted, &voice)?;
        let mut noise = NormalRng::new(0.3, 1)?;
        let (mut flow_lm, mut codec) = (Vec::new(), Vec::new());
        let mut state = prompted.clone();
        let start = Instant::now();
        model.prompt_text(&mut state, tokens)?;
        let text = ms(start);
        let mut mimi = model.init_mimi_state(1)?;
        let mut latent: Option<Tensor<Q::T, Q::B>> = None;
        for _ in 0..self.frames {
            let start = Instant::now();
            let input = latent.as_ref().map_or(StepInput::Bos { batch: 1 }, StepInput::Latent);
            let (next, _) = model.generate_step(&mut state, input, &mut noise)?;
            flow_lm.push(ms(start));
            let start = Instant::now();
            model.decode_latent(&next, &mut mimi)?.to_vec()?;
            codec.push(ms(start));
            latent = Some(next);
        }
        Ok(json!({"text": text, "flow_lm_and_head": flow_lm, "codec": codec, "tokens": tokens.len()}))
    }
}

fn clone(files: &Files, seconds: f64) -> Result<Value> {
    type Plain = xn::Unquantized<f32, xn::CpuDevice>;
    let config = read_config(&files.config)?;
    let weights = ptts::loader::load_weights::<Plain>(&files.weights, &xn::CpuDevice)?;
    let encoder: MimiEnc<Plain> = MimiEnc::load(&weights, &config)?;
    let samples: Vec<f32> = (0..(seconds * 24000.0) as usize).map(|i| 0.1 * ((i * i % 1000) as f32 / 500.0 - 1.0)).collect();
    let sound = Tensor::from_vec(samples, (1, 1, ()), &xn::CpuDevice)?;
    let mut times = Vec::new();
    for _ in 0..4 {
        let start = Instant::now();
        encoder.encode_audio(&sound)?.to_vec()?;
        times.push(ms(start));
    }
    Ok(json!({"encode": times[1..]}))
}

fn rss() -> Result<Value> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let bytes = |key: &str| {
        let line = status.lines().find(|line| line.starts_with(key));
        line.and_then(|line| line.split_whitespace().nth(1)?.parse::<u64>().ok()).map(|kib| kib * 1024)
    };
    Ok(json!({"peak_rss_bytes": bytes("VmHWM:"), "rss_bytes": bytes("VmRSS:")}))
}

fn main() -> Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [weights, config, tokenizer, voice, quant, threads] = &args[..] else {
        bail!("usage: ptts_worker WEIGHTS CONFIG TOKENIZER VOICE f32|q8 THREADS");
    };
    let files =
        Files { weights: weights.into(), config: config.into(), tokenizer: tokenizer.into(), voice: voice.into() };
    xn::set_num_threads(threads.parse()?);
    let normalize = || "none".parse::<Normalize>();
    let dtype: xn::DTypeQ = if quant == "f32" { xn::DTypeQ::F32 } else { quant.parse()? };
    let start = Instant::now();
    let tts = load(&files, quant.parse()?, normalize()?)?;
    let mut out = std::io::stdout();
    let mut say = |value: Value| -> Result<()> {
        writeln!(out, "{value}")?;
        Ok(out.flush()?)
    };
    say(json!({"load_ms": ms(start), "version": "ptts 0.6.0"}))?;
    for line in std::io::stdin().lock().lines() {
        let line = line?;
        let (command, rest) = line.split_once(' ').unwrap_or((&line, ""));
        let count_and_text = || -> Result<(usize, &str)> {
            let (count, text) = rest.split_once(' ').context("a number and a text are missing")?;
            Ok((count.parse()?, text))
        };
        say(match command {
            "prompt" => {
                // A voice is kept once it has been read, so each time needs a model of its own.
                let fresh = load(&files, quant.parse()?, normalize()?)?;
                let start = Instant::now();
                drop(fresh.session(&SpeechOptions::default(), VOICE_ROOM)?);
                json!({"ms": ms(start)})
            }
            "first" => json!({"ms": speak(&tts, rest, 1)?.0}),
            "run" => {
                let (frames, text) = count_and_text()?;
                let (first, total) = speak(&tts, text, frames)?;
                json!({"first_ms": first, "ms": total})
            }
            "stages" => {
                let (frames, text) = count_and_text()?;
                let mut answer = Value::Null;
                let stages = Stages { files: &files, text, frames, answer: &mut answer };
                xn::Runner::new().cpu_only(true).dtype(dtype).run(stages, 0)?;
                answer
            }
            "clone" => clone(&files, rest.parse()?)?,
            "rss" => rss()?,
            other => bail!("no command '{other}'"),
        })?;
    }
    Ok(())
}
