#include "models/llama/tokenizer.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/json.h"
#include "temp_folder.h"

namespace syrinx::llama {
namespace {

namespace fs = std::filesystem;

const std::string kFolder = std::string(SYRINX_TEST_DATA) + "/llama/";
const std::string kWeights = "/model.safetensors";  // need not be there

std::string read(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

void write(const fs::path& path, const std::string& text) { std::ofstream(path, std::ios::binary) << text; }

Tokenizer good(const std::string& path) {
  auto made = Tokenizer::load(path);
  EXPECT_TRUE(made.has_value()) << made.error().message;
  return *std::move(made);
}

void expect_error(const Result<Tokenizer>& made, Code code, const std::string& says) {
  ASSERT_FALSE(made.has_value()) << says;
  EXPECT_EQ(made.error().code, code) << made.error().message;
  EXPECT_NE(made.error().message.find(says), std::string::npos) << made.error().message;
}

// The folder of a model, in which a test changes what it likes.
class FolderTokenizer : public testing::Test {
 protected:
  FolderTokenizer() {
    for (const char* const name : {"tokenizer.json", "tokenizer_config.json", "generation_config.json"})
      fs::copy_file(kFolder + "chat_qwen2/" + name, place_ / name);
  }
  std::string weights() const { return place_.string() + kWeights; }

  const TempFolder folder_;
  const fs::path place_{folder_.path()};
};

// Ids of transformers' apply_chat_template().
TEST(Tokenizer, ConversationsAreThoseOfTransformers) {
  for (const auto& [name, path] :
       {std::pair("chat_smollm", "/chat_smollm.gguf"), std::pair("chat_qwen2", "/model.safetensors")}) {
    const Tokenizer tokenizer = good(kFolder + name + path);
    const auto rows = parse_json(read(kFolder + name + "/expected.json"), "expected.json");
    ASSERT_TRUE(rows.has_value());
    ASSERT_EQ(rows->array()->size(), 3u);
    for (const Json& row : *rows->array()) {
      std::vector<text::ChatMessage> messages;
      for (const Json& message : *row.find("messages")->array())
        messages.push_back(
            {*text::parse_chat_role(*message.find("role")->string()), *message.find("content")->string()});
      std::vector<int32_t> want;
      for (const Json& id : *row.find("ids")->array()) want.push_back(static_cast<int32_t>(*id.whole()));
      EXPECT_EQ(*tokenizer.encode(messages, ""), want) << name;
      const auto opening = tokenizer.encode_opening(messages.front(), "");
      ASSERT_TRUE(opening.has_value());
      EXPECT_EQ(opening->empty(), messages.front().role != text::ChatRole::kSystem);
      EXPECT_TRUE(std::equal(opening->begin(), opening->end(), want.begin())) << name;
    }
    EXPECT_TRUE(tokenizer.ends(*tokenizer.bpe().find_special("<|im_end|>")));
    EXPECT_FALSE(tokenizer.ends(*tokenizer.bpe().find_special("<|im_start|>")));
    EXPECT_FALSE(tokenizer.ends(-1));
  }
}

TEST_F(FolderTokenizer, TemplateMayLieByItself) {
  const std::string jinja = read(kFolder + "chat/qwen2_5.jinja");
  write(place_ / "chat_template.jinja", jinja);
  write(place_ / "tokenizer_config.json", "{}");
  EXPECT_EQ(good(weights()).chat().family(), "ChatML");
  fs::remove(place_ / "chat_template.jinja");
  expect_error(Tokenizer::load(weights()), Code::kUnsupported, "has no chat template");
  Json named, config;
  named.set("name", "default");
  named.set("template", jinja);
  config.set("chat_template", Json::Array{named});
  write(place_ / "tokenizer_config.json", config.dump());
  EXPECT_EQ(good(weights()).chat().family(), "ChatML");
}

TEST_F(FolderTokenizer, UnknownTemplateIsRefused) {
  write(place_ / "chat_template.jinja", "{% for m in messages %}[INST]{{ m.content }}[/INST]{% endfor %}");
  expect_error(Tokenizer::load(weights()), Code::kUnsupported, "Mistral");
  write(place_ / "chat_template.jinja", std::string(1 << 20, ' '));
  expect_error(Tokenizer::load(weights()), Code::kLimitExceeded, "chat_template.jinja");
  write(place_ / "chat_template.jinja", read(kFolder + "chat/llama3.jinja"));
  expect_error(Tokenizer::load(weights()), Code::kDataLoss, "which its vocabulary does not have");
}

TEST_F(FolderTokenizer, SamplingIsTheGenerationConfigs) {
  EXPECT_EQ(good(weights()).sampling()->temperature, 0.5f);
  write(place_ / "generation_config.json", R"({"do_sample": false, "eos_token_id": 700})");
  const Tokenizer plain = good(weights());
  EXPECT_EQ(plain.sampling()->temperature, 0.7f);  // the template's maker
  EXPECT_TRUE(plain.ends(700));
  write(place_ / "generation_config.json",
        R"({"do_sample": true, "temperature": -3, "eos_token_id": [-1, 1e99, "x", 699]})");
  const Tokenizer odd = good(weights());
  EXPECT_EQ(odd.sampling()->temperature, 0.7f);
  EXPECT_TRUE(odd.ends(699));
  write(place_ / "generation_config.json", R"({"do_sample": true, "temperature": 1, "top_k": 1e30})");
  EXPECT_EQ(good(weights()).sampling()->temperature, 0.7f);
}

TEST_F(FolderTokenizer, MissingVocabularyIsNamed) {
  fs::remove(place_ / "tokenizer.json");
  expect_error(Tokenizer::load(weights()), Code::kNotFound, "tokenizer.json' is not there");
}

// The same bytes, another name in place of one of the file's.
std::string edited(std::string bytes, const std::string& from, const std::string& to) {
  const size_t at = bytes.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  if (at != std::string::npos) bytes.replace(at, from.size(), to);
  return bytes;
}

TEST(Tokenizer, UnknownGgufVocabularyIsRefusedByName) {
  const std::string bytes = read(kFolder + "chat_smollm/chat_smollm.gguf");
  const auto parsed = [](const std::string& text) {
    auto file = GgufFile::parse(std::as_bytes(std::span(text)), "file");
    EXPECT_TRUE(file.has_value());
    return Tokenizer::read_gguf(*file, "file");
  };
  EXPECT_TRUE(parsed(bytes).has_value());
  expect_error(parsed(edited(bytes, "smollm", "tekken")), Code::kUnsupported,
               "the pre-tokenizer 'tekken', which is not known here; known are gpt-2, smollm");
  expect_error(parsed(edited(bytes, "gpt2", "bert")), Code::kUnsupported, "of the kind 'bert'");
  expect_error(parsed(edited(bytes, "tokenizer.chat_template", "tokenizer.chat_tempest0")), Code::kUnsupported,
               "has no chat template");
}

}  // namespace
}  // namespace syrinx::llama
