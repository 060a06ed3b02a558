// The small checkpoint in Whisper's other layouts: English alone, large-v3's 128 mels and hundred languages, and
// turbo's, which has three layers in the encoder and one in the decoder besides.  What has grown is made here as
// tools/checkpoints/whisper.py makes it (sizes tiny-english, tiny-large-v3 and tiny-turbo), and the vocabulary is that
// of tools/reference/whisper_layouts.py, whose references layouts.json and layouts.safetensors hold.
#pragma once

#include <deque>
#include <filesystem>
#include <string>
#include <vector>

#include "../../base/temp_folder.h"
#include "../../tensor/ct2_bytes.h"
#include "base/mapped_file.h"
#include "small.h"
#include "tensor/ct2_file.h"
#include "tensor/safetensors.h"

namespace syrinx::test {

inline const Json& layout(const std::string& name) {
  static const auto kFile = parse_json(read_small("layouts.json"), "layouts.json");
  EXPECT_TRUE(kFile.has_value());
  return *kFile->find(name);
}

// Text tokens as GPT-2's alphabet spells them: those of the small vocabulary, words that nobody says up to the id
// 50255, and in the multilingual ones an empty one.
inline std::vector<std::string> layout_texts(bool multilingual) {
  std::vector<std::string> lines;
  const std::string small = read_small("vocabulary.txt");
  for (size_t begin = 0; lines.size() < 500; begin = small.find('\n', begin) + 1)
    lines.push_back(small.substr(begin, small.find('\n', begin) - begin));
  for (int word = 0; lines.size() < 50256; ++word) {
    std::string letters(4, 'a');
    for (int rest = word, at = 3; at >= 0; --at, rest /= 26)
      letters[static_cast<size_t>(at)] = static_cast<char>('a' + rest % 26);
    lines.push_back("ĠQ" + letters);
  }
  if (multilingual) lines.emplace_back();
  return lines;
}

inline std::vector<std::string> layout_specials(const Json& told) {
  std::vector<std::string> names = {"<|endoftext|>", "<|startoftranscript|>"};
  for (const Json& language : list(told, "languages")) names.push_back("<|" + *language.string() + "|>");
  const char* const silence = truth(told, "multilingual") ? "<|nospeech|>" : "<|nocaptions|>";  // as published
  for (const char* const name :
       {"<|translate|>", "<|transcribe|>", "<|startoflm|>", "<|startofprev|>", silence, "<|notimestamps|>"})
    names.emplace_back(name);
  return names;
}

inline std::vector<std::string> layout_times() {
  std::vector<std::string> names;
  for (int i = 0; i <= 1500; ++i) names.push_back(fmt::format("<|{:.2f}|>", i * 0.02));
  return names;
}

inline void write_layout_lines(const Json& told, const std::string& folder) {
  std::string text;
  for (const auto& part : {layout_texts(truth(told, "multilingual")), layout_specials(told), layout_times()})
    for (const std::string& line : part) text += line + "\n";
  write_text(folder + "/vocabulary.txt", text);
}

// As large-v3 is published: the times are there too.
inline void write_layout_json(const Json& told, const std::string& folder) {
  std::string vocab, added;
  int64_t id = 0;
  for (const std::string& text : layout_texts(truth(told, "multilingual")))
    vocab += fmt::format("{}{}:{}", vocab.empty() ? "" : ",", Json(text).dump(), id++);
  for (const auto& part : {layout_specials(told), layout_times()})
    for (const std::string& name : part)
      added += fmt::format("{}{{\"id\":{},\"content\":\"{}\"}}", added.empty() ? "" : ",", id++, name);
  write_text(folder + "/tokenizer.json",
             fmt::format(R"({{"added_tokens":[{}],"pre_tokenizer":{{"type":"ByteLevel","add_prefix_space":false}},)"
                         R"("decoder":{{"type":"ByteLevel"}},"model":{{"type":"BPE","vocab":{{{}}}}}}})",
                         added, vocab));
}

inline std::string layer_prefix(bool ct2, const char* side, size_t layer) {
  return ct2 ? fmt::format("{}/layer_{}/", side, layer) : fmt::format("model.{}.layers.{}.", side, layer);
}

// With so many layers on that side: further ones have the numbers of the first by 3/4, which `made` keeps.
inline void set_depth(std::vector<TensorRef>& tensors, bool ct2, const char* side, size_t layers,
                      std::deque<std::vector<float>>& made) {
  constexpr size_t kSmallLayers = 2;
  const std::string first = layer_prefix(ct2, side, 0);
  std::vector<TensorRef> more;
  for (size_t layer = kSmallLayers; layer < layers; ++layer) {
    for (const TensorRef& tensor : tensors) {
      if (!tensor.name.starts_with(first)) continue;
      std::vector<float>& values = made.emplace_back(to_f32(tensor.bytes, tensor.dtype));
      for (float& value : values) value *= 0.75f;
      more.push_back({layer_prefix(ct2, side, layer) + tensor.name.substr(first.size()), DType::kF32, tensor.dims,
                      std::as_bytes(std::span(values))});
    }
  }
  for (size_t layer = layers; layer < kSmallLayers; ++layer)
    std::erase_if(tensors, [prefix = layer_prefix(ct2, side, layer)](const TensorRef& tensor) {
      return tensor.name.starts_with(prefix);
    });
  tensors.insert(tensors.end(), more.begin(), more.end());
}

// The weights with their config; no vocabulary.
inline void write_layout_weights(const Json& told, bool ct2, const std::string& folder) {
  const std::filesystem::path source =
      std::filesystem::path(SYRINX_TEST_DATA) / "whisper" / (ct2 ? "ct2" : "transformers");
  const std::string file_name = ct2 ? "model.bin" : "model.safetensors";
  const auto file = MappedFile::open((source / file_name).string());
  ASSERT_TRUE(file.has_value()) << file.error().message;
  std::vector<TensorRef> tensors;
  if (ct2)
    tensors = Ct2File::parse(file->bytes(), file_name)->variables();
  else
    tensors = Safetensors::parse(file->bytes(), file_name)->tensors();
  const size_t vocabulary = whole(told, "vocabulary"), mels = whole(told, "mels");
  const std::vector<float> table = Draws(21).floats(vocabulary * 32, -0.87, 0.87);
  const std::vector<float> conv1 = Draws(22).floats(32 * mels * 3, -0.09, 0.09);
  for (TensorRef& tensor : tensors) {
    const std::string& name = tensor.name;
    if (name == "decoder/embeddings/weight" || name == "model.decoder.embed_tokens.weight")
      tensor = {name, DType::kF32, {vocabulary, 32}, std::as_bytes(std::span(table))};
    else if (mels != 80 && (name == "encoder/conv1/weight" || name == "model.encoder.conv1.weight"))
      tensor = {name, DType::kF32, {32, mels, 3}, std::as_bytes(std::span(conv1))};
  }
  std::deque<std::vector<float>> further;
  set_depth(tensors, ct2, "encoder", whole(told, "encoder_layers"), further);
  set_depth(tensors, ct2, "decoder", whole(told, "decoder_layers"), further);
  write_text(folder + "/" + file_name,
             ct2 ? ct2_bytes(tensors, {{"decoder/projection/weight", "decoder/embeddings/weight"}})
                 : write_safetensors(tensors));
  // The small checkpoint aligns by a second layer.
  if (ct2 && whole(told, "decoder_layers") == 1)
    write_text(folder + "/config.json", R"({"alignment_heads":[[0,0],[0,1]]})");
  else
    std::filesystem::copy_file(source / "config.json", folder + "/config.json");
}

}  // namespace syrinx::test
