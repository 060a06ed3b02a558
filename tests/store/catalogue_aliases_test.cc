// Names under which other programs know the catalogue's models: what `also` takes, and who finds a model by one.
#include "store/catalogue_aliases.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "store/catalogue.h"
#include "store/installed_model.h"
#include "store/model_store.h"
#include "tests/store/files.h"

namespace syrinx {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// A model of one file that we write, so that a pull asks nobody.
std::string model(const std::string& name, const std::string& also) {
  return fmt::format(
      "name = \"{}\"\nkind = \"kind\"\ndescription = \"A {}\"\nlicence = \"MIT\"\n{}\n[[group]]\nrole = "
      "\"model\"\nfiles = "
      "[{{ name = \"{}.txt\", text = \"{}\" }}]\n",
      name, name, also, name, name);
}

Result<Catalogue> catalogue_of(const std::vector<std::string>& texts) {
  std::vector<CatalogueEntry> entries;
  for (size_t i = 0; i < texts.size(); ++i) {
    SYRINX_TRY(auto parsed, parse_catalogue(texts[i], fmt::format("{}.toml", i)));
    entries.insert(entries.end(), parsed.begin(), parsed.end());
  }
  return Catalogue::make(std::move(entries));
}

std::vector<std::string> aliases(const CatalogueEntry& entry) {
  std::vector<std::string> names;
  for (const CatalogueAlias& alias : entry.also) names.push_back(alias.name);
  return names;
}

std::string many(size_t count, size_t bytes) {
  std::string text = "also = [";
  for (size_t i = 0; i < count; ++i) text += fmt::format("\"{:x>{}}\",", i, bytes);
  return text + "]";
}

TEST(Aliases, FindTheirModelInAnyCase) {
  const auto catalogue = catalogue_of(
      {model("bird", "also = [\"Owner/Bird-82M_v1.0\", \"bird:82m\"]"), model("fish", "also = [\"owner/fish\"]")});
  ASSERT_TRUE(catalogue) << catalogue.error().message;
  EXPECT_THAT(aliases(**catalogue->find("bird")), ElementsAre("Owner/Bird-82M_v1.0", "bird:82m"));
  for (const char* const name : {"bird", "Owner/Bird-82M_v1.0", "owner/bird-82m_V1.0", "BIRD:82M"})
    EXPECT_EQ((*catalogue->find(name))->name, "bird") << name;
  EXPECT_EQ((*catalogue->find("owner/fish"))->name, "fish");
  EXPECT_EQ(catalogue->closure("owner/fish")->back()->name, "fish");
  EXPECT_EQ(catalogue->find_alias("bird"), nullptr);
  EXPECT_EQ(catalogue->find("owner/cat").error().code, Code::kNotFound);
  EXPECT_THAT(catalogue->find("Bird").error().message, HasSubstr("did you mean 'bird'?"));
}

TEST(Aliases, NamesOfVariantsAreNoPaths) {
  for (const char* const name : {"kokoro", "pocket-tts:french_24l", "qwen3-tts:0.6b-base", "qwen3-tts:0.6B-Base"})
    EXPECT_FALSE(names_path(name)) << name;
  for (const char* const path : {"a/b", "./a", "a.onnx", "A_b:0.6b", "a.b:c", "hf://o/r/a", "(given)"})
    EXPECT_TRUE(names_path(path)) << path;
}

TEST(Aliases, LimitsAreKept) {
  EXPECT_TRUE(catalogue_of({model("bird", many(16, 128))}));
  const std::string of_characters = "'also' must be names of at most 128 printable";
  for (const auto& [also, complaint] : std::vector<std::pair<std::string, std::string>>{
           {many(17, 1), "'also' must be 1 to 16 names"},
           {many(1, 129), of_characters},
           {"also = []", "'also' must be 1 to 16 names"},
           {"also = \"a\"", "'also' must be 1 to 16 names"},
           {"also = [7]", of_characters},
           {"also = [\"\"]", of_characters},
           {"also = [\"a b\"]", of_characters},
           {"also = [\"a\\u0007\"]", of_characters},
           {"also = [\"\\u00e9\"]", of_characters},
       }) {
    const auto parsed = parse_catalogue(model("bird", also), "bird.toml");
    ASSERT_FALSE(parsed) << also;
    EXPECT_EQ(parsed.error().code, Code::kInvalidArgument);
    EXPECT_THAT(parsed.error().message, HasSubstr("catalogue 'bird.toml', line 5, column ")) << also;
    EXPECT_THAT(parsed.error().message, HasSubstr(complaint)) << also;
  }
}

TEST(Aliases, ANameTwiceIsRefused) {
  const auto twice = catalogue_of({model("bird", "also = [\"x\", \"X\"]")});
  ASSERT_FALSE(twice);
  EXPECT_EQ(twice.error().code, Code::kInvalidArgument);
  EXPECT_EQ(twice.error().message, "catalogue '0.toml', line 5, column 14: 'also' holds 'X', which 'bird' has already");
  const auto of_both = catalogue_of({model("bird", "also = [\"Owner/x\"]"), model("fish", "also = [\"owner/X\"]")});
  EXPECT_EQ(of_both.error().message,
            "catalogue '1.toml', line 5, column 9: 'also' holds 'owner/X', which 'bird' has already");
  for (const char* const taken : {"bird", "Fish"}) {
    const auto named = catalogue_of({model("bird", fmt::format("also = [\"{}\"]", taken)), model("fish", "")});
    EXPECT_EQ(
        named.error().message,
        fmt::format("catalogue '0.toml', line 5, column 9: 'also' holds '{}', which is the name of a model", taken));
  }
}

TEST(Aliases, BelongToOneVariantOfAFamily) {
  const std::string family = model("bird", "default = \"small\"") + "[variants]\n";
  const auto catalogue = catalogue_of(
      {family + "small = { also = [\"owner/bird\", \"owner/{variant}\"] }\nlarge = { also = [\"owner/{size}\"] }\n"
                "[values]\nsize = \"big\"\n"});
  ASSERT_TRUE(catalogue) << catalogue.error().message;
  EXPECT_THAT(aliases(**catalogue->find("bird")), ElementsAre("owner/bird", "owner/small"));
  EXPECT_THAT(aliases(**catalogue->find("bird:large")), ElementsAre("owner/big"));
  EXPECT_EQ((*catalogue->find("owner/big"))->name, "bird:large");
  EXPECT_THAT(catalogue_of({family + "small = { also = [\"Bird\"] }\n"}).error().message,
              HasSubstr("which is the name of a model"));
  EXPECT_THAT(catalogue_of({family + "small = {}\nlarge = { also = [\"x\", \"x\"] }\n"}).error().message,
              HasSubstr("'bird:large' has already"));
  EXPECT_THAT(catalogue_of({family + "small = { also = \"x\" }\n"}).error().message,
              HasSubstr("'also' must be 1 to 16 names"));
  EXPECT_THAT(
      catalogue_of({model("bird", "default = \"small\"\nalso = [\"x\"]") + "[variants]\nsmall = {}\n"}).error().message,
      HasSubstr("line 6, column 8: 'also' belongs to a variant"));
  EXPECT_FALSE(catalogue_of({family + "small = {}\n[values]\nalso = [\"x\"]\n"}));
}

// The built-in catalogue's, as other programs write them.
TEST(Aliases, OtherProgramsNamesAreKnown) {
  for (const auto& [alias, name] : std::vector<std::pair<const char*, const char*>>{
           {"hexgrad/Kokoro-82M", "kokoro"},
           {"Kokoro-82M", "kokoro"},
           {"speaches-ai/Kokoro-82M-v1.0-ONNX-int8", "kokoro"},
           {"onnx-community/Kokoro-82M-v1.0-ONNX", "kokoro"},
           {"openai/whisper-base", "whisper-base"},
           {"systran/faster-whisper-base", "whisper-base"},
           {"base", "whisper-base"},
           {"HuggingFaceTB/SmolLM2-135M-Instruct", "smollm2"},
           {"smollm2:135m", "smollm2"},
           {"snakers4/silero-vad", "silero-vad"},
           {"kyutai/pocket-tts", "pocket-tts:english"},
       }) {
    EXPECT_EQ(catalogue_name(alias), name);
  }
  for (const char* const name : {"kokoro", "pocket-tts", "pocket-tts:french", "openai/whisper-large-v3", "", "./base"})
    EXPECT_EQ(catalogue_name(name), name);
  EXPECT_THAT(catalogue_aliases("kokoro"), Contains("hexgrad/Kokoro-82M"));
  EXPECT_THAT(catalogue_aliases("pocket-tts"), ElementsAre("kyutai/pocket-tts"));
  EXPECT_THAT(catalogue_aliases("pocket-tts:english"), ElementsAre("kyutai/pocket-tts"));
  for (const char* const name : {"pocket-tts:french", "hexgrad/Kokoro-82M", "none", ""})
    EXPECT_THAT(catalogue_aliases(name), IsEmpty()) << name;
  for (const char* const name : {"kokoro", "whisper-base", "smollm2", "silero-vad"})
    for (const std::string& alias : catalogue_aliases(name)) EXPECT_EQ(catalogue_name(alias), name);
}

TEST(Aliases, PathsAndInstalledModelsComeFirst) {
  const testing::Folder folder;
  const std::string models = folder / "models";
  EXPECT_EQ(resolved_name("Base", models), "whisper-base");
  std::filesystem::create_directories(models + "/base");
  EXPECT_EQ(resolved_name("base", models), "base");
  EXPECT_EQ(resolved_name(models + "/base", models), models + "/base");
  const std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::current_path(folder.path());
  EXPECT_EQ(resolved_name("hexgrad/Kokoro-82M", models), "kokoro");
  std::filesystem::create_directories("hexgrad/Kokoro-82M");
  EXPECT_EQ(resolved_name("hexgrad/Kokoro-82M", models), "hexgrad/Kokoro-82M");
  std::filesystem::current_path(before);
}

TEST(Aliases, ModelsArePulledAndRemovedByThem) {
  const testing::Folder folder;
  const auto open = [&folder](const std::string& text) {
    return ModelStore(UserPaths{folder / "data", folder / "cache"}, *catalogue_of({text}));
  };
  ModelStore store = open(model("bird", "also = [\"Owner/Bird\", \"fish\"]"));
  EXPECT_THAT(store.find("owner/bird").error().message, HasSubstr("'owner/bird' is not installed"));
  const Status pulled = store.pull("owner/bird", {});
  ASSERT_TRUE(pulled) << pulled.error().message;
  EXPECT_EQ(testing::read_text(folder / "data/models/bird/bird.txt"), "bird");
  EXPECT_EQ(store.find("Owner/Bird")->name, "bird");
  EXPECT_EQ(store.list().size(), 1u);
  EXPECT_TRUE(store.remove("OWNER/BIRD"));
  EXPECT_FALSE(testing::exists(folder / "data/models/bird"));
  EXPECT_EQ(store.remove("owner/bird").error().code, Code::kNotFound);
  EXPECT_EQ(store.remove("owner/cat").error().code, Code::kInvalidArgument);

  // "fish" of another catalogue is itself, and its removal leaves the bird's packed files.
  ASSERT_TRUE(store.pull("fish", {}));
  ASSERT_TRUE(open(model("fish", "")).pull("fish", {}));
  testing::write_text(folder / "cache/packed/bird/a", "packed");
  EXPECT_EQ(store.find("fish")->name, "fish");
  EXPECT_TRUE(store.remove("fish"));
  EXPECT_FALSE(testing::exists(folder / "data/models/fish"));
  EXPECT_TRUE(testing::exists(folder / "data/models/bird/bird.txt"));
  EXPECT_TRUE(testing::exists(folder / "cache/packed/bird/a"));
}

}  // namespace
}  // namespace syrinx
