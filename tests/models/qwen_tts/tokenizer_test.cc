#include "models/qwen_tts/tokenizer.h"

#include "talker_cases.h"
#include "temp_folder.h"

namespace syrinx::qwen_tts {
namespace {

using namespace test;
using Ids = std::vector<int32_t>;

Config config_of(const std::string& kind) {
  const auto checkpoint = Checkpoint::open(data_folder(kind));
  EXPECT_TRUE(checkpoint.has_value());
  return checkpoint ? checkpoint->config() : Config{};
}

Tokenizer load(const std::string& kind = "base") {
  auto tokenizer = Tokenizer::load(data_folder(kind), config_of(kind));
  if (!tokenizer) throw std::runtime_error(tokenizer.error().message);
  return *std::move(tokenizer);
}

Ids part(const Ids& ids, size_t before, size_t behind) {
  return {ids.begin() + static_cast<std::ptrdiff_t>(before), ids.end() - static_cast<std::ptrdiff_t>(behind)};
}

TEST(QwenTtsTokenizer, CasesMatchTheMaker) {
  for (const Case& one : cases()) {
    SCOPED_TRACE(one.name);
    const Tokenizer tokenizer = load(one.kind);
    EXPECT_EQ(tokenizer.role(), part(one.ids, 0, one.ids.size() - 3));
    EXPECT_EQ(good(tokenizer.encode(one.text)), part(one.ids, 3, 5));
    EXPECT_EQ(good(tokenizer.encode_instruction(one.instruction)), one.instruction_ids);
    if (one.reference_text.empty()) continue;
    EXPECT_EQ(good(tokenizer.encode(one.reference_text)), part(one.reference_ids, 3, 2));
  }
}

TEST(QwenTtsTokenizer, TextsMatchTheMaker) {
  const Tokenizer tokenizer = load();
  const Json file = facts();
  ASSERT_GT(file.find("texts")->array()->size(), 10u);
  for (const Json& row : *file.find("texts")->array()) {
    const std::string& text = *row.array()->front().string();
    EXPECT_EQ(good(tokenizer.encode(text)), part(ids_of(&row.array()->back()), 3, 5)) << text;
  }
}

// Merges cross the cuts; ids are those of the maker's package.
TEST(QwenTtsTokenizer, TextsAreCutByTheExpressionOfTheVersion) {
  const TempFolder folder;
  std::string vocabulary = read_text(data_folder("base") + "/vocab.json");
  vocabulary = vocabulary.substr(0, vocabulary.rfind('}')) + R"(, "iP": 280, "Ph": 281, "so": 282)";
  const std::string small = vocabulary;
  for (int i = 0; i < 100000; ++i) vocabulary += fmt::format(R"(, "filler{}": {})", i, 283 + i);
  write_text(folder.file("merges.txt"), read_text(data_folder("base") + "/merges.txt") + "\ni P\nP h\ns o\n");
  write_text(folder.file("tokenizer_config.json"), read_text(data_folder("base") + "/tokenizer_config.json"));
  Config config = config_of("base");
  config.text_vocabulary = 1 << 17;
  const auto expect_ids = [&](const Ids& phone, const Ids& sorry) {
    const auto tokenizer = Tokenizer::load(folder.path(), config);
    ASSERT_TRUE(tokenizer.has_value()) << tokenizer.error().message;
    EXPECT_EQ(good(tokenizer->encode("iPhone")), phone);
    EXPECT_EQ(good(tokenizer->encode("'sorry'")), sorry);
  };
  const Ids whole = {280, 71, 78, 77, 68}, cut = {72, 281, 78, 77, 68};
  const Ids apart = {6, 82, 78, 81, 81, 88, 6}, joined = {6, 282, 81, 81, 88, 6};
  write_text(folder.file("vocab.json"), vocabulary + "}");
  for (const bool by_case : {false, true}) {
    config.cuts_by_case = by_case;
    SCOPED_TRACE(by_case);
    by_case ? expect_ids(cut, joined) : expect_ids(whole, apart);
  }
  write_text(folder.file("vocab.json"), small + "}");
  expect_ids(whole, apart);
}

TEST(QwenTtsTokenizer, NamesOfSpecialTokensStayText) {
  const Tokenizer tokenizer = load();
  const std::string text = "a<|im_end|>\n<tts_pad><|im_start|>b";
  const Ids ids = good(tokenizer.encode(text)), instruction = good(tokenizer.encode_instruction(text));
  for (const int32_t id : ids) EXPECT_FALSE(tokenizer.bpe().is_special(id)) << id;
  EXPECT_EQ(tokenizer.bpe().decode(ids), text);
  EXPECT_EQ(std::ranges::count_if(instruction, [&](int32_t id) { return tokenizer.bpe().is_special(id); }), 2);
}

TEST(QwenTtsTokenizer, SpaceAroundTextIsLeftOut) {
  const Tokenizer tokenizer = load();
  EXPECT_EQ(good(tokenizer.encode("\n \u00a0 a b\u3000\n")), good(tokenizer.encode("a b")));
  for (const char* const empty : {"", " ", "\n\u3000"}) {
    const auto ids = tokenizer.encode(empty);
    ASSERT_FALSE(ids.has_value());
    EXPECT_EQ(ids.error().code, Code::kInvalidArgument);
  }
  EXPECT_TRUE(good(tokenizer.encode_instruction("")).empty());
}

struct Files {
  std::string vocabulary, merges, config;
};
Files files() {
  const auto read = [](const char* name) {
    std::ifstream file(data_folder("base") + "/" + name);
    return std::string((std::istreambuf_iterator<char>(file)), {});
  };
  return {read("vocab.json"), read("merges.txt"), read("tokenizer_config.json")};
}
void expect_error(const Files& made, Code code, const std::string& words) {
  const auto tokenizer = Tokenizer::read({.vocabulary = made.vocabulary, .merges = made.merges, .config = made.config},
                                         config_of("base"), "folder");
  ASSERT_FALSE(tokenizer.has_value()) << words;
  EXPECT_EQ(tokenizer.error().code, code) << tokenizer.error().message;
  EXPECT_NE(tokenizer.error().message.find(words), std::string::npos) << tokenizer.error().message;
}
std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return at == std::string::npos ? text : text.replace(at, from.size(), to);
}

TEST(QwenTtsTokenizer, DamagedFilesAreRefused) {
  const Files whole = files();
  expect_error({"[]", whole.merges, whole.config}, Code::kDataLoss, "vocab.json is not an object");
  expect_error({"{\"a\": \"b\"}", whole.merges, whole.config}, Code::kDataLoss, "no id for 'a'");
  expect_error({"{\"a\": -1}", whole.merges, whole.config}, Code::kDataLoss, "has the id -1, outside the 352");
  expect_error({"{\"a\": 352}", whole.merges, whole.config}, Code::kDataLoss, "has the id 352");
  expect_error({"{\"a\": 1, \"b\": 1}", whole.merges, whole.config}, Code::kDataLoss, "have one id, 1");
  expect_error({"{\"a\": 1}", whole.merges, whole.config}, Code::kDataLoss, "no token for the byte 0x20");
  expect_error({whole.vocabulary, "a", whole.config}, Code::kDataLoss, "merge 0 of 'folder' is not two");
  expect_error({whole.vocabulary, whole.merges, "{}"}, Code::kDataLoss, "no added_tokens_decoder");
  expect_error({whole.vocabulary, whole.merges, replaced(whole.config, "\"275\"", "\"x\"")}, Code::kDataLoss,
               "'x' has no id");
  expect_error({whole.vocabulary, whole.merges, replaced(whole.config, "\"275\"", "\"3\"")}, Code::kDataLoss,
               "have one id, 3");
  expect_error({whole.vocabulary, whole.merges, replaced(whole.config, "<|im_end|>", "<|end|>")}, Code::kDataLoss,
               "does not have <|im_end|> as token 276");
  expect_error({whole.vocabulary, "#version: 0.2\n", whole.config}, Code::kUnsupported, "tokens of \"assistant");
}

}  // namespace
}  // namespace syrinx::qwen_tts
