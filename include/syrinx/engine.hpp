// Syrinx for C++: the C interface of syrinx.h with owners for its handles, and nothing more.  Needs C++17.
// Nothing here throws except std::bad_alloc from copies.  Codes and messages are those of the C interface.
//
//   syrinx::Engine engine;
//   if (engine.load(syrinx::LoadOptions())) return fail(engine.error());
//   engine.speak("Hello.", syrinx::VoiceOptions(), [&](const syrinx_chunk& chunk) { play(chunk); return true; });
#ifndef SYRINX_ENGINE_HPP_
#define SYRINX_ENGINE_HPP_

#include <syrinx/syrinx.h>

#include <memory>
#include <string_view>
#include <type_traits>

namespace syrinx {

struct LoadOptions : syrinx_load_options {
  LoadOptions() { syrinx_load_options_init(this); }
};

struct VoiceOptions : syrinx_speak_options {
  VoiceOptions() { syrinx_speak_options_init(this); }
  template <class Number, class = std::enable_if_t<std::is_arithmetic_v<Number>>>
  syrinx_code set_option(const char* name, Number value) {
    return syrinx_set(this, name, static_cast<double>(value));
  }
  syrinx_code set_option(const char* name, const char* text) { return syrinx_set_text(this, name, text); }
};

struct Statistics : syrinx_statistics {
  Statistics() { syrinx_statistics_init(this); }
};

class Session {
 public:
  explicit Session(syrinx_session* session = nullptr) : session_(session) {}
  explicit operator bool() const { return session_ != nullptr; }

  syrinx_code write(std::string_view text) { return syrinx_session_write(session_.get(), text.data(), text.size()); }
  syrinx_code speak(std::string_view text) { return syrinx_session_speak(session_.get(), text.data(), text.size()); }
  syrinx_code finish() { return syrinx_session_finish(session_.get()); }
  syrinx_code next(syrinx_chunk& chunk) { return syrinx_session_next(session_.get(), &chunk); }
  void cancel() { syrinx_session_cancel(session_.get()); }
  const char* error() const { return syrinx_session_error(session_.get()); }
  Statistics statistics() const {
    Statistics statistics;
    syrinx_session_get_statistics(session_.get(), &statistics);
    return statistics;
  }
  // Releases the handle; the caller frees it with syrinx_session_free().
  syrinx_session* release() { return session_.release(); }

 private:
  struct Free {
    void operator()(syrinx_session* session) const { syrinx_session_free(session); }
  };
  std::unique_ptr<syrinx_session, Free> session_;
};

class Engine {
 public:
  Engine() : engine_(syrinx_engine_new()) {}

  syrinx_code load(const LoadOptions& options) { return syrinx_engine_load(engine_.get(), &options); }
  const char* error() const { return syrinx_engine_error(engine_.get()); }
  syrinx_engine_facts facts() const {
    syrinx_engine_facts facts;
    syrinx_engine_facts_init(&facts);
    syrinx_engine_get_facts(engine_.get(), &facts);
    return facts;
  }
  syrinx_code add_voice(const char* name, std::string_view content) {
    return syrinx_engine_add_voice(engine_.get(), name, content.data(), content.size());
  }
  syrinx_code export_voice(const char* voice, const char* path) {
    return syrinx_engine_export_voice(engine_.get(), voice, path);
  }
  // On failure `session` is empty and error() has the message.
  syrinx_code start(const VoiceOptions& options, Session& session) {
    syrinx_session* made = nullptr;
    const syrinx_code code = syrinx_session_new(engine_.get(), &options, &made);
    session = Session(made);
    return code;
  }
  // `hear(const syrinx_chunk&)` is called with each chunk of audio; false cancels.
  template <class Hear>
  syrinx_code speak(std::string_view text, const VoiceOptions& options, Hear&& hear, Statistics* statistics = nullptr) {
    const auto call = [](const syrinx_chunk* chunk, void* user) -> int {
      return (*static_cast<std::remove_reference_t<Hear>*>(user))(*chunk) ? 0 : 1;
    };
    return syrinx_speak(engine_.get(), text.data(), text.size(), &options, call,
                        const_cast<void*>(static_cast<const void*>(std::addressof(hear))), statistics);
  }
  // `take(const syrinx_sentence&)` is called with each sentence as it is read out; false cancels.
  template <class Take>
  syrinx_code read(std::string_view text, const VoiceOptions& options, Take&& take) {
    const auto call = [](const syrinx_sentence* sentence, void* user) -> int {
      return (*static_cast<std::remove_reference_t<Take>*>(user))(*sentence) ? 0 : 1;
    };
    return syrinx_read(engine_.get(), text.data(), text.size(), &options, call,
                       const_cast<void*>(static_cast<const void*>(std::addressof(take))));
  }

 private:
  struct Free {
    void operator()(syrinx_engine* engine) const { syrinx_engine_free(engine); }
  };
  std::unique_ptr<syrinx_engine, Free> engine_;
};

}  // namespace syrinx

#endif  // SYRINX_ENGINE_HPP_
