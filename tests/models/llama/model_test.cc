// Damaged and foreign checkpoints are refused by one sentence.
#include "models/llama/model.h"

#include <gtest/gtest.h>

#include "gguf_bytes.h"
#include "temp_folder.h"

namespace syrinx::llama {
namespace {

class LlamaModel : public testing::Test {
 protected:
  static std::string data(const std::string& name) { return std::string(SYRINX_TEST_DATA) + "/llama/" + name; }
  static std::string content(const std::string& path) { return read_text(path); }
  void write(const std::string& name, const std::string& bytes) const { write_text(folder_.file(name), bytes); }
  static std::string error_of(const std::string& path, Code code) {
    const auto model = Model::load(path);
    EXPECT_FALSE(model.has_value());
    if (model) return "";
    EXPECT_EQ(model.error().code, code) << model.error().message;
    return model.error().message;
  }
  std::string folder() const { return folder_.path(); }

  const TempFolder folder_;
};

TEST_F(LlamaModel, FolderWithoutModelIsTold) {
  EXPECT_NE(error_of(folder(), Code::kNotFound).find("it needs a .gguf, or model.safetensors"), std::string::npos);
  EXPECT_NE(error_of(folder() + "/none", Code::kNotFound).find("there is no file"), std::string::npos);
  write("a.bin", "x");
  EXPECT_NE(error_of(folder() + "/a.bin", Code::kInvalidArgument).find("not a language model"), std::string::npos);
  write("model.safetensors", content(data("qwen2/model.safetensors")));
  EXPECT_NE(error_of(folder(), Code::kNotFound).find("config.json"), std::string::npos);
  write("a.gguf", "x");
  write("b.gguf", "x");
  EXPECT_NE(error_of(folder(), Code::kInvalidArgument).find("2 files of GGUF"), std::string::npos);
}

TEST_F(LlamaModel, WeightsOfOtherModelAreNamed) {
  write("model.safetensors", content(data("qwen2/model.safetensors")));
  write("config.json", content(data("qwen3/config.json")));
  const std::string message = error_of(folder(), Code::kDataLoss);
  EXPECT_NE(message.find("model.layers.0.self_attn.q_proj.weight has the shape [64, 64], not [128, 64]"),
            std::string::npos)
      << message;
}

TEST_F(LlamaModel, UnknownTensorIsNamed) {
  write("model.safetensors", content(data("llama_biased/model.safetensors")));
  std::string config = content(data("llama_biased/config.json"));
  const std::string bias = "\"attention_bias\": true";
  config.replace(config.find(bias), bias.size(), "\"attention_bias\": false");
  write("config.json", config);
  const std::string message = error_of(folder(), Code::kUnsupported);
  EXPECT_NE(message.find("not known of its architecture"), std::string::npos) << message;
  EXPECT_NE(message.find("self_attn.k_proj.bias"), std::string::npos) << message;
}

// Every hundredth beginning, which ends in the head, in the list of tensors or in a block.
TEST_F(LlamaModel, TruncatedGgufIsRefused) {
  const std::string whole = content(data("smollm_gguf/smollm_gguf.gguf"));
  ASSERT_GT(whole.size(), 1000u);
  for (size_t size = 0; size < whole.size() - 64; size += whole.size() / 100) {
    write("cut.gguf", whole.substr(0, size));
    EXPECT_FALSE(error_of(folder(), Code::kDataLoss).empty()) << size;
  }
}

TEST_F(LlamaModel, ScaleThatIsNoNumberIsNamed) {
  std::string bytes = content(data("smollm_gguf/smollm_gguf.gguf"));
  const auto parsed = GgufFile::parse(std::as_bytes(std::span(bytes)), "a.gguf");
  ASSERT_TRUE(parsed.has_value());
  for (const char* const name : {"token_embd.weight", "blk.1.ffn_down.weight"}) {
    std::string damaged = bytes;
    const auto at = static_cast<size_t>(parsed->find(name)->bytes.data() - std::as_bytes(std::span(bytes)).data());
    damaged.replace(at, 2, "\xff\x7f");  // no number in f16
    write("a.gguf", damaged);
    EXPECT_NE(error_of(folder(), Code::kDataLoss).find(std::string(name) + " holds values that are not finite"),
              std::string::npos);
  }
}

}  // namespace
}  // namespace syrinx::llama
