// Any bytes as a text to be read out, with a front end that takes a sentence as it stands: the same sentences at the
// same places however the text arrives, none moved, the same error at its end.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "engine/speech/text_reader.h"

namespace {

using syrinx::SentenceReading;

class PlainReader final : public syrinx::SentenceReader {
 public:
  syrinx::Status use_voice(const std::string& name) override {
    if (name.starts_with('x')) return syrinx::fail(syrinx::Code::kNotFound, "there is no voice {}", name.size());
    voice_ = name;
    return {};
  }
  syrinx::Result<SentenceReading> read(std::string_view sentence, size_t offset) override {
    SentenceReading reading;
    reading.text = sentence;
    reading.source_begin = offset;
    reading.source_end = offset + sentence.size();
    reading.phonemes = voice_;
    if (sentence != "-") reading.words.push_back({reading.text, "plain", "plain", voice_, offset, reading.source_end});
    return reading;
  }

 private:
  std::string voice_;
};

struct Read {
  std::vector<SentenceReading> sentences;
  syrinx::Status status;
};

syrinx::Status take(syrinx::TextReading& reading, std::vector<SentenceReading>& sentences) {
  for (;;) {
    SYRINX_TRY(std::optional<SentenceReading> next, reading.next());
    if (!next) return {};
    sentences.push_back(std::move(*next));
  }
}

Read read(std::string_view text, size_t step, bool plain) {
  syrinx::TextReading reading(std::make_unique<PlainReader>(), plain);
  Read read;
  for (; !text.empty() && read.status; text.remove_prefix(std::min(step, text.size()))) {
    read.status = reading.feed(text.substr(0, step));
    if (read.status) read.status = take(reading, read.sentences);
  }
  if (read.status) read.status = reading.finish();
  if (read.status) read.status = take(reading, read.sentences);
  return read;
}

// In place of a backslash before a mark stands a space.
bool is_source(std::string_view sentence, std::string_view source) {
  return std::ranges::equal(sentence, source, [](char c, char of) { return c == of || (c == ' ' && of == '\\'); });
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  for (const bool plain : {false, true}) {
    const Read whole = read(text, SIZE_MAX, plain), pieces = read(text, 5, plain);
    SYRINX_CHECK(whole.status.has_value() == pieces.status.has_value());
    if (whole.status)
      SYRINX_CHECK(whole.sentences.size() == pieces.sentences.size() && !whole.sentences.empty());
    else  // what is malformed in one part keeps back the sentences before it
      SYRINX_CHECK(whole.status.error().code == pieces.status.error().code &&
                   whole.sentences.size() <= pieces.sentences.size());
    size_t end = 0;
    for (size_t i = 0; i < pieces.sentences.size(); ++i) {
      const SentenceReading& one = pieces.sentences[i];
      SYRINX_CHECK(one.source_begin >= end && one.source_end <= size && !one.text.empty());
      SYRINX_CHECK(is_source(one.text, text.substr(one.source_begin, one.source_end - one.source_begin)));
      end = one.source_end;
      if (i >= whole.sentences.size()) continue;
      const SentenceReading& same = whole.sentences[i];
      SYRINX_CHECK(same.source_begin == one.source_begin && same.text == one.text && same.phonemes == one.phonemes);
    }
  }
  return 0;
}
