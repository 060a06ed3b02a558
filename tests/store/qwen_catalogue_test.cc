// The catalogue's family qwen3-tts: the files of every published checkpoint (specification, qwen3-tts.md, section 1.1).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <vector>

#include "store/catalogue.h"
#include "store/checkpoint_reference.h"

namespace syrinx {
namespace {

TEST(QwenCatalogue, HasEveryPublishedCheckpoint) {
  const auto catalogue = Catalogue::built_in();
  ASSERT_TRUE(catalogue) << catalogue.error().message;
  EXPECT_EQ((*catalogue->find("qwen3-tts"))->name, "qwen3-tts:0.6b-customvoice");
  const std::map<std::string, uint64_t> megabytes = {{"0.6B-CustomVoice", 2498},
                                                     {"0.6B-Base", 2516},
                                                     {"1.7B-CustomVoice", 4520},
                                                     {"1.7B-Base", 4544},
                                                     {"1.7B-VoiceDesign", 4520}};
  for (const auto& [repository, size] : megabytes) {
    const std::string place = "Qwen/Qwen3-TTS-12Hz-" + repository;
    const auto found = catalogue->find(place);
    ASSERT_TRUE(found) << found.error().message;
    const CatalogueEntry& entry = **found;
    EXPECT_EQ(entry.kind, "qwen-tts");
    EXPECT_EQ(entry.total_bytes() / 1000000, size) << repository;
    std::vector<std::string> paths;
    for (const CatalogueGroup& group : entry.groups)
      for (const CatalogueFile& file : group.files) {
        if (file.text) continue;
        const auto reference = parse_reference(expand_name(group.sources.at(0).url, file.name));
        ASSERT_TRUE(reference) << reference.error().message;
        EXPECT_EQ(reference->repository, place);
        EXPECT_EQ(reference->path, group.path_of(file));
        paths.push_back(reference->path);
      }
    EXPECT_THAT(paths, ::testing::UnorderedElementsAre(
                           "config.json", "generation_config.json", "vocab.json", "merges.txt", "tokenizer_config.json",
                           "model.safetensors", "speech_tokenizer/config.json", "speech_tokenizer/model.safetensors"));
  }
}

}  // namespace
}  // namespace syrinx
