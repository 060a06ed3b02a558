/* Syrinx: real-time speech, as a C library.
 *
 * No function throws, exits, prints or installs a signal handler.  Functions that can fail return a syrinx_code; the
 * handle keeps the error message (syrinx_engine_error, syrinx_session_error).
 *
 * Two families of models: Kokoro (built-in voices, English) and Pocket TTS (cloned voices).  An option that the loaded
 * family does not support gives SYRINX_UNSUPPORTED unless it has the value that its _init function gave it.
 *
 * Threads: an engine may be used by any number of threads at once; its sessions take turns at the model, piece by
 * piece of Kokoro, frame by frame (80 ms) of Pocket TTS. A session may be written by one thread, read by another, and
 * cancelled by any.
 *
 * Structures begin with their size and are filled by their _init function.  The size is that of the program's header: a
 * later library neither reads nor writes the fields that it has added behind it.  Until 1.0 other things may change, so
 * programs are compiled anew for each version.
 * Strings are UTF-8 and end with a zero byte; arguments are copied, returned strings belong to the handle.  Audio is
 * mono f32 at SYRINX_SAMPLE_RATE_HZ, nominally within -1 to 1.
 *
 * Marks in a text, unless syrinx_speak_options.plain is set: [pause:500ms] and [pause:1.5s] are silence of at most 60
 * s; [voice: NAME] switches to another voice, an installed one or one of syrinx_engine_add_voice, and [voice:] back to
 * the first.  A mark behind a backslash, \[pause:1s], is read out.  An invalid mark gives SYRINX_INVALID_ARGUMENT, an
 * unknown voice SYRINX_NOT_FOUND, pauses of more than an hour in all SYRINX_LIMIT_EXCEEDED, with the line of the text;
 * the text before is spoken.  A text of pauses alone ends with "nothing to say", SYRINX_INVALID_ARGUMENT.  A text opens
 * no files.
 */
#ifndef SYRINX_SYRINX_H_
#define SYRINX_SYRINX_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define SYRINX_SAMPLE_RATE_HZ 24000

typedef enum syrinx_code {
  SYRINX_OK = 0,
  SYRINX_INVALID_ARGUMENT = 1, /* an invalid option, text or voice name */
  SYRINX_NOT_FOUND = 2,        /* a file, model or voice does not exist */
  SYRINX_DATA_LOSS = 3,        /* a file is truncated or malformed */
  SYRINX_UNSUPPORTED = 4,      /* well-formed, but not supported */
  SYRINX_LIMIT_EXCEEDED = 5,   /* larger than a stated limit */
  SYRINX_IO = 6,               /* an error of the system */
  SYRINX_UNAVAILABLE = 7,      /* not now: offline, no device, no memory */
  SYRINX_CANCELLED = 8,        /* by syrinx_session_cancel or the callback */
  SYRINX_INTERNAL = 9          /* a fault of Syrinx */
} syrinx_code;

/* Format in which large matrices are stored and multiplied.  Kokoro: int8 (the default) or f32; Pocket TTS: int8 (the
 * default) or any other. */
typedef enum syrinx_precision {
  SYRINX_PRECISION_DEFAULT = -1, /* of the model's family */
  SYRINX_PRECISION_INT8 = 0,
  SYRINX_PRECISION_F32 = 1,
  SYRINX_PRECISION_BF16 = 2,
  SYRINX_PRECISION_INT4 = 3
} syrinx_precision;

typedef struct syrinx_engine syrinx_engine;   /* a loaded model with its front end and voices */
typedef struct syrinx_session syrinx_session; /* one stream of text in, of audio out */

typedef struct syrinx_load_options {
  size_t struct_size;
  /* The checkpoint, in one of three ways: the name of an installed model, a folder or a file (NULL: "kokoro"); for
   * Pocket TTS a folder with config.yaml, a .yaml, or a .safetensors with its .yaml beside it ... */
  const char* model;
  /* ... or, for Kokoro, its bytes, which must stay until syrinx_engine_load returns ... */
  const void* model_data;
  size_t model_size;
  /* ... or an open file, which the caller closes (-1: none). */
  int model_descriptor;
  /* Kokoro: folder of NAME.bin; NULL: beside the checkpoint, else the installed model's.  Pocket TTS: folder whose
   * voices/ or embeddings/ has NAME.safetensors or recordings; NULL: the configuration's. */
  const char* voices;
  const char* lexicon;    /* Kokoro: folder of the English lexicon; NULL: beside the checkpoint, or the installed one */
  const char* dictionary; /* Kokoro: the user's own words; NULL: none */
  const char* voice;      /* prepared at load; NULL: the default, unless that is a recording to be cloned */
  syrinx_precision precision;
  int threads;       /* 1 to 64; 0: the default of this machine */
  int phonemes_only; /* Kokoro, not 0: only phonemes will be spoken; no lexicon is needed */
  int without_cache; /* not 0: neither read nor write packed weights in the user's cache folder */
  /* Kokoro, not 0: only what reads texts is loaded, for syrinx_read alone.  No checkpoint is read, and none need be
   * installed where `model` is NULL or a name.  Functions that speak, or tell of the model or its voices, then give
   * SYRINX_INVALID_ARGUMENT. */
  int front_end_only;
} syrinx_load_options;

#define SYRINX_MOST_OPTIONS 32

/* An option of the loaded model's family by name. */
typedef struct syrinx_option {
  const char* name;
  double number;
  const char* text; /* NULL: the number counts */
} syrinx_option;

typedef struct syrinx_speak_options {
  size_t struct_size;
  /* NULL: the default; where Pocket TTS has none, the text must begin with a voice mark.  Kokoro: "af_heart", a blend
   * "af_heart:0.6+am_adam:0.4", or a voice file.  Pocket TTS: a name, or the path of an exported voice (.safetensors)
   * or of a recording (wav, flac, mp3, ogg), which is cloned. */
  const char* voice;
  float speed;   /* Kokoro: 0.25 to 4; initially 1 */
  uint64_t seed; /* for the noise: the same seed, text, build and threads give the same samples */
  int noise;     /* Kokoro, not 0: the source noise that the model was trained with */
  int phonemes;  /* Kokoro, not 0: the text is phonemes in Kokoro's alphabet */
  /* Pocket TTS; the initial values stand for the checkpoint's own. */
  float temperature;    /* 0 to 100; initially NaN */
  float noise_clamp;    /* 1e-6 to 1000: limit of the noise; initially NaN: none */
  float eos_threshold;  /* -1e6 to 1e6, for the end-of-speech logit: lower ends earlier; initially NaN */
  int frames_after_eos; /* 0 to 1000 frames of 80 ms spoken after the end; initially -1 */
  int decode_steps;     /* 1 to 64 evaluations of the flow head a frame; initially 0 */
  int max_tokens;       /* 1 to 200 for a chunk of text; initially 0: 50 */
  int plain;            /* not 0: the text has no marks, all of it is read out */
  size_t set_count;     /* options by name; with `set` filled by syrinx_set and syrinx_set_text */
  syrinx_option set[SYRINX_MOST_OPTIONS];
} syrinx_speak_options;

typedef struct syrinx_word {
  const char* text;    /* as written; for an escape, [word](/phonemes/), only the word */
  size_t source_begin; /* bytes of the whole text */
  size_t source_end;
  double start_s; /* seconds from the first sample of the session */
  double end_s;
} syrinx_word;

/* Kokoro: a piece of text.  Pocket TTS: a frame of 80 ms, without words.  For a pause at most 1 s. */
typedef struct syrinx_chunk {
  const float* samples; /* NULL at the end */
  size_t sample_count;
  double start_s;
  const syrinx_word* words;
  size_t word_count;
  const char* phonemes;
} syrinx_chunk;

/* How a word is read out. */
typedef struct syrinx_read_word {
  const char* word;     /* in lower case; spelled letters as single capitals with spaces between, "U S" */
  const char* rule;     /* what decided the word, and ... */
  const char* sound;    /* ... what its sound: names that docs/cli.md lists */
  const char* phonemes; /* in the model's alphabet */
  size_t source_begin;  /* bytes of the whole text; words that were written as one have the same */
  size_t source_end;
} syrinx_read_word;

/* How a sentence is read out. */
typedef struct syrinx_sentence {
  const char* text; /* the source */
  size_t source_begin;
  size_t source_end;
  const char* words;    /* its words, with a space between two */
  const char* phonemes; /* with the punctuation */
  const syrinx_read_word* read_words;
  size_t word_count;
  size_t dropped_characters; /* of the source, that cannot be spoken */
} syrinx_sentence;

typedef struct syrinx_statistics {
  size_t struct_size;
  double first_audio_ms; /* from the first text to the first audio */
  double total_ms;       /* from the first text to the last audio */
  double compute_ms;     /* without waiting for text, for the listener or for other sessions; work shared with other
                          * sessions counts in full */
  double audio_seconds;
  double rtf; /* compute over audio */
  size_t pieces;
  size_t dropped_characters; /* characters of the text that cannot be spoken */
  size_t unknown_phonemes;   /* outside the alphabet, left out */
  size_t limited_pieces;     /* cut at their time limit before the model ended them */
  double waiting_ms;         /* waiting for other sessions of the engine */
  size_t silent_pieces;      /* cut because the model was silent and did not end them */
  size_t repeating_pieces;   /* cut because the model said the same again and again */
  size_t retried_pieces;     /* spoken once more because they were cut before much of them was heard */
  /* Rate and loudness of pieces, without silence, where the model tells: docs/cli.md says when they are uneven. */
  size_t measured_pieces;
  size_t uneven_rate_pieces;
  size_t uneven_loudness_pieces;
  double least_rate; /* tokens of text a second of sound; 0 when no measured piece had sound, like those below */
  double greatest_rate;
  double least_loudness_db; /* root mean square, dB relative to full scale */
  double greatest_loudness_db;
} syrinx_statistics;

typedef struct syrinx_engine_facts {
  size_t struct_size;
  const char* model;
  const char* precision; /* "int8", "f32", "bf16", "int4" */
  int threads;
  double load_ms;
  const char* default_voice; /* "" when there is none */
  int rate_hz;               /* of the audio; SYRINX_SAMPLE_RATE_HZ with the families above */
} syrinx_engine_facts;

const char* syrinx_version(void);
const char* syrinx_code_name(syrinx_code code);

/* Fill `struct_size` bytes: with the initial values of the fields that the library knows, and zeros behind them. */
void syrinx_load_options_init_sized(syrinx_load_options* options, size_t struct_size);
void syrinx_speak_options_init_sized(syrinx_speak_options* options, size_t struct_size);
void syrinx_statistics_init_sized(syrinx_statistics* statistics, size_t struct_size);
void syrinx_engine_facts_init_sized(syrinx_engine_facts* facts, size_t struct_size);
static inline void syrinx_load_options_init(syrinx_load_options* options) {
  syrinx_load_options_init_sized(options, sizeof *options);
}
static inline void syrinx_speak_options_init(syrinx_speak_options* options) {
  syrinx_speak_options_init_sized(options, sizeof *options);
}
static inline void syrinx_statistics_init(syrinx_statistics* statistics) {
  syrinx_statistics_init_sized(statistics, sizeof *statistics);
}
static inline void syrinx_engine_facts_init(syrinx_engine_facts* facts) {
  syrinx_engine_facts_init_sized(facts, sizeof *facts);
}
/* Sets an option of the loaded model's family by name, as `syrinx speak --help` lists them with '-' for '_':
 * syrinx_set(&options, "max_tokens", 50).  A flag is 1 or 0.  Goes before the field of that name.  Name and text must
 * stay until the options have been used.  SYRINX_LIMIT_EXCEEDED beyond SYRINX_MOST_OPTIONS names; whether the family
 * has the option, and the value is in its range, is said where the options are used.  Options for loading (dictionary,
 * lexicon) are fields of syrinx_load_options, and SYRINX_INVALID_ARGUMENT here, said there too. */
syrinx_code syrinx_set(syrinx_speak_options* options, const char* name, double value);
syrinx_code syrinx_set_text(syrinx_speak_options* options, const char* name, const char* text);

/* NULL only when memory has run out.  An engine is empty until it is loaded, which happens once. */
syrinx_engine* syrinx_engine_new(void);
/* NULL is allowed.  Sessions may outlive their engine's handle. */
void syrinx_engine_free(syrinx_engine* engine);
syrinx_code syrinx_engine_load(syrinx_engine* engine, const syrinx_load_options* options);
/* The message of this engine's last error, or "".  The pointer is valid until this thread's next call. */
const char* syrinx_engine_error(const syrinx_engine* engine);
syrinx_code syrinx_engine_get_facts(const syrinx_engine* engine, syrinx_engine_facts* facts);
/* Adds a voice from the content of its file, under a name for syrinx_speak_options.  Pocket TTS: an exported voice or
 * a recording, of which the first 30 s are used. */
syrinx_code syrinx_engine_add_voice(syrinx_engine* engine, const char* name, const void* data, size_t size);

/* Writes a voice of Pocket TTS (a name, or a path as in syrinx_speak_options) as a file that loads without cloning,
 * here and in its maker's programs; the first 30 s of a recording are used.  The file appears whole or not at all. */
syrinx_code syrinx_engine_export_voice(syrinx_engine* engine, const char* voice, const char* path);

/* Called with each chunk of audio, in the thread that called syrinx_speak; the chunk is valid until it returns.  A
 * result other than 0 cancels. */
typedef int (*syrinx_chunk_callback)(const syrinx_chunk* chunk, void* user);

/* Speaks the whole text and returns after the last callback.  `statistics` may be NULL. */
syrinx_code syrinx_speak(syrinx_engine* engine, const char* text, size_t text_bytes,
                         const syrinx_speak_options* options, syrinx_chunk_callback callback, void* user,
                         syrinx_statistics* statistics);

/* Called with each sentence, in the thread that called syrinx_read; the sentence is valid until it returns.  A result
 * other than 0 cancels. */
typedef int (*syrinx_sentence_callback)(const syrinx_sentence* sentence, void* user);

/* Tells how the text, of at most 1 MiB, is read out, and makes no sound: the words, the phonemes and the rules that
 * decided them.  Returns after the last callback.  Of `options`, which may be NULL, the voice (its language) and
 * `plain` count; pauses in the text tell nothing.  An engine of front_end_only does not look whether a voice is there.
 * SYRINX_UNSUPPORTED for a family that takes text as it is written (Pocket TTS) and for voices of other languages;
 * SYRINX_INVALID_ARGUMENT where the text is to be phonemes, is not UTF-8, holds a zero byte or leaves nothing to say;
 * SYRINX_LIMIT_EXCEEDED for a longer text, and for pauses of more than an hour; SYRINX_NOT_FOUND for an unknown voice;
 * SYRINX_CANCELLED where the callback stops it. */
syrinx_code syrinx_read(syrinx_engine* engine, const char* text, size_t text_bytes, const syrinx_speak_options* options,
                        syrinx_sentence_callback callback, void* user);

/* A session for text that arrives in parts.  On failure *session is NULL and the engine has the message. */
syrinx_code syrinx_session_new(syrinx_engine* engine, const syrinx_speak_options* options, syrinx_session** session);
/* NULL is allowed.  Waits for the piece in progress. */
void syrinx_session_free(syrinx_session* session);
/* Adds text, possibly ending inside a word or a character.  Waits while 1 MiB of text is unspoken, until some audio is
 * read: a thread that both writes more than that and reads must alternate, or it waits for ever.  A sentence is spoken
 * once the following text shows that it has ended, or when it looks complete and nothing has followed for 0.3 s. */
syrinx_code syrinx_session_write(syrinx_session* session, const char* text, size_t text_bytes);
/* Writes the whole text and finishes: the same text then always gives the same audio.  At most 1 MiB. */
syrinx_code syrinx_session_speak(syrinx_session* session, const char* text, size_t text_bytes);
/* Ends the text. */
syrinx_code syrinx_session_finish(syrinx_session* session);
/* Waits for the next chunk of audio, which is valid until the next call.  At the end `chunk->samples` is NULL. */
syrinx_code syrinx_session_next(syrinx_session* session, syrinx_chunk* chunk);
void syrinx_session_cancel(syrinx_session* session);
syrinx_code syrinx_session_get_statistics(const syrinx_session* session, syrinx_statistics* statistics);
/* The message of this session's last error, or "".  The pointer is valid until this thread's next call. */
const char* syrinx_session_error(const syrinx_session* session);

#ifdef __cplusplus
}
#endif

#endif /* SYRINX_SYRINX_H_ */
