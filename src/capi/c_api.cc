// The C interface over SpeechEngine and SpeechSession.  Every function catches: nothing is thrown across it.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <exception>
#include <limits>
#include <mutex>
#include <new>
#include <optional>
#include <utility>

#include "base/scoped_file.h"
#include "base/version.h"
#include "capi/sentence_view.h"
#include "capi/statistics_facts.h"
#include "engine/families/families.h"
#include "engine/families/find_speech_files.h"
#include "engine/speech/speech_engine.h"
#include "store/paths.h"
#include "syrinx/syrinx.h"

namespace {

using syrinx::Code;
using syrinx::Error;
using syrinx::Result;
using syrinx::SpeechChunk;
using syrinx::SpeechEngine;
using syrinx::SpeechEngineOptions;
using syrinx::SpeechFiles;
using syrinx::SpeechSession;
using syrinx::Status;

syrinx_code to_c(Code code) {
  switch (code) {
    case Code::kInvalidArgument: return SYRINX_INVALID_ARGUMENT;
    case Code::kNotFound: return SYRINX_NOT_FOUND;
    case Code::kDataLoss: return SYRINX_DATA_LOSS;
    case Code::kUnsupported: return SYRINX_UNSUPPORTED;
    case Code::kLimitExceeded: return SYRINX_LIMIT_EXCEEDED;
    case Code::kIo: return SYRINX_IO;
    case Code::kUnavailable: return SYRINX_UNAVAILABLE;
    case Code::kCancelled: return SYRINX_CANCELLED;
    case Code::kInternal: return SYRINX_INTERNAL;
  }
  return SYRINX_INTERNAL;
}

// The last sentence of a handle; asked for by any thread.
class LastError {
 public:
  syrinx_code keep(Error error) {
    const std::lock_guard lock(mutex_);
    message_ = std::move(error.message);
    return to_c(error.code);
  }
  const char* read() const {
    thread_local std::string copy;
    const std::lock_guard lock(mutex_);
    copy = message_;
    return copy.c_str();
  }

 private:
  mutable std::mutex mutex_;
  std::string message_;
};

// Runs `body`, which returns a Status; its error, or what it threw, is kept in `errors`.
template <class Body>
syrinx_code guarded(LastError& errors, Body&& body) noexcept {
  try {
    Status status;
    try {
      status = body();
    } catch (const std::bad_alloc&) {
      status = syrinx::fail(Code::kLimitExceeded, "out of memory");
    } catch (const std::exception& error) {
      status = syrinx::fail(Code::kInternal, "unexpected failure: {}", error.what());
    }
    return status ? SYRINX_OK : errors.keep(std::move(status).error());
  } catch (...) {
    return SYRINX_INTERNAL;  // no memory left even for the sentence
  }
}

// Into a structure of the caller's version, which may have more fields or fewer.
template <class T>
void write_initial(const T& initial, T* target, size_t struct_size) {
  std::memset(static_cast<void*>(target), 0, struct_size);
  std::memcpy(static_cast<void*>(target), &initial, std::min(struct_size, sizeof(T)));
  if (struct_size >= sizeof target->struct_size) target->struct_size = struct_size;
}

syrinx_load_options initial_load_options() {
  syrinx_load_options options{};
  options.model_descriptor = -1;
  options.precision = SYRINX_PRECISION_DEFAULT;
  return options;
}

syrinx_speak_options initial_speak_options() {
  syrinx_speak_options options{};
  options.speed = 1.0f;
  options.temperature = options.noise_clamp = options.eos_threshold = std::numeric_limits<float>::quiet_NaN();
  options.frames_after_eos = -1;
  return options;
}

// The fields that the caller's version of a structure has, in place of their initial values.
template <class T>
T read_options(const T* given, T options) {
  if (given != nullptr) std::memcpy(&options, given, std::min(given->struct_size, sizeof(T)));
  return options;
}

template <class T>
void write_facts(const T& facts, T* target) {
  const size_t size = std::min(target->struct_size, sizeof(T));
  if (size <= sizeof(size_t)) return;
  // All but the size, which is the caller's.
  std::memcpy(reinterpret_cast<char*>(target) + sizeof(size_t), reinterpret_cast<const char*>(&facts) + sizeof(size_t),
              size - sizeof(size_t));
}

std::string text_or(const char* text, std::string otherwise) { return text != nullptr ? text : std::move(otherwise); }

// A field that differs from the value of its _init function is an option of that name; options of syrinx_set go first.
syrinx::SpeakOptions speak_options(const syrinx_speak_options* given) {
  const syrinx_speak_options options = read_options(given, initial_speak_options());
  syrinx::SpeakOptions made;
  made.voice = text_or(options.voice, "");
  made.seed = options.seed;
  made.plain = options.plain != 0;
  const auto set = [&](const char* name, double value, bool is_given) {
    if (is_given) made.knobs.set(name, value);
  };
  set("speed", options.speed, options.speed != 1.0f);
  set("noise", 1, options.noise != 0);
  set("phonemes", 1, options.phonemes != 0);
  set("temperature", options.temperature, !std::isnan(options.temperature));
  set("noise_clamp", options.noise_clamp, !std::isnan(options.noise_clamp));
  set("eos_threshold", options.eos_threshold, !std::isnan(options.eos_threshold));
  set("frames_after_eos", options.frames_after_eos, options.frames_after_eos != -1);
  set("decode_steps", options.decode_steps, options.decode_steps != 0);
  set("max_tokens", options.max_tokens, options.max_tokens != 0);
  for (size_t i = 0; i < std::min<size_t>(options.set_count, SYRINX_MOST_OPTIONS); ++i) {
    const syrinx_option& option = options.set[i];
    if (option.name == nullptr) continue;
    if (option.text != nullptr)
      made.knobs.set(option.name, std::string(option.text));
    else
      made.knobs.set(option.name, option.number);
  }
  return made;
}

// In place of one of that name.
syrinx_code set_option(syrinx_speak_options* options, const syrinx_option& option) {
  constexpr size_t kEnd = offsetof(syrinx_speak_options, set) + sizeof options->set;
  if (options == nullptr || option.name == nullptr || options->struct_size < kEnd) return SYRINX_INVALID_ARGUMENT;
  if (options->set_count > SYRINX_MOST_OPTIONS) return SYRINX_INVALID_ARGUMENT;
  const auto is_same = [&](const syrinx_option& each) {
    return each.name != nullptr && std::strcmp(each.name, option.name) == 0;
  };
  size_t at = 0;
  while (at < options->set_count && !is_same(options->set[at])) ++at;
  if (at >= SYRINX_MOST_OPTIONS) return SYRINX_LIMIT_EXCEEDED;
  options->set[at] = option;
  options->set_count = std::max(options->set_count, at + 1);
  return SYRINX_OK;
}

// An option for loading would have no effect on a speech.
Status check_uses(const syrinx::Knobs& knobs) {
  for (const syrinx::KnobHolder& family : syrinx::speech_knobs())
    for (const auto& [name, value] : knobs.entries())
      if (const syrinx::Knob* const knob = find_knob(family.knobs, name);
          knob != nullptr && knob->use == syrinx::Knob::Use::kLoad)
        return syrinx::fail(Code::kInvalidArgument,
                            "'{}' is an option for loading; set the field of syrinx_load_options instead", name);
  return {};
}

Result<std::unique_ptr<SpeechSession>> start(SpeechEngine& engine, const syrinx_speak_options* given) {
  const syrinx::SpeakOptions options = speak_options(given);
  SYRINX_TRY_VOID(check_uses(options.knobs));
  return engine.start(options);
}

Status read_all(syrinx::TextReading& reading, std::string_view text, syrinx_sentence_callback callback, void* user) {
  SYRINX_TRY_VOID(reading.feed(text));
  SYRINX_TRY_VOID(reading.finish());
  for (syrinx::SentenceView sentence;;) {
    SYRINX_TRY(std::optional<syrinx::SentenceReading> read, reading.next());
    if (!read) return {};
    sentence.show(std::move(*read));
    if (callback(&sentence.view(), user) != 0) return syrinx::fail(Code::kCancelled, "the caller stopped the reading");
  }
}

void fill(const syrinx::SpeechStatistics& from, syrinx_statistics* to) {
  if (to != nullptr) write_facts(syrinx::statistics_facts(from), to);
}

Result<std::optional<syrinx::Precision>> precision_of(const syrinx_precision& stored) {
  // A C program may have put any number there, which must not be read as the enumeration.
  int given = 0;
  static_assert(sizeof given == sizeof stored);
  std::memcpy(&given, &stored, sizeof given);
  switch (given) {
    case SYRINX_PRECISION_DEFAULT: return std::optional<syrinx::Precision>();
    case SYRINX_PRECISION_INT8: return syrinx::Precision::kInt8;
    case SYRINX_PRECISION_F32: return syrinx::Precision::kF32;
    case SYRINX_PRECISION_BF16: return syrinx::Precision::kBf16;
    case SYRINX_PRECISION_INT4: return syrinx::Precision::kInt4;
  }
  return syrinx::fail(Code::kInvalidArgument, "{} names no precision; use a SYRINX_PRECISION_ constant", given);
}

const syrinx::SpeechFamily* family_of_bytes() {
  for (const syrinx::SpeechFamily* const family : syrinx::speech_families())
    if (family->traits.takes_bytes) return family;
  return nullptr;
}

Result<SpeechEngineOptions> load_options(const syrinx_load_options& given) {
  SpeechEngineOptions options;
  const auto paths = syrinx::user_paths();
  const std::string models = paths ? syrinx::models_folder(*paths) : std::string();
  const bool has_file = given.model_data != nullptr || given.model_descriptor >= 0;
  if (given.front_end_only != 0) {
    if (has_file)
      return syrinx::fail(Code::kInvalidArgument,
                          "front_end_only reads no checkpoint; leave model_data and model_descriptor out");
    SYRINX_TRY(options.files, syrinx::find_reader_files(text_or(given.model, ""), models));
  } else if (has_file) {
    // Voices and the lexicon may still come from the installed model, if there is one.
    if (auto installed = syrinx::find_speech_files("", models)) options.files = std::move(*installed);
    if (options.files.family == nullptr || !options.files.family->traits.takes_bytes)
      options.files.family = family_of_bytes();
    options.files.name = given.model_data != nullptr ? "(memory)" : "(descriptor)";
    options.files.checkpoint.clear();
  } else {
    SYRINX_TRY(options.files, syrinx::find_speech_files(text_or(given.model, ""), models));
  }
  if (given.model_data != nullptr) {
    const std::span bytes(static_cast<const std::byte*>(given.model_data), given.model_size);
    options.checkpoint = syrinx::MappedFile::borrow(bytes, options.files.name);
  } else if (given.model_descriptor >= 0) {
    SYRINX_TRY(options.checkpoint, syrinx::MappedFile::from_descriptor(given.model_descriptor, options.files.name));
  }
  options.files.voices = text_or(given.voices, options.files.voices);
  options.files.lexicon = text_or(given.lexicon, options.files.lexicon);
  options.dictionary = text_or(given.dictionary, "");
  options.first_voice = text_or(given.voice, "");
  options.first_is_phonemes = given.phonemes_only != 0;
  SYRINX_TRY(options.precision, precision_of(given.precision));
  options.threads = given.threads;
  if (given.without_cache == 0 && paths) options.cache_folder = syrinx::packed_folder(*paths, options.files);
  return options;
}

// A chunk in C's terms, pointing into the C++ one.
class ChunkView {
 public:
  void show(SpeechChunk chunk, syrinx_chunk* to) {
    chunk_ = std::move(chunk);
    words_.clear();
    for (const syrinx::WordTime& word : chunk_.words)
      words_.push_back({word.text.c_str(), word.source_begin, word.source_end, word.start_s, word.end_s});
    *to = {chunk_.samples.data(), chunk_.samples.size(), chunk_.start_s,
           words_.data(),         words_.size(),         chunk_.phonemes.c_str()};
  }

 private:
  SpeechChunk chunk_;
  std::vector<syrinx_word> words_;
};

}  // namespace

struct syrinx_engine {
  std::shared_ptr<SpeechEngine> engine;        // null until loaded
  std::shared_ptr<syrinx::TextReader> reader;  // in place of it, with front_end_only
  mutable LastError errors;

  Result<SpeechEngine*> loaded() const {
    if (reader != nullptr)
      return syrinx::fail(Code::kInvalidArgument,
                          "the engine was loaded with front_end_only, for syrinx_read; load one without it to speak");
    if (engine == nullptr) return syrinx::fail(Code::kInvalidArgument, "the engine has not been loaded");
    return engine.get();
  }
};

struct syrinx_session {
  std::unique_ptr<SpeechSession> session;
  ChunkView view;
  mutable LastError errors;
};

const char* syrinx_version(void) { return syrinx::version(); }

const char* syrinx_code_name(syrinx_code code) {
  constexpr const char* kNames[] = {"ok", "invalid_argument", "not_found", "data_loss", "unsupported", "limit_exceeded",
                                    "io", "unavailable",      "cancelled", "internal"};
  const auto index = static_cast<size_t>(code);
  return index < std::size(kNames) ? kNames[index] : "unknown";
}

void syrinx_load_options_init_sized(syrinx_load_options* options, size_t struct_size) {
  write_initial(initial_load_options(), options, struct_size);
}

void syrinx_speak_options_init_sized(syrinx_speak_options* options, size_t struct_size) {
  write_initial(initial_speak_options(), options, struct_size);
}

syrinx_code syrinx_set(syrinx_speak_options* options, const char* name, double value) {
  return set_option(options, {name, value, nullptr});
}

syrinx_code syrinx_set_text(syrinx_speak_options* options, const char* name, const char* text) {
  if (text == nullptr) return SYRINX_INVALID_ARGUMENT;
  return set_option(options, {name, 0, text});
}

void syrinx_statistics_init_sized(syrinx_statistics* statistics, size_t struct_size) {
  write_initial({}, statistics, struct_size);
}

void syrinx_engine_facts_init_sized(syrinx_engine_facts* facts, size_t struct_size) {
  write_initial({}, facts, struct_size);
}

syrinx_engine* syrinx_engine_new(void) { return new (std::nothrow) syrinx_engine(); }

void syrinx_engine_free(syrinx_engine* engine) { delete engine; }

syrinx_code syrinx_engine_load(syrinx_engine* engine, const syrinx_load_options* options) {
  if (engine == nullptr) return SYRINX_INVALID_ARGUMENT;
  return guarded(engine->errors, [&]() -> Status {
    if (engine->engine != nullptr || engine->reader != nullptr)
      return syrinx::fail(Code::kInvalidArgument, "the engine is loaded already");
    const syrinx_load_options given = read_options(options, initial_load_options());
    SYRINX_TRY(SpeechEngineOptions made, load_options(given));
    if (given.front_end_only != 0) {
      SYRINX_TRY(engine->reader, load_text_reader(std::move(made)));
    } else {
      SYRINX_TRY(engine->engine, load_speech_engine(std::move(made)));
    }
    return {};
  });
}

const char* syrinx_engine_error(const syrinx_engine* engine) {
  return engine != nullptr ? engine->errors.read() : "there is no engine";
}

syrinx_code syrinx_engine_get_facts(const syrinx_engine* engine, syrinx_engine_facts* facts) {
  if (engine == nullptr || facts == nullptr) return SYRINX_INVALID_ARGUMENT;
  return guarded(engine->errors, [&]() -> Status {
    SYRINX_TRY(const SpeechEngine* loaded, engine->loaded());
    write_facts({sizeof *facts, loaded->name().c_str(), syrinx::precision_name(loaded->precision()), loaded->threads(),
                 loaded->load_ms(), loaded->default_voice().c_str(), loaded->rate_hz()},
                facts);
    return {};
  });
}

syrinx_code syrinx_engine_add_voice(syrinx_engine* engine, const char* name, const void* data, size_t size) {
  if (engine == nullptr || name == nullptr || data == nullptr) return SYRINX_INVALID_ARGUMENT;
  return guarded(engine->errors, [&]() -> Status {
    SYRINX_TRY(SpeechEngine* const loaded, engine->loaded());
    return loaded->add_voice(name, {static_cast<const std::byte*>(data), size});
  });
}

syrinx_code syrinx_engine_export_voice(syrinx_engine* engine, const char* voice, const char* path) {
  if (engine == nullptr || voice == nullptr || path == nullptr) return SYRINX_INVALID_ARGUMENT;
  return guarded(engine->errors, [&]() -> Status {
    SYRINX_TRY(SpeechEngine* const loaded, engine->loaded());
    SYRINX_TRY(syrinx::ScopedFile file, syrinx::ScopedFile::create(path));
    SYRINX_TRY(const std::string content, loaded->export_voice(voice));
    SYRINX_TRY_VOID(file.write(content));
    return file.commit();
  });
}

syrinx_code syrinx_session_new(syrinx_engine* engine, const syrinx_speak_options* options, syrinx_session** session) {
  if (session != nullptr) *session = nullptr;
  if (engine == nullptr || session == nullptr) return SYRINX_INVALID_ARGUMENT;
  return guarded(engine->errors, [&]() -> Status {
    SYRINX_TRY(SpeechEngine* const loaded, engine->loaded());
    auto made = std::make_unique<syrinx_session>();
    SYRINX_TRY(made->session, start(*loaded, options));
    *session = made.release();
    return {};
  });
}

void syrinx_session_free(syrinx_session* session) { delete session; }

syrinx_code syrinx_session_write(syrinx_session* session, const char* text, size_t text_bytes) {
  if (session == nullptr || (text == nullptr && text_bytes > 0)) return SYRINX_INVALID_ARGUMENT;
  return guarded(session->errors, [&] { return session->session->write({text, text_bytes}); });
}

syrinx_code syrinx_session_speak(syrinx_session* session, const char* text, size_t text_bytes) {
  if (session == nullptr || (text == nullptr && text_bytes > 0)) return SYRINX_INVALID_ARGUMENT;
  return guarded(session->errors, [&] { return session->session->speak({text, text_bytes}); });
}

syrinx_code syrinx_session_finish(syrinx_session* session) {
  if (session == nullptr) return SYRINX_INVALID_ARGUMENT;
  return guarded(session->errors, [&]() -> Status {
    session->session->finish();
    return {};
  });
}

syrinx_code syrinx_session_next(syrinx_session* session, syrinx_chunk* chunk) {
  if (chunk != nullptr) *chunk = {};
  if (session == nullptr || chunk == nullptr) return SYRINX_INVALID_ARGUMENT;
  return guarded(session->errors, [&]() -> Status {
    SYRINX_TRY(std::optional<SpeechChunk> made, session->session->next());
    if (made) session->view.show(std::move(*made), chunk);
    return {};
  });
}

void syrinx_session_cancel(syrinx_session* session) {
  if (session != nullptr) session->session->cancel();
}

syrinx_code syrinx_session_get_statistics(const syrinx_session* session, syrinx_statistics* statistics) {
  if (session == nullptr || statistics == nullptr) return SYRINX_INVALID_ARGUMENT;
  fill(session->session->statistics(), statistics);
  return SYRINX_OK;
}

const char* syrinx_session_error(const syrinx_session* session) {
  return session != nullptr ? session->errors.read() : "there is no session";
}

syrinx_code syrinx_speak(syrinx_engine* engine, const char* text, size_t text_bytes,
                         const syrinx_speak_options* options, syrinx_chunk_callback callback, void* user,
                         syrinx_statistics* statistics) {
  if (engine == nullptr || (text == nullptr && text_bytes > 0) || callback == nullptr) return SYRINX_INVALID_ARGUMENT;
  return guarded(engine->errors, [&]() -> Status {
    SYRINX_TRY(SpeechEngine* const loaded, engine->loaded());
    SYRINX_TRY(const std::unique_ptr<SpeechSession> session, start(*loaded, options));
    SYRINX_TRY_VOID(session->speak({text, text_bytes}));
    ChunkView view;
    for (;;) {
      SYRINX_TRY(std::optional<SpeechChunk> made, session->next());
      if (!made) break;
      syrinx_chunk chunk{};
      view.show(std::move(*made), &chunk);
      if (callback(&chunk, user) != 0) return syrinx::fail(Code::kCancelled, "the listener stopped the speech");
    }
    fill(session->statistics(), statistics);
    return {};
  });
}

syrinx_code syrinx_read(syrinx_engine* engine, const char* text, size_t text_bytes, const syrinx_speak_options* options,
                        syrinx_sentence_callback callback, void* user) {
  if (engine == nullptr || (text == nullptr && text_bytes > 0) || callback == nullptr) return SYRINX_INVALID_ARGUMENT;
  return guarded(engine->errors, [&]() -> Status {
    if (text_bytes > SpeechSession::kMaxWaitingText)
      return syrinx::fail(Code::kLimitExceeded, "the text has {} bytes, the limit is {}; give it in parts", text_bytes,
                          SpeechSession::kMaxWaitingText);
    const syrinx::SpeakOptions chosen = speak_options(options);
    SYRINX_TRY_VOID(check_uses(chosen.knobs));
    if (engine->reader != nullptr) {
      SYRINX_TRY(const auto reading, engine->reader->start(chosen));
      return read_all(*reading, {text, text_bytes}, callback, user);
    }
    SYRINX_TRY(SpeechEngine* const loaded, engine->loaded());
    SYRINX_TRY(const auto reading, loaded->read(chosen));
    return read_all(*reading, {text, text_bytes}, callback, user);
  });
}
