#include "server/realtime/appended_audio.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "server/http/base64.h"

namespace syrinx::server::realtime {
namespace {

using Bytes = std::vector<std::byte>;

// A tone of 16-bit samples.
Bytes tone(size_t samples) {
  std::vector<int16_t> pcm(samples);
  for (size_t i = 0; i < samples; ++i)
    pcm[i] =
        static_cast<int16_t>(std::lround(9000 * std::sin(2 * std::numbers::pi * 440 * static_cast<double>(i) / 24000)));
  const auto bytes = std::as_bytes(std::span(pcm));
  return {bytes.begin(), bytes.end()};
}

// The samples of all texts; false where one is refused.
std::pair<bool, Bytes> appended(const std::vector<std::string>& texts, SoundFormat format = SoundFormat::kPcm) {
  AppendedAudio audio;
  Bytes all;
  for (const std::string& text : texts) {
    const auto taken = audio.take(text, format);
    if (!taken) return {false, {}};
    EXPECT_EQ(taken->bytes.size() % sample_bytes(format), 0U);
    all.insert(all.end(), taken->bytes.begin(), taken->bytes.end());
    audio.keep(*taken);
  }
  return {true, all};
}

std::vector<std::string> pieces_of(const std::string& text, size_t step) {
  std::vector<std::string> pieces;
  for (size_t at = 0; at < text.size(); at += step) pieces.push_back(text.substr(at, step));
  return pieces;
}

TEST(AppendedAudio, CutTextGivesTheSameBytes) {
  for (const size_t samples : {3000, 3001, 3002}) {
    const Bytes sound = tone(samples);
    const std::string text = base64(sound);
    for (size_t step = 1; step <= 24; ++step)
      EXPECT_EQ(appended(pieces_of(text, step)).second, sound) << samples << " in pieces of " << step;
    for (const size_t step : {997, 1001, 1002, 1003, 4001})
      EXPECT_EQ(appended(pieces_of(text, step)).second, sound) << samples << " in pieces of " << step;
  }
}

// Silence is the same in every reading, so that its end alone tells.
TEST(AppendedAudio, CutSilenceIsSilence) {
  const Bytes sound = tone(9000), quiet(18000);
  Bytes before = quiet, inside = sound, behind = sound;
  before.insert(before.end(), sound.begin(), sound.end());
  behind.insert(behind.end(), quiet.begin(), quiet.end());
  inside.insert(inside.begin() + 9000, quiet.begin(), quiet.end());
  for (const auto& [name, all] :
       {std::pair("all", quiet), std::pair("before", before), std::pair("inside", inside), std::pair("behind", behind)})
    for (const size_t step : {61, 998, 999, 1000, 1001, 1002, 1003, 1005, 1006, 1007, 4097, 4098, 4099, 10003})
      EXPECT_EQ(appended(pieces_of(base64(all), step)).second, all) << name << " in pieces of " << step;
}

TEST(AppendedAudio, QuietNoiseStaysQuiet) {
  Bytes sound;
  uint32_t number = 1;
  for (size_t i = 0; i < 24000; ++i) {
    number = number * 1664525 + 1013904223;
    const auto sample = static_cast<int16_t>(static_cast<int>(number >> 30) - 2);
    sound.push_back(static_cast<std::byte>(sample & 0xFF));
    sound.push_back(static_cast<std::byte>(sample >> 8 & 0xFF));
  }
  for (const size_t step : {1001, 1002, 1003, 10003})
    EXPECT_EQ(appended(pieces_of(base64(sound), step)).second, sound) << step;
}

// All sound so far tells.
TEST(AppendedAudio, ShortTextsMayLackPadding) {
  for (const size_t samples : {20, 50}) {
    const Bytes sound = tone(40 * samples);
    std::vector<std::string> texts;
    for (size_t at = 0; at < sound.size(); at += 2 * samples) {
      std::string text = base64(std::span(sound).subspan(at, 2 * samples));
      text.resize(text.find_last_not_of('=') + 1);
      texts.push_back(std::move(text));
    }
    const Bytes heard = appended(texts).second;
    const auto most = static_cast<std::ptrdiff_t>(sound.size() / 2);
    ASSERT_GE(heard.size(), sound.size() / 2) << samples;
    // But the last sample, which is whole only when something follows.
    EXPECT_TRUE(std::equal(sound.begin() + most, sound.end() - 2, heard.end() - most + 2)) << samples;
  }
}

TEST(AppendedAudio, SkippedTextKeepsTheCut) {
  const Bytes sound = tone(30000);
  for (const size_t step : {1001, 20001, 20002, 20003}) {
    AppendedAudio audio;
    Bytes heard;
    size_t begin = 0, end = 0, number = 0;
    for (const std::string& text : pieces_of(base64(sound), step)) {
      const size_t samples = audio.samples_in(text, SoundFormat::kPcm);
      const auto taken = audio.take(text, SoundFormat::kPcm);
      ASSERT_TRUE(taken);
      EXPECT_EQ(taken->bytes.size(), 2 * samples);
      if (number++ == 2) {
        audio.skip(text, SoundFormat::kPcm);
        begin = heard.size();
        end = begin + taken->bytes.size();
        continue;
      }
      heard.insert(heard.end(), taken->bytes.begin(), taken->bytes.end());
      audio.keep(*taken);
    }
    Bytes expected = sound;
    expected.erase(expected.begin() + static_cast<std::ptrdiff_t>(begin),
                   expected.begin() + static_cast<std::ptrdiff_t>(end));
    EXPECT_EQ(heard, expected) << step;
  }
}

// The last sample is whole only when something follows.
TEST(AppendedAudio, PaddingMayBeMissing) {
  for (const size_t samples : {480, 481, 482, 2400, 2401}) {
    const Bytes sound = tone(4 * samples);
    std::vector<std::string> texts;
    for (size_t at = 0; at < sound.size(); at += 2 * samples) {
      std::string text = base64(std::span(sound).subspan(at, 2 * samples));
      text.resize(text.find_last_not_of('=') + 1);
      texts.push_back(std::move(text));
    }
    const auto [is_valid, bytes] = appended(texts);
    ASSERT_TRUE(is_valid) << samples;
    ASSERT_GE(bytes.size() + 2, sound.size()) << samples;
    EXPECT_TRUE(std::equal(bytes.begin(), bytes.end(), sound.begin())) << samples;
  }
}

TEST(AppendedAudio, BlanksCountForNothing) {
  const Bytes sound = tone(500);
  std::string lines;
  for (const std::string& line : pieces_of(base64(sound), 76)) lines += line + "\r\n";
  EXPECT_EQ(appended({lines}).second, sound);
  EXPECT_EQ(appended({" AA\tAA\n", "AA = ", "= \n"}).second, Bytes(4));
}

TEST(AppendedAudio, SamplesMayBeCut) {
  const Bytes sound = tone(300);
  const std::span all(sound);
  EXPECT_EQ(appended({base64(all.first(101)), base64(all.subspan(101, 98)), base64(all.subspan(199))}).second, sound);
  EXPECT_EQ(appended({base64(all.first(101))}).second.size(), 100U);
  EXPECT_EQ(appended({base64(all.first(101))}, SoundFormat::kMuLaw).second.size(), 101U);
}

TEST(AppendedAudio, OtherTextIsRefused) {
  for (const std::vector<std::string>& texts : std::vector<std::vector<std::string>>{{"A*AA"},
                                                                                     {"="},
                                                                                     {"===="},
                                                                                     {"A==="},
                                                                                     {"AB=="},
                                                                                     {"AAB="},
                                                                                     {"AAAA="},
                                                                                     {"AA\xFF"
                                                                                      "A"},
                                                                                     {"A", "="},
                                                                                     {"A", "A*"}})
    EXPECT_FALSE(appended(texts).first) << texts.front();
}

TEST(AppendedAudio, RefusedTextChangesNothing) {
  AppendedAudio audio;
  audio.keep(*audio.take("A", SoundFormat::kPcm));
  EXPECT_FALSE(audio.take("*", SoundFormat::kPcm));
  EXPECT_TRUE(audio.take("AAAAA", SoundFormat::kPcm));  // not kept
  EXPECT_EQ(audio.take("AAA", SoundFormat::kMuLaw)->bytes.size(), 3U);
  audio.clear();
  EXPECT_EQ(audio.take("AAA", SoundFormat::kMuLaw)->bytes.size(), 0U);
}

}  // namespace
}  // namespace syrinx::server::realtime
