// A damaged GGUF file: one sentence or a model that answers, and never more.  Every byte of a small file takes minutes:
// the gate takes some, SYRINX_DAMAGE_STRIDE=1 all.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include "base/clock.h"
#include "base/memory.h"
#include "engine/families/families.h"
#include "engine/families/find_chat_files.h"
#include "temp_folder.h"

namespace syrinx {
namespace {

size_t stride(size_t usual) {
  const char* const given = std::getenv("SYRINX_DAMAGE_STRIDE");
  return given == nullptr ? usual : std::max(1UL, std::strtoul(given, nullptr, 10));
}

class DamagedModel : public testing::Test {
 protected:
  DamagedModel() {
    std::ifstream file(std::string(SYRINX_TEST_DATA) + "/llama/chat_smollm/chat_smollm.gguf", std::ios::binary);
    std::stringstream text;
    text << file.rdbuf();
    whole_ = text.str();
    EXPECT_GT(whole_.size(), 60000u);
  }

  // False where it is refused.
  bool answers(const std::string& bytes) {
    const std::string path = folder_.file("model.gguf");
    write_text(path, bytes);
    const Stopwatch watch;
    const Status status = try_it(path);
    longest_ms_ = std::max(longest_ms_, watch.elapsed_ms());
    if (status) return true;
    const std::string& told = status.error().message;
    EXPECT_FALSE(told.empty());
    EXPECT_LT(told.size(), 1000u) << told;
    EXPECT_EQ(told.find('\n'), std::string::npos) << told;
    return false;
  }

  std::string whole_;
  double longest_ms_ = 0;

 private:
  static Status try_it(const std::string& path) {
    SYRINX_TRY(const ChatFiles files, find_chat_files(path, ""));
    SYRINX_TRY(const auto engine, load_chat_engine({.files = files, .threads = 1}));
    SYRINX_TRY(const auto answer, engine->start({.messages = {{text::ChatRole::kUser, "Hello."}}, .max_tokens = 2}));
    for (std::string text; answer->end() == ChatEnd::kOpen;) SYRINX_TRY_VOID(answer->next(text));
    return {};
  }

  const TempFolder folder_;
};

TEST_F(DamagedModel, PrefixIsRefused) {
  for (size_t size = 0; size < whole_.size(); size += stride(997))
    EXPECT_FALSE(answers(whole_.substr(0, size))) << size;
  EXPECT_TRUE(answers(whole_));
  RecordProperty("longest_ms", std::to_string(longest_ms_));
}

TEST_F(DamagedModel, FlippedByteIsRefusedOrHarmless) {
  const uint64_t before = peak_rss_bytes();
  for (size_t at = 0; at < whole_.size(); at += stride(331)) {
    std::string bytes = whole_;
    bytes[at] = static_cast<char>(bytes[at] ^ (at % 3 == 0 ? 0xFF : 1 << (at % 8)));
    answers(bytes);
  }
  RecordProperty("longest_ms", std::to_string(longest_ms_));
  RecordProperty("grown_bytes", std::to_string(peak_rss_bytes() - before));
}

}  // namespace
}  // namespace syrinx
