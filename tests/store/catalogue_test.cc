// The catalogue: what it takes, and every complaint with its line.
#include "store/catalogue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "tests/store/files.h"

namespace syrinx {
namespace {

Result<CatalogueEntry> parse_one(std::string_view text, std::string_view name) {
  SYRINX_TRY(auto entries, parse_catalogue(text, name));
  EXPECT_EQ(entries.size(), 1u);
  return entries.front();
}

using ::testing::HasSubstr;

const std::string kHash(64, 'a');

const std::string kGood = R"(name = "bird"
kind = "kokoro"
description = "A bird"
licence = "MIT"
requires = ["nest"]
[[group]]
role = "model"
files = [{ name = "bird.onnx", size = 5, sha256 = "HASH" }]
[[group.source]]
kind = "url"
url = "https://example.invalid/bird.onnx"
[[group.source]]
kind = "pip"
packages = [
  { name = "bird-1", version = "1.0", size = 9, sha256 = "HASH", member = "bird/part.bin" },
  { name = "bird-2", version = "1.0", size = 9, sha256 = "HASH", member = "bird/part.bin" },
]
[[group]]
role = "voice"
folder = "voices/small"
optional = true
files = [
  { name = "a.bin", size = 1, sha256 = "HASH" },
  { name = "b.bin", size = 2, sha256 = "HASH" },
]
[[group.source]]
kind = "npm"
packages = [{ name = "@owner/bird", version = "1.2.3-rc.1", size = 7, sha256 = "HASH", member = "package/{name}" }]
)";

std::string with_hashes(std::string text) {
  for (size_t at = 0; (at = text.find("HASH", at)) != std::string::npos; at += 64) text.replace(at, 4, kHash);
  return text;
}

// The good catalogue with one piece replaced.
std::string changed(const std::string& piece, const std::string& by) {
  std::string text = kGood;
  const size_t at = text.find(piece);
  if (at == std::string::npos) ADD_FAILURE() << "no '" << piece << "' in the catalogue";
  return with_hashes(text.replace(at, piece.size(), by));
}

TEST(Catalogue, ReadsEverything) {
  const auto entry = parse_one(with_hashes(kGood), "bird.toml");
  ASSERT_TRUE(entry) << entry.error().message;
  EXPECT_EQ(entry->name, "bird");
  EXPECT_EQ(entry->kind, "kokoro");
  EXPECT_EQ(entry->description, "A bird");
  EXPECT_EQ(entry->licence, "MIT");
  EXPECT_EQ(entry->needs, std::vector<std::string>{"nest"});
  EXPECT_EQ(entry->total_bytes(), 8u);
  ASSERT_EQ(entry->groups.size(), 2u);
  const auto& model = entry->groups[0];
  EXPECT_EQ(model.role, "model");
  EXPECT_FALSE(model.optional);
  EXPECT_EQ(model.path_of(model.files[0]), "bird.onnx");
  ASSERT_EQ(model.sources.size(), 2u);
  EXPECT_EQ(model.sources[0].kind, SourceKind::kUrl);
  EXPECT_EQ(model.sources[0].label(), "example.invalid");
  EXPECT_EQ(model.sources[1].kind, SourceKind::kPip);
  EXPECT_EQ(model.sources[1].label(), "pip: bird-1 1.0, bird-2 1.0");
  const auto& voices = entry->groups[1];
  EXPECT_TRUE(voices.optional);
  EXPECT_EQ(voices.path_of(voices.files[1]), "voices/small/b.bin");
  EXPECT_EQ(voices.sources[0].packages[0].name, "@owner/bird");
  EXPECT_EQ(voices.sources[0].packages[0].member, "package/{name}");
  EXPECT_EQ(voices.sources[0].label(), "npm: @owner/bird 1.2.3-rc.1");
}

TEST(Catalogue, LabelsStayShort) {
  CatalogueSource source;
  source.kind = SourceKind::kPip;
  for (int i = 1; i <= 4; ++i) source.packages.push_back(CataloguePackage{fmt::format("p{}", i), "1", 1, kHash, "m"});
  EXPECT_EQ(source.label(), "pip: p1 1, p2 1 and 2 more");
}

TEST(Catalogue, NamesAreExpanded) {
  EXPECT_EQ(expand_name("a/{name}/{name}", "x"), "a/x/x");
  EXPECT_EQ(expand_name("plain", "x"), "plain");
  EXPECT_EQ(expand_name("{name}", "{name}"), "{name}");
  EXPECT_EQ(expand_name("", "x"), "");
}

struct Mistake {
  const char* piece;
  const char* by;
  const char* complaint;
};

class Mistakes : public ::testing::TestWithParam<Mistake> {};

TEST_P(Mistakes, AreNamedWithTheirLine) {
  const auto entry = parse_one(changed(GetParam().piece, GetParam().by), "bird.toml");
  ASSERT_FALSE(entry) << GetParam().by;
  EXPECT_EQ(entry.error().code, Code::kInvalidArgument);
  EXPECT_THAT(entry.error().message, HasSubstr("catalogue 'bird.toml', line "));
  EXPECT_THAT(entry.error().message, HasSubstr(GetParam().complaint));
}

INSTANTIATE_TEST_SUITE_P(
    Each, Mistakes,
    ::testing::Values(
        Mistake{"name = \"bird\"", "name = ", "line 1"},                            // not TOML
        Mistake{"kind = \"kokoro\"", "kind = \"kokoro\"\nkind = \"x\"", "line 3"},  // a key twice
        Mistake{
            "licence = ", "license = ", "line 4, column 1: unknown key 'license' in a catalogue; it may have: name,"},
        Mistake{"name = \"bird\"\n", "", "'name' is missing"},
        Mistake{"name = \"bird\"", "name = \"../bird\"", "'name' must be at most 64"},
        Mistake{"name = \"bird\"", "name = \"\"", "'name' must be"},
        Mistake{"name = \"bird\"", "name = 7", "'name' must be"},
        Mistake{"kind = \"kokoro\"", "kind = \"Kokoro\"", "'kind' must be"},
        Mistake{"description = \"A bird\"", "description = \"A\\nbird\"", "'description' must be one line"},
        Mistake{"description = \"A bird\"", "description = \"\"", "'description' must be one line"},
        Mistake{"licence = \"MIT\"\n", "", "'licence' is missing"},
        Mistake{"requires = [\"nest\"]", "requires = \"nest\"", "'requires' must be at most 16 names"},
        Mistake{"requires = [\"nest\"]", "requires = [\"bird\"]", "names of other models"},
        Mistake{"requires = [\"nest\"]", "requires = [\"nest\", \"nest\"]", "each once"},
        Mistake{"requires = [\"nest\"]", "requires = [1]", "names of other models"},
        Mistake{"role = \"model\"\n", "", "'role' is missing"},
        Mistake{"role = \"model\"", "role = \"model\"\ncolour = 1", "unknown key 'colour' in a group"},
        Mistake{"folder = \"voices/small\"", "folder = \"../voices\"", "'folder' must be a relative folder"},
        Mistake{"folder = \"voices/small\"", "folder = \"/voices\"", "'folder' must be"},
        Mistake{"folder = \"voices/small\"", "folder = \"voices/\"", "'folder' must be"},
        Mistake{"folder = \"voices/small\"", "folder = \".hidden\"", "'folder' must be"},
        Mistake{"optional = true", "optional = 1", "'optional' must be true or false"},
        Mistake{"files = [{ name = \"bird.onnx\", size = 5, sha256 = \"HASH\" }]", "files = []",
                "'files' must be 1 to"},
        Mistake{"files = [{ name = \"bird.onnx\", size = 5, sha256 = \"HASH\" }]", "files = [1]", "tables only"},
        Mistake{"files = [{ name = \"bird.onnx\", size = 5, sha256 = \"HASH\" }]", "files = 1", "'files' must be 1 to"},
        Mistake{"files = [{ name = \"bird.onnx\", size = 5, sha256 = \"HASH\" }]\n", "", "'files' is missing"},
        Mistake{"bird.onnx\", size", "a/bird.onnx\", size", "'name' must be a plain file name"},
        Mistake{"bird.onnx\", size", "bird.part\", size", "'name' must be a plain file name"},
        Mistake{"bird.onnx\", size", ".bird\", size", "'name' must be a plain file name"},
        Mistake{"size = 5,", "", "'size' is missing"},
        Mistake{"size = 5", "size = 0", "'size' must be a number of bytes"},
        Mistake{"size = 5", "size = -5", "'size' must be a number of bytes"},
        Mistake{"size = 5", "size = 5.0", "'size' must be a number of bytes"},
        Mistake{"size = 5", "size = 68719476737", "'size' must be a number of bytes"},
        Mistake{"size = 5, sha256 = \"HASH\"", "size = 5, sha256 = \"abc\"", "64 lower-case"},
        Mistake{"size = 5, sha256 = \"HASH\"", "size = 5, sha256 = \"HASHA\"", "64 lower-case"},
        Mistake{"size = 5, sha256 = \"HASH\"", "size = 5", "'sha256' is missing"},
        Mistake{"size = 5", "size = 5, colour = 1", "unknown key 'colour' in a file"},
        Mistake{"name = \"b.bin\"", "name = \"a.bin\"", "'voices/small/a.bin' is listed twice"},
        Mistake{"kind = \"url\"", "kind = \"ftp\"", "'kind' must be \"url\", \"hub\", \"pip\" or \"npm\""},
        Mistake{"kind = \"url\"", "kind = \"url\"\npackages = []", "unknown key 'packages' in a url source"},
        Mistake{"kind = \"pip\"", "kind = \"pip\"\nurl = \"https://a\"", "unknown key 'url' in a package source"},
        Mistake{"https://example.invalid/bird.onnx", "ftp://example.invalid/", "'url' must be an address"},
        Mistake{"https://example.invalid/bird.onnx", "https://", "'url' must be an address"},
        Mistake{"https://example.invalid/bird.onnx", "https://a b", "'url' must be an address"},
        Mistake{"name = \"bird-1\"", "name = \"--index\"", "'name' must be the name of a package"},
        Mistake{"name = \"bird-1\"", "name = \"a b\"", "'name' must be the name of a package"},
        Mistake{"name = \"bird-1\"", "name = \"a/b/c\"", "'name' must be the name of a package"},
        Mistake{"name = \"bird-1\"", "name = \"@\"", "'name' must be the name of a package"},
        Mistake{"version = \"1.0\"", "version = \">=1\"", "'version' must be one exact version"},
        Mistake{"member = \"bird/part.bin\"", "member = \"\"", "'member' must be a path"},
        Mistake{"member = \"bird/part.bin\"", "colour = 1", "unknown key 'colour' in a package"},
        Mistake{"member = \"package/{name}\"", "member = \"package/a\"", "must contain {name}"},
        Mistake{"kind = \"npm\"\n", "kind = \"url\"\nurl = \"https://a/b\"\n#", "must contain {name}"}));

// U+FEBF as the first character made toml++ 3.3.0 undefined; a fuzzer found it.
TEST(Catalogue, OnlyAsciiIsTaken) {
  const auto entry = parse_one("# one\n\xef\xba\xbf", "bird.toml");
  ASSERT_FALSE(entry);
  EXPECT_THAT(entry.error().message, HasSubstr("line 2: a byte that is not ASCII; write \\uXXXX"));
  const auto escaped = parse_one(changed("A bird", "Un \\u00E9tourneau"), "bird.toml");
  ASSERT_TRUE(escaped);
  EXPECT_EQ(escaped->description, "Un \u00E9tourneau");
}

TEST(Catalogue, LimitsAreKept) {
  const auto large = parse_one(std::string(kMaxCatalogueBytes + 1, '#'), "large.toml");
  ASSERT_FALSE(large);
  EXPECT_EQ(large.error().code, Code::kLimitExceeded);
  std::string many = "[";
  for (int i = 0; i < 257; ++i) many += fmt::format("{{name=\"f{}\",size=1,sha256=\"{}\"}},", i, kHash);
  const auto files =
      parse_one(changed("[{ name = \"bird.onnx\", size = 5, sha256 = \"HASH\" }]", many + "]"), "bird.toml");
  ASSERT_FALSE(files);
  EXPECT_THAT(files.error().message, HasSubstr("1 to 256"));
  const auto long_text = parse_one(changed("A bird", std::string(3000, 'x')), "bird.toml");
  EXPECT_FALSE(long_text);
  const auto deep = parse_one("a=" + std::string(100000, '['), "deep.toml");
  EXPECT_FALSE(deep);
}

CatalogueEntry entry(const std::string& name, const std::vector<std::string>& needs) {
  CatalogueEntry made;
  made.name = name;
  made.needs = needs;
  return made;
}

// 128 variants of a text of 64 KB, times as many as fit.
TEST(Catalogue, AFamilysTextsTogetherHaveALimit) {
  const auto family = [](size_t variants) {
    std::string text =
        "name = \"x\"\nkind = \"k\"\ndescription = \"d\"\nlicence = \"l\"\ndefault = \"v0\"\n[[group]]\nrole = "
        "\"r\"\nfiles = "
        "[";
    for (int file = 0; file < 4; ++file) text += fmt::format("{{ name = \"f{}\", text = \"{{long}}\" }},", file);
    text += "]\n[variants]\n";
    for (size_t i = 0; i < variants; ++i) text += fmt::format("v{} = {{ a = \"b\" }}\n", i);
    return text + "[values]\nlong = \"" + std::string(60000, 'y') + "\"\n";
  };
  const auto fits = parse_catalogue(family(60), "x.toml");
  EXPECT_TRUE(fits) << fits.error().message;
  const auto refused = parse_catalogue(family(100), "x.toml");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kInvalidArgument);
  EXPECT_THAT(refused.error().message, HasSubstr("together are longer than 16777216 bytes"));
}

// Values of nothing but values grow no text, and take time: 4032 of them a text.
TEST(Catalogue, AFamilysValuesTogetherHaveALimit) {
  const auto many = [](const char* key) {
    std::string text;
    for (int i = 0; i < 63; ++i) text += key;
    return text;
  };
  const auto family = [&](size_t variants) {
    std::string text =
        "name = \"x\"\nkind = \"k\"\ndescription = \"d\"\nlicence = \"l\"\ndefault = \"v0\"\n[[group]]\nrole = "
        "\"r\"\nfiles = [{ name = \"f\", text = \"{a}\" }]\n[variants]\n";
    for (size_t i = 0; i < variants; ++i) text += fmt::format("v{} = {{}}\n", i);
    return text + "[values]\na = \"" + many("{b}") + "\"\nb = \"" + many("{c}") + "\"\nc = \"\"\n";
  };
  const auto fits = parse_catalogue(family(60), "x.toml");
  EXPECT_TRUE(fits) << fits.error().message;
  const auto refused = parse_catalogue(family(70), "x.toml");
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("64 bytes for each text and value in them"));
}

TEST(Catalogue, ClosureBeginsWithItsDependencies) {
  const auto catalogue =
      Catalogue::make({entry("a", {"b", "c"}), entry("b", {"d"}), entry("c", {"d"}), entry("d", {}), entry("e", {})});
  ASSERT_TRUE(catalogue);
  const auto order = catalogue->closure("a");
  ASSERT_TRUE(order);
  std::string names;
  for (const auto* one : *order) names += one->name;
  EXPECT_EQ(names, "dbca");
}

TEST(Catalogue, RefusesTwinsStrangersAndCircles) {
  EXPECT_THAT(Catalogue::make({entry("a", {}), entry("a", {})}).error().message, HasSubstr("'a' twice"));
  EXPECT_THAT(Catalogue::make({entry("a", {"x"})}).error().message, HasSubstr("requires 'x', which is not"));
  EXPECT_THAT(Catalogue::make({entry("a", {"b"}), entry("b", {"a"})}).error().message, HasSubstr("requires itself"));
}

TEST(Catalogue, SuggestsTheNearestName) {
  const auto catalogue = Catalogue::make({entry("kokoro", {}), entry("whisper-base", {})});
  ASSERT_TRUE(catalogue);
  EXPECT_THAT(catalogue->find("kokro").error().message, HasSubstr("did you mean 'kokoro'?"));
  EXPECT_THAT(catalogue->find("piper").error().message, HasSubstr("it has: kokoro, whisper-base"));
  EXPECT_EQ(catalogue->find(std::string(100000, 'x')).error().code, Code::kNotFound);
  EXPECT_EQ(catalogue->closure("piper").error().code, Code::kNotFound);
}

TEST(Catalogue, LoadsFilesAndFolders) {
  const testing::Folder folder;
  testing::write_text(folder / "c/bird.toml", changed("requires = [\"nest\"]\n", ""));
  testing::write_text(folder / "c/notes.txt", "not a catalogue");
  EXPECT_EQ(Catalogue::load(folder / "c")->entries().size(), 1u);
  EXPECT_EQ(Catalogue::load(folder / "c/bird.toml")->entries().size(), 1u);
  EXPECT_EQ(Catalogue::load(folder / "none").error().code, Code::kNotFound);
  std::filesystem::create_directories(folder / "empty");
  EXPECT_EQ(Catalogue::load(folder / "empty").error().code, Code::kNotFound);
  testing::write_text(folder / "c/large.toml", std::string(kMaxCatalogueBytes + 1, '#'));
  EXPECT_EQ(Catalogue::load(folder / "c").error().code, Code::kLimitExceeded);
  testing::write_text(folder / "c/large.toml", "broken");
  EXPECT_THAT(Catalogue::load(folder / "c").error().message, HasSubstr("large.toml"));
}

TEST(Catalogue, TheBuiltInOneHasTheVoiceAndItsLexicon) {
  const auto catalogue = Catalogue::built_in();
  ASSERT_TRUE(catalogue) << catalogue.error().message;
  const auto order = catalogue->closure("kokoro");
  ASSERT_TRUE(order);
  ASSERT_EQ(order->size(), 2u);
  EXPECT_EQ((*order)[0]->name, "english-g2p");
  size_t voices = 0;
  std::set<std::string> roles;
  for (const auto& group : (*order)[1]->groups) {
    roles.insert(group.role);
    if (group.role == "voice") voices = group.files.size();
    for (const auto& file : group.files) {
      EXPECT_TRUE(group.role != "voice" || file.size_bytes == 510u * 256 * 4) << file.name;
    }
  }
  EXPECT_EQ(voices, 54u);
  EXPECT_EQ(roles, (std::set<std::string>{"model", "voice", "licence"}));
}

TEST(Catalogue, TheBuiltInRecogniserBringsVoiceActivity) {
  const auto catalogue = Catalogue::built_in();
  ASSERT_TRUE(catalogue) << catalogue.error().message;
  const auto order = catalogue->closure("whisper-base");
  ASSERT_TRUE(order) << order.error().message;
  ASSERT_EQ(order->size(), 2u);
  EXPECT_EQ((*order)[0]->name, "silero-vad");
  EXPECT_EQ((*order)[0]->kind, "silero");
  EXPECT_EQ((*order)[1]->kind, "whisper");
  std::set<std::string> files;
  for (const auto& group : (*order)[1]->groups)
    for (const auto& file : group.files) files.insert(group.path_of(file));
  EXPECT_EQ(files, (std::set<std::string>{"config.json", "licences/LICENSE", "licences/NOTICE", "model.bin",
                                          "tokenizer.json", "vocabulary.txt"}));
}

TEST(Catalogue, TheBuiltInLanguageModelIsOneFile) {
  const auto catalogue = Catalogue::built_in();
  ASSERT_TRUE(catalogue) << catalogue.error().message;
  const auto order = catalogue->closure("smollm2");
  ASSERT_TRUE(order) << order.error().message;
  ASSERT_EQ(order->size(), 1u);
  EXPECT_EQ((*order)[0]->kind, "llama");
  std::set<std::string> files;
  for (const auto& group : (*order)[0]->groups)
    for (const auto& file : group.files) files.insert(group.path_of(file));
  EXPECT_EQ(files,
            (std::set<std::string>{"SmolLM2-135M-Instruct.Q4_1.gguf", "licences/Apache-2.0.txt", "licences/NOTICE"}));
}

}  // namespace
}  // namespace syrinx
