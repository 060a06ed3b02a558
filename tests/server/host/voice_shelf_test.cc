// The folder of uploaded voices, and what is asked of a new one's form.
#include "server/host/voice_shelf.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <utime.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <future>
#include <iterator>

#include "server/openai/voice_job.h"
#include "tests/base/temp_folder.h"

namespace {
std::function<void()> during_sync;  // what a test does while the disk is waited for
}

// Before the C library's, for this program.
extern "C" int fsync(int descriptor) {
  if (during_sync) during_sync();
  return static_cast<int>(::syscall(SYS_fsync, descriptor));
}

namespace syrinx::server {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;

std::vector<std::string> names_of(const VoiceShelf& shelf) {
  std::vector<std::string> names;
  for (const UploadedVoice& voice : shelf.voices()) names.push_back(voice.name);
  return names;
}

std::string content_of(const fs::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

Status take(const std::string& /*name*/, const std::string& /*path*/) { return {}; }

class VoiceShelfTest : public testing::Test {
 protected:
  const TempFolder folder_;
  const fs::path place_ = fs::path(folder_.path()) / "voices" / "english";
};

TEST_F(VoiceShelfTest, StoredVoicesOutliveTheServer) {
  VoiceShelf shelf(place_.string());
  shelf.list();
  EXPECT_FALSE(fs::exists(place_));  // before there is something to write
  const auto put = shelf.put("bob", "a voice");
  ASSERT_TRUE(put) << put.error().message;
  ASSERT_TRUE(shelf.put("ann", "another"));
  EXPECT_THAT(names_of(shelf), ElementsAre("ann", "bob"));

  VoiceShelf next(place_.string());
  next.list();
  EXPECT_THAT(names_of(next), ElementsAre("ann", "bob"));
  EXPECT_EQ(next.find("bob")->created_s, put->created_s);
  std::vector<std::string> read;
  next.read([&](const std::string& name, const std::string& path) {
    read.push_back(name + " " + content_of(path));
    return Status();
  });
  EXPECT_THAT(read, ElementsAre("ann another", "bob a voice"));
  ASSERT_TRUE(next.remove("ann"));
  EXPECT_FALSE(fs::exists(place_ / "ann.safetensors"));
  EXPECT_EQ(next.remove("ann").error().code, Code::kNotFound);
  EXPECT_THAT(names_of(next), ElementsAre("bob"));
}

TEST_F(VoiceShelfTest, UnreadableVoicesAreSkippedAndKept) {
  VoiceShelf shelf(place_.string());
  ASSERT_TRUE(shelf.put("bad", "x"));
  ASSERT_TRUE(shelf.put("good", "x"));
  shelf.read([](const std::string& name, const std::string&) -> Status {
    if (name == "bad") return fail(Code::kDataLoss, "no voice");
    return {};
  });
  EXPECT_THAT(names_of(shelf), ElementsAre("good"));
  EXPECT_TRUE(fs::exists(place_ / "bad.safetensors"));
  EXPECT_TRUE(shelf.has_file("bad"));
  EXPECT_FALSE(shelf.has_file("good") || shelf.has_file("new"));
  EXPECT_EQ(shelf.put("bad", "y").error().code, Code::kIo);  // and not replaced
  EXPECT_EQ(content_of(place_ / "bad.safetensors"), "x");
}

TEST_F(VoiceShelfTest, OnlyWritersWaitForTheDisk) {
  VoiceShelf shelf(place_.string());
  ASSERT_TRUE(shelf.put("ann", "x"));
  size_t syncs = 0;
  bool is_free = true;
  std::future<bool> other;
  during_sync = [&] {
    ++syncs;
    other = std::async(std::launch::async,
                       [&] { return shelf.find("ann") && shelf.size() > 0 && !names_of(shelf).empty(); });
    is_free = is_free && other.wait_for(std::chrono::seconds(120)) == std::future_status::ready && other.get();
  };
  const auto put = shelf.put("bob", "x");
  const size_t puts = syncs;
  const Status removed = shelf.remove("bob");
  during_sync = nullptr;
  EXPECT_TRUE(put && removed);
  EXPECT_TRUE(is_free);
  EXPECT_GT(puts, 0);
  EXPECT_GT(syncs, puts);
}

TEST_F(VoiceShelfTest, OnlyOldLeftOversGo) {
  fs::create_directories(place_);
  for (const char* name : {".syrinx-1-2-3.part", ".syrinx-4-5-6.part", "notes.part"})
    std::ofstream(place_ / name) << "x";
  const utimbuf old{.actime = 1000000, .modtime = 1000000};
  ASSERT_EQ(::utime((place_ / ".syrinx-1-2-3.part").c_str(), &old), 0);
  ASSERT_EQ(::utime((place_ / "notes.part").c_str(), &old), 0);
  VoiceShelf shelf(place_.string());
  shelf.list();
  EXPECT_FALSE(fs::exists(place_ / ".syrinx-1-2-3.part"));
  EXPECT_TRUE(fs::exists(place_ / ".syrinx-4-5-6.part"));  // another server may be writing it
  EXPECT_TRUE(fs::exists(place_ / "notes.part"));
}

TEST_F(VoiceShelfTest, AClosedOneHoldsNothing) {
  VoiceShelf shelf("");
  shelf.list();
  shelf.read(take);
  EXPECT_FALSE(shelf.is_open());
  EXPECT_EQ(shelf.size(), 0);
}

TEST(VoiceName, HoldsNothingThatLeavesAFolder) {
  for (const char* name : {"me", "Me-2_b", "7", "a"}) EXPECT_EQ(voice_name_fault(name), std::nullopt) << name;
  EXPECT_EQ(voice_name_fault(std::string(64, 'x')), std::nullopt);
  for (int c = 0; c < 256; ++c) {
    const auto byte = static_cast<char>(c);
    const bool letter = std::isalnum(c) != 0 && c < 128;
    EXPECT_EQ(voice_name_fault(std::string("a") + byte).has_value(), !(letter || byte == '-' || byte == '_')) << c;
    EXPECT_EQ(voice_name_fault(std::string(1, byte)).has_value(), !letter) << c;
  }
  for (const std::string& name : {std::string(), std::string(65, 'x'), std::string("..")})
    EXPECT_TRUE(voice_name_fault(name)) << name;
}

TEST(VoiceRequest, FaultsNameTheirField) {
  const FormPart name{.name = "name", .content = "me"}, sample{.name = "file", .content = "sound"};
  const auto request = parse_voice_request({name, sample, {.name = "consent", .content = "cons_1"}});
  ASSERT_TRUE(request);
  EXPECT_EQ(request->name, "me");
  EXPECT_EQ(request->sample, "sound");
  const auto fault = [](const std::vector<FormPart>& parts) { return parse_voice_request(parts).error(); };
  EXPECT_EQ(fault({sample}).param, "name");
  EXPECT_EQ(fault({name}).param, "audio_sample");
  EXPECT_THAT(fault({name, sample, sample}).message, HasSubstr("given twice"));
  const std::string_view nothing;
  EXPECT_THAT(fault({name, {.name = "file", .content = nothing}}).message, HasSubstr("is empty"));
  EXPECT_EQ(fault({{.name = "name", .content = "a/../b"}, sample}).param, "name");
  EXPECT_EQ(fault({name, sample, {.name = "pitch", .content = "1"}}).code, "unknown_parameter");
  EXPECT_TRUE(parse_voice_request({name, sample, {.name = "type", .content = nothing}}));
  const std::string long_text(257, 'x');
  EXPECT_THAT(fault({name, sample, {.name = "consent", .content = long_text}}).message, HasSubstr("at most 256"));
}

}  // namespace
}  // namespace syrinx::server
