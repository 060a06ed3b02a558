// The catalogue's family pocket-tts: every published configuration is one that we can read, with the numbers of the
// specification's tables (pocket-tts.md, sections 1.1, 1.2, 5.4 and 11.2).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "models/pocket_tts/config_file.h"
#include "store/catalogue.h"
#include "store/checkpoint_reference.h"

namespace syrinx {
namespace {

using pocket::HeadType;
using pocket::TokenizerKind;
using ::testing::HasSubstr;

struct Row {
  size_t layers = 6;
  HeadType head = HeadType::kLsd;
  size_t width = 1024, inner = 32;
  const char* gated = "db04f0e6";
  const char* open = "a7056f50";
  const char* tokenizer = "00eac05e";
  const char* voice = "alba";
};

std::map<std::string, Row> table() {
  constexpr HeadType kDrifting = HeadType::kDrifting, kLsd = HeadType::kLsd, kPointwise = HeadType::kPointwise;
  std::map<std::string, Row> rows = {
      {"english", {}},
      {"english_2026-10", {}},
      {"english_2026-09", {6, kLsd, 1024, 32, "983151f1", "e7205b6e"}},
      {"english_2026-09_2", {6, kLsd, 1024, 32, "7f364c05", "575d1437"}},
      {"english_2026-09_24l", {24, kLsd, 1024, 32, "983151f1", "e7205b6e"}},
      {"english_2026-04", {6, kLsd, 1024, 32, "19f95fe2", "d29db797"}},
      {"english_2026-04_24l", {24, kLsd, 1024, 32, "49252265", "e81d79e8"}},
      {"english_2026-01", {6, kLsd, 1024, 512, "39592ff2", "d29db797"}},
      {"english_drifting_26-09", {6, kDrifting, 1024, 32, "75cfe24e", "a5ce31f3"}},
  };
  for (const char* const tuned : {"", "_refl"}) {
    rows[fmt::format("english_18m{}_2026-10", tuned)] = {8, kDrifting, 512, 32, "db04f0e6", "a7056f50", "08ffc587"};
    rows[fmt::format("english_7m{}_2026-10", tuned)] = {8, kDrifting, 224, 32, "db04f0e6", "a7056f50", "08ffc587"};
    rows[fmt::format("english_2m{}_2026-10", tuned)] = {8, kPointwise, 112, 32, "db04f0e6", "a7056f50", "08ffc587"};
  }
  const std::map<std::string, const char*> voices = {{"french", "estelle"},   {"german", "juergen"},
                                                     {"italian", "giovanni"}, {"portuguese", "rafael"},
                                                     {"spanish", "lola"},     {"dutch", "daan"}};
  for (const auto& [language, voice] : voices) {
    const char* const tokenizer = language == "french" ? "8843db76" : "4e1e0a3e";
    rows[language] = {6, kLsd, 1024, 32, "3e82814a", "1e08e6a2", tokenizer, voice};
    const bool late = language != "french" && language != "italian";
    rows[language + "_24l"] = {
        24, kLsd, 1024, 32, late ? "2dd944b0" : "3e82814a", late ? "4e1e0a3e" : "1e08e6a2", tokenizer, voice};
  }
  return rows;
}

const CatalogueGroup& group_of(const CatalogueEntry& entry, std::string_view role, CloningChoice choice) {
  for (const auto& group : entry.groups)
    if (group.role == role && group.choice == choice) return group;
  ADD_FAILURE() << entry.name << " has no group " << role;
  return entry.groups.front();
}

CheckpointReference source_of(const CatalogueGroup& group) {
  return *parse_reference(expand_name(group.sources.at(0).url, group.files.at(0).name));
}

class PocketCatalogue : public ::testing::Test {
 protected:
  PocketCatalogue() {
    auto catalogue = Catalogue::built_in();
    if (!catalogue) ADD_FAILURE() << catalogue.error().message;
    if (catalogue) catalogue_ = std::move(*catalogue);
  }
  Catalogue catalogue_;
};

TEST_F(PocketCatalogue, HasEveryPublishedConfiguration) {
  std::set<std::string> names, expected;
  for (const auto& [name, row] : table()) expected.insert("pocket-tts:" + name);
  for (const auto& entry : catalogue_.entries())
    if (entry.kind == "pocket-tts") names.insert(entry.name);
  EXPECT_EQ(names, expected);
  EXPECT_EQ(names.size(), 27u);
  EXPECT_EQ((*catalogue_.find("pocket-tts"))->name, "pocket-tts:english");
  EXPECT_THAT(catalogue_.find("pocket-tts:frensh").error().message, HasSubstr("did you mean 'pocket-tts:french'?"));
}

TEST_F(PocketCatalogue, ConfigurationsAreReadWithoutAWarning) {
  for (const auto& [name, row] : table()) {
    const CatalogueEntry& entry = **catalogue_.find("pocket-tts:" + name);
    const auto read = pocket::parse_config(*entry.groups[0].files[0].text, name);
    ASSERT_TRUE(read) << read.error().message;
    EXPECT_TRUE(read->warnings.empty()) << name << ": " << read->warnings.front();
    const pocket::Config& config = read->config;
    const bool small = row.width < 1024;
    EXPECT_EQ(config.flow_lm.transformer.layers, row.layers) << name;
    EXPECT_EQ(config.flow_lm.transformer.width, row.width) << name;
    EXPECT_EQ(config.flow_lm.head, row.head) << name;
    EXPECT_EQ(config.flow_lm.bos_before_voice, row.inner == 32) << name;
    EXPECT_EQ(config.flow_lm.text_bins, 4000u) << name;
    EXPECT_EQ(config.flow_lm.tokenizer, small ? TokenizerKind::kSentencePiece : TokenizerKind::kJson) << name;
    EXPECT_EQ(config.flow_lm.tokenizer_path, group_of(entry, "tokenizer", CloningChoice::kBoth).files[0].name) << name;
    EXPECT_EQ(config.flow_lm.project_condition, small) << name;
    EXPECT_EQ(config.mimi.inner_width, row.inner) << name;
    EXPECT_EQ(config.mimi.decoder.width, small ? 128u : 512u) << name;
    EXPECT_EQ(config.mimi.encoder.width, 512u) << name;
    EXPECT_EQ(config.text.pad_short, name == "english_2026-01") << name;
    EXPECT_EQ(config.text.remove_semicolons, name.starts_with("french") || name.starts_with("german")) << name;
    EXPECT_EQ(config.eos_threshold, small ? -1.0f : -4.0f) << name;
    EXPECT_FALSE(config.text.replace.empty()) << name;
    EXPECT_EQ(config.text.replace.front().second, name.starts_with("english") ? (small ? U"," : U"'") : U"") << name;
    EXPECT_EQ(config.weights_path, "model.safetensors") << name;
    EXPECT_EQ(config.weights_path_without_voice_cloning, "model-without-voice-cloning.safetensors") << name;
  }
}

TEST_F(PocketCatalogue, FilesAreThoseOfThePinnedRevisions) {
  for (const auto& [name, row] : table()) {
    const CatalogueEntry& entry = **catalogue_.find("pocket-tts:" + name);
    const auto gated = source_of(group_of(entry, "model", CloningChoice::kWithCloning));
    EXPECT_EQ(gated.repository, "kyutai/pocket-tts");
    EXPECT_EQ(gated.path, "languages/" + name + "/model.safetensors");
    EXPECT_THAT(gated.revision, ::testing::StartsWith(row.gated)) << name;
    const auto open = source_of(group_of(entry, "model", CloningChoice::kWithoutCloning));
    EXPECT_EQ(open.repository, "kyutai/pocket-tts-without-voice-cloning");
    EXPECT_EQ(open.path, gated.path);
    EXPECT_THAT(open.revision, ::testing::StartsWith(row.open)) << name;
    const auto tokenizer = source_of(group_of(entry, "tokenizer", CloningChoice::kBoth));
    EXPECT_EQ(tokenizer.repository, open.repository);
    EXPECT_THAT(tokenizer.revision, ::testing::StartsWith(row.tokenizer)) << name;
    const CatalogueGroup& voices = group_of(entry, "voice", CloningChoice::kBoth);
    EXPECT_EQ(voices.files.size(), 27u);
    EXPECT_EQ(voices.pick, std::vector<std::string>{std::string(row.voice) + ".safetensors"}) << name;
    EXPECT_EQ(source_of(voices).path, "languages/" + name + "/embeddings/cosette.safetensors");
    EXPECT_EQ(source_of(voices).revision, "a7056f505a4a8ca72d8b5fb1440071d6f1a35739");
  }
  // Folders of tokenizers agree with the configuration's name but for these.
  const auto folder = [this](const char* name) {
    return source_of(group_of(**catalogue_.find(name), "tokenizer", CloningChoice::kBoth)).path;
  };
  EXPECT_EQ(folder("pocket-tts:english"), "languages/english/tokenizer.json");
  EXPECT_EQ(folder("pocket-tts:english_2026-10"), "languages/english_2026-09/tokenizer.json");
  EXPECT_EQ(folder("pocket-tts:english_2026-09_2"), "languages/english_2026-09/tokenizer.json");
  EXPECT_EQ(folder("pocket-tts:english_drifting_26-09"), "languages/english_2026-09/tokenizer.json");
  EXPECT_EQ(folder("pocket-tts:english_2026-01"), "tokenizer.json");
  EXPECT_EQ(folder("pocket-tts:english_7m_refl_2026-10"), "languages/english_7m_refl_2026-10/tokenizer.model");
}

TEST_F(PocketCatalogue, LicencesAndSizesAreThere) {
  for (const auto& entry : catalogue_.entries()) {
    if (entry.kind != "pocket-tts") continue;
    EXPECT_THAT(entry.licence, HasSubstr("CC-BY-4.0"));
    EXPECT_THAT(*group_of(entry, "licence", CloningChoice::kBoth).files[0].text, HasSubstr("Kyutai"));
    EXPECT_GT(entry.total_bytes(), 20000000u);
  }
  EXPECT_NEAR(static_cast<double>((*catalogue_.find("pocket-tts"))->total_bytes()), 225e6, 1e6);
}

}  // namespace
}  // namespace syrinx
