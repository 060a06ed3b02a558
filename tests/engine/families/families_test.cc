// The table of families: what each line must hold, and how a place finds its family.
#include "engine/families/families.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <set>

#include "engine/families/find_recognition_files.h"
#include "engine/families/find_speech_files.h"
#include "store/catalogue.h"
#include "store/model_manifest.h"
#include "tests/base/temp_folder.h"

namespace syrinx {
namespace {

template <class Families>
void check_lines(const Families& families) {
  std::set<std::string_view> kinds;
  for (const auto* const family : families) {
    SCOPED_TRACE(family->title);
    EXPECT_TRUE(kinds.insert(family->kind).second);
    EXPECT_TRUE(family->recognise != nullptr && family->load != nullptr && family->describe != nullptr);
    std::set<std::string_view> names;
    for (const Knob& knob : family->knobs) {
      EXPECT_TRUE(names.insert(knob.name).second) << knob.name;
      EXPECT_STRNE(knob.help, "") << knob.name;
      EXPECT_LE(knob.least, knob.most) << knob.name;
      EXPECT_TRUE(std::isfinite(knob.least) && std::isfinite(knob.most)) << knob.name;
    }
  }
}

TEST(Families, LinesAreComplete) {
  check_lines(speech_families());
  check_lines(recognition_families());
  for (const SpeechFamily* const family : speech_families()) {
    EXPECT_GT(family->traits.rate_hz, 0) << family->title;
    EXPECT_FALSE(family->traits.precisions.empty()) << family->title;
    EXPECT_EQ(find_speech_family(family->kind), family);
  }
  EXPECT_EQ(find_speech_family("g2p-english"), nullptr);
  EXPECT_EQ(find_recognition_family("silero"), nullptr);
}

TEST(Families, LackingPrecisionIsRefusedAtLoading) {
  for (const RecognitionFamily* const family : recognition_families()) {
    EXPECT_FALSE(family->precisions.empty()) << family->title;
    for (const Precision precision : kAllPrecisions) {
      if (std::count(family->precisions.begin(), family->precisions.end(), precision) > 0) continue;
      const auto loaded = load_recogniser({.files = {.name = "m", .family = family}, .precision = precision});
      ASSERT_FALSE(loaded) << family->title;
      EXPECT_THAT(loaded.error().message, testing::HasSubstr(fmt::format("{} is computed in", family->title)));
      EXPECT_EQ(loaded.error().code, Code::kUnsupported);
    }
  }
}

TEST(Families, OptionsOfOneNameMeanTheSame) {
  for (const KnobHolder& one : speech_knobs())
    for (const KnobHolder& other : speech_knobs())
      for (const Knob& knob : one.knobs)
        if (const Knob* const same = find_knob(other.knobs, knob.name)) {
          EXPECT_EQ(same->kind, knob.kind) << knob.name;
          EXPECT_EQ(same->use, knob.use) << knob.name;
        }
}

TEST(Families, CatalogueKindsOfModelsAreKnown) {
  const auto catalogue = Catalogue::built_in();
  ASSERT_TRUE(catalogue);
  size_t known = 0;
  for (const CatalogueEntry& entry : catalogue->entries())
    known += find_speech_family(entry.kind) != nullptr || find_recognition_family(entry.kind) != nullptr;
  EXPECT_GE(known, 3u);
}

// A manifest decides; what lies in the folder would say otherwise.
TEST(Families, ManifestKindDecides) {
  const TempFolder folder;
  write_text(folder.file("model.onnx"), "x");
  write_text(folder.file("config.yaml"), "x");
  const auto found = find_speech_files(folder.path(), "/nowhere");
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_EQ(found->family, speech_families()[0]);
  InstalledModel model;
  model.name = "m";
  model.kind = std::string(speech_families()[1]->kind);
  model.folder = folder.path();
  ModelFile file;
  file.role = "model";
  file.name = "config.yaml";
  file.sha256 = std::string(64, '0');
  model.files.push_back(file);
  ASSERT_TRUE(write_manifest(model));
  const auto named = find_speech_files(folder.path(), "/nowhere");
  ASSERT_TRUE(named) << named.error().message;
  EXPECT_EQ(named->family, speech_families()[1]);
}

// The length of the header of safetensors may begin with the byte that ONNX begins with.
TEST(Families, SafetensorsAreNotTakenForOnnx) {
  const TempFolder folder;
  write_text(folder.file("config.yaml"), "x");
  write_text(folder.file("model.safetensors"), std::string("\x08\0\0\0\0\0\0\0{}      ", 16));
  const auto found = find_speech_files(folder.file("model.safetensors"), "/nowhere");
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_EQ(found->family, speech_families()[1]);
}

// A config.json beside weights describes another kind of model.
TEST(Families, ForeignWeightsAreNotGuessed) {
  const TempFolder folder;
  write_text(folder.file("model.safetensors"), "x");
  write_text(folder.file("config.json"), R"({"model_type": "bark"})");
  for (const std::string& place : {folder.path(), folder.file("model.safetensors")}) {
    const auto found = find_speech_files(place, "/nowhere");
    ASSERT_FALSE(found) << place;
    EXPECT_THAT(found.error().message, testing::HasSubstr("no checkpoint"));
  }
  const auto heard = find_recognition_files(folder.path(), "/nowhere");
  ASSERT_FALSE(heard);
  EXPECT_THAT(heard.error().message, testing::HasSubstr("a model of the kind 'bark'"));
  EXPECT_EQ(heard.error().code, Code::kUnsupported);
}

}  // namespace
}  // namespace syrinx
