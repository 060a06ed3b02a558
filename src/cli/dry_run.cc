#include "cli/dry_run.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "base/json.h"
#include "base/signals.h"
#include "cli/output.h"
#include "engine/families/families.h"
#include "engine/families/find_speech_files.h"
#include "store/paths.h"

namespace syrinx::cli {
namespace {

constexpr size_t kReadBytes = 64 << 10;

std::string rule_of(const WordReading& word) {
  Json rule;
  rule.set("word", word.word).set("rule", word.rule).set("sound", word.sound).set("phonemes", word.phonemes);
  rule.set("begin", word.source_begin).set("end", word.source_end);
  return rule.dump();
}

// Word by word: as values, those of a sentence of 1 MiB would take hundreds of megabytes.
std::string line_of(const SentenceReading& sentence) {
  std::string rules;
  for (const WordReading& word : sentence.words) rules += (rules.empty() ? "" : ",") + rule_of(word);
  return fmt::format(R"({{"text":{},"words":{},"phonemes":{},"rules":[{}],"begin":{},"end":{},"dropped":{}}})"
                     "\n",
                     Json(sentence.text).dump(), Json(sentence.read_out()).dump(), Json(sentence.phonemes).dump(),
                     rules, sentence.source_begin, sentence.source_end, sentence.dropped_characters);
}

// The sentences that are complete.
Status print_next(TextReading& reading) {
  for (;;) {
    if (cancel_requested()) return fail(Code::kCancelled, "stopped");
    SYRINX_TRY(const std::optional<SentenceReading> sentence, reading.next());
    if (!sentence) return {};
    SYRINX_TRY_VOID(print_words(line_of(*sentence)));
  }
}

Status read_standard_input(TextReading& reading) {
  std::vector<char> bytes(kReadBytes);
  for (;;) {
    if (cancel_requested()) return fail(Code::kCancelled, "stopped");
    const ssize_t count = ::read(STDIN_FILENO, bytes.data(), bytes.size());
    if (count == 0) return {};
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return fail(Code::kIo, "cannot read standard input: {}", std::strerror(errno));
    SYRINX_TRY_VOID(reading.feed({bytes.data(), static_cast<size_t>(count)}));
    SYRINX_TRY_VOID(print_next(reading));
  }
}

Result<std::unique_ptr<TextReading>> start(const DryRun& arguments) {
  SYRINX_TRY(const UserPaths paths, user_paths());
  SpeechEngineOptions options;
  SYRINX_TRY(options.files, find_reader_files(arguments.model, models_folder(paths)));
  for (const Knobs* const knobs : {&arguments.load, &arguments.request})
    SYRINX_TRY_VOID(check_knobs(*knobs, *options.files.family, KnobNames::kFlags));
  options.files.lexicon = arguments.load.text("lexicon").value_or(options.files.lexicon);
  options.dictionary = arguments.load.text("dictionary").value_or("");
  options.cache_folder = packed_folder(paths, options.files);
  options.first_voice = arguments.voice;
  SYRINX_TRY(const std::shared_ptr<TextReader> reader, load_text_reader(std::move(options)));
  SpeakOptions speech;
  speech.voice = arguments.voice;
  speech.plain = arguments.plain;
  speech.knobs = arguments.request;
  return reader->start(speech);
}

}  // namespace

Status dry_run(const DryRun& arguments) {
  SYRINX_TRY(const std::unique_ptr<TextReading> reading, start(arguments));
  if (arguments.text) {
    SYRINX_TRY_VOID(reading->feed(*arguments.text));
  } else {
    SYRINX_TRY_VOID(read_standard_input(*reading));
  }
  SYRINX_TRY_VOID(reading->finish());
  return print_next(*reading);
}

}  // namespace syrinx::cli
