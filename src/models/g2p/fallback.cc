// Post-norm blocks, learned positions with an offset, unscaled embeddings, erf GELU, one head: the arithmetic of BART.
// Greedy decoding with the keys and values of earlier symbols kept.  D = 128 wide, F = 1024 inside a block.
#include "models/g2p/fallback.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <optional>
#include <vector>

#include "base/mapped_file.h"
#include "models/g2p/flat_json.h"
#include "tensor/npy.h"

namespace syrinx::g2p {
namespace {

constexpr size_t kFirstSymbol = 4;  // pad, begin, end, unknown come before the characters
constexpr size_t kUnknown = 3;
constexpr size_t kMaxWidth = 1024;
constexpr size_t kMaxPositions = 4096;

using Vector = std::vector<float>;

struct Linear {
  size_t in = 0;
  size_t out = 0;
  Vector weight;  // [out, in]
  Vector bias;    // [out]

  Vector operator()(const Vector& x) const {
    Vector y(bias);
    for (size_t o = 0; o < out; ++o) {
      const float* row = weight.data() + o * in;
      std::array<float, 8> sums{};  // independent sums, so that the compiler may use vectors
      size_t i = 0;
      for (; i + 8 <= in; i += 8) {
        for (size_t k = 0; k < 8; ++k) sums[k] += row[i + k] * x[i + k];
      }
      for (; i < in; ++i) sums[0] += row[i] * x[i];
      y[o] += ((sums[0] + sums[4]) + (sums[1] + sums[5])) + ((sums[2] + sums[6]) + (sums[3] + sums[7]));
    }
    return y;
  }
};

struct Norm {
  Vector weight;
  Vector bias;
  float epsilon = 0;

  Vector operator()(Vector x) const {
    double mean = 0;
    double variance = 0;
    for (const float v : x) mean += v;
    mean /= static_cast<double>(x.size());
    for (const float v : x) variance += (v - mean) * (v - mean);
    const double scale = 1 / std::sqrt(variance / static_cast<double>(x.size()) + epsilon);
    for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>((x[i] - mean) * scale) * weight[i] + bias[i];
    return x;
  }
};

struct Attention {
  Linear query, key, value, out;

  // One query against all keys and values seen so far.
  Vector operator()(const Vector& x, const std::vector<Vector>& keys, const std::vector<Vector>& values) const {
    const Vector q = query(x);
    const float scale = 1 / std::sqrt(static_cast<float>(q.size()));
    Vector scores(keys.size());
    for (size_t t = 0; t < keys.size(); ++t) {
      float dot = 0;
      for (size_t i = 0; i < q.size(); ++i) dot += q[i] * keys[t][i];
      scores[t] = dot * scale;
    }
    const float highest = *std::max_element(scores.begin(), scores.end());
    float sum = 0;
    for (float& s : scores) sum += s = std::exp(s - highest);
    Vector mixed(q.size(), 0.0f);
    for (size_t t = 0; t < keys.size(); ++t) {
      for (size_t i = 0; i < mixed.size(); ++i) mixed[i] += scores[t] / sum * values[t][i];
    }
    return out(mixed);
  }
};

struct Feed {
  Linear wide, narrow;
  Norm norm;

  Vector operator()(const Vector& x) const {
    Vector h = wide(x);
    for (float& v : h) v = 0.5f * v * (1 + std::erf(v * 0.70710678f));
    h = narrow(h);
    for (size_t i = 0; i < h.size(); ++i) h[i] += x[i];
    return norm(std::move(h));
  }
};

Vector sum(Vector a, const Vector& b) {
  for (size_t i = 0; i < a.size(); ++i) a[i] += b[i];
  return a;
}

}  // namespace

struct Fallback::Weights {
  size_t width = 0;      // D
  size_t inner = 0;      // F
  size_t symbols = 0;    // rows of `embedding`
  size_t positions = 0;  // longest sequence, begin and end included
  size_t begin = 1;
  size_t end = 2;
  size_t start = 1;
  size_t offset = 2;  // of the first position's row
  float epsilon = 1e-5f;
  Phonemes graphemes;  // index is id; the first four are fillers
  Phonemes phonemes;
  Vector embedding;  // [symbols, D], also the output matrix
  Vector logit_bias;
  Vector encoder_position, decoder_position;  // [offset + positions, D]
  Norm encoder_embedding_norm, decoder_embedding_norm;
  Attention encoder_self, decoder_self, decoder_cross;
  Norm encoder_self_norm, decoder_self_norm, decoder_cross_norm;
  Feed encoder_feed, decoder_feed;

  Status read_meta(const NpzFile& file, const std::string& path);
  Status read_tensors(const NpzFile& file, const std::string& path);
  size_t grapheme_id(char c) const;
  Vector embed(size_t id, size_t position, const Vector& table, const Norm& norm) const;
  std::vector<Vector> encode(std::string_view part) const;
  size_t best_symbol(const Vector& hidden) const;
  Phonemes say_part(std::string_view part) const;
};

namespace {

// Reads f32 tensors of known shapes.
class TensorReader {
 public:
  TensorReader(const NpzFile& file, const std::string& path) : file_(file), path_(path) {}

  Status read(const std::string& name, const std::vector<size_t>& dims, Vector& out) const {
    SYRINX_TRY(const NpyArray array, file_.read(name, size_t{1} << 24));
    if (array.is_text || array.dims != dims) {
      return fail(Code::kDataLoss, "'{}': tensor '{}' does not have the shape [{}]; fetch it again with `syrinx pull`",
                  path_, name, fmt::join(dims, ", "));
    }
    out = array.f32();
    return {};
  }
  Status linear(const std::string& name, size_t out, size_t in, Linear& layer) const {
    layer.in = in;
    layer.out = out;
    SYRINX_TRY_VOID(read(name + ".weight", {out, in}, layer.weight));
    return read(name + ".bias", {out}, layer.bias);
  }
  Status norm(const std::string& name, size_t width, float epsilon, Norm& layer) const {
    layer.epsilon = epsilon;
    SYRINX_TRY_VOID(read(name + ".weight", {width}, layer.weight));
    return read(name + ".bias", {width}, layer.bias);
  }
  Status attention(const std::string& name, size_t width, Attention& layer) const {
    SYRINX_TRY_VOID(linear(name + ".q_proj", width, width, layer.query));
    SYRINX_TRY_VOID(linear(name + ".k_proj", width, width, layer.key));
    SYRINX_TRY_VOID(linear(name + ".v_proj", width, width, layer.value));
    return linear(name + ".out_proj", width, width, layer.out);
  }
  Status feed(const std::string& name, size_t width, size_t inner, float epsilon, Feed& layer) const {
    SYRINX_TRY_VOID(linear(name + ".fc1", inner, width, layer.wide));
    SYRINX_TRY_VOID(linear(name + ".fc2", width, inner, layer.narrow));
    return norm(name + ".final_layer_norm", width, epsilon, layer.norm);
  }

 private:
  const NpzFile& file_;
  const std::string& path_;
};

}  // namespace

Status Fallback::Weights::read_meta(const NpzFile& file, const std::string& path) {
  SYRINX_TRY(const NpyArray meta, file.read("meta_json", size_t{1} << 20));
  const auto unusable = [&](std::string_view what) {
    return fail(Code::kDataLoss, "'{}': {}; fetch it again with `syrinx pull`", path, what);
  };
  if (!meta.is_text || meta.texts.size() != 1) return unusable("its description is not a text");
  size_t heads = 0;
  const auto visit = [&](std::string_view key, std::string_view, std::string_view value, bool is_string) -> Status {
    if (key == "grapheme_chars") graphemes = from_utf8(value);
    if (key == "phoneme_chars") phonemes = from_utf8(value);
    if (is_string) return {};
    const double number = std::strtod(std::string(value).c_str(), nullptr);
    if (key == "layer_norm_eps") {
      epsilon = static_cast<float>(number);
      return {};
    }
    const std::array<std::pair<std::string_view, size_t*>, 8> numbers = {{{"d_model", &width},
                                                                          {"ffn_dim", &inner},
                                                                          {"num_heads", &heads},
                                                                          {"max_position_embeddings", &positions},
                                                                          {"bos_token_id", &begin},
                                                                          {"eos_token_id", &end},
                                                                          {"decoder_start_token_id", &start},
                                                                          {"position_offset", &offset}}};
    for (const auto& [name, field] : numbers) {
      if (key == name)
        *field = number >= 0 && number <= kMaxPositions ? static_cast<size_t>(number) : kMaxPositions + 1;
    }
    return {};
  };
  SYRINX_TRY_VOID(read_flat_json(meta.texts[0], path, visit));
  symbols = std::max(graphemes.size(), phonemes.size());
  const bool plausible = width > 0 && width <= kMaxWidth && inner > 0 && inner <= kMaxPositions && positions > 2 &&
                         positions <= kMaxPositions && offset <= 16 && epsilon > 0 && graphemes.size() > kFirstSymbol;
  if (!plausible || heads != 1) return unusable("the description of the network is not one that we can run");
  return {};
}

Status Fallback::Weights::read_tensors(const NpzFile& file, const std::string& path) {
  const TensorReader reader(file, path);
  SYRINX_TRY(const NpyArray shared, file.read("model.shared.weight", size_t{1} << 24));
  if (shared.dims.size() != 2 || shared.dims[1] != width || shared.dims[0] < symbols || shared.is_text) {
    return fail(Code::kDataLoss, "'{}': tensor 'model.shared.weight' has another shape than [symbols, {}]", path,
                width);
  }
  symbols = shared.dims[0];
  embedding = shared.f32();
  if (std::max({begin, end, start}) >= symbols)
    return fail(Code::kDataLoss, "'{}': a symbol is beyond the table", path);
  SYRINX_TRY_VOID(reader.read("final_logits_bias", {1, symbols}, logit_bias));
  const std::string encoder = "model.encoder.layers.0";
  const std::string decoder = "model.decoder.layers.0";
  SYRINX_TRY_VOID(reader.read("model.encoder.embed_positions.weight", {offset + positions, width}, encoder_position));
  SYRINX_TRY_VOID(reader.read("model.decoder.embed_positions.weight", {offset + positions, width}, decoder_position));
  SYRINX_TRY_VOID(reader.norm("model.encoder.layernorm_embedding", width, epsilon, encoder_embedding_norm));
  SYRINX_TRY_VOID(reader.norm("model.decoder.layernorm_embedding", width, epsilon, decoder_embedding_norm));
  SYRINX_TRY_VOID(reader.attention(encoder + ".self_attn", width, encoder_self));
  SYRINX_TRY_VOID(reader.norm(encoder + ".self_attn_layer_norm", width, epsilon, encoder_self_norm));
  SYRINX_TRY_VOID(reader.feed(encoder, width, inner, epsilon, encoder_feed));
  SYRINX_TRY_VOID(reader.attention(decoder + ".self_attn", width, decoder_self));
  SYRINX_TRY_VOID(reader.norm(decoder + ".self_attn_layer_norm", width, epsilon, decoder_self_norm));
  SYRINX_TRY_VOID(reader.attention(decoder + ".encoder_attn", width, decoder_cross));
  SYRINX_TRY_VOID(reader.norm(decoder + ".encoder_attn_layer_norm", width, epsilon, decoder_cross_norm));
  return reader.feed(decoder, width, inner, epsilon, decoder_feed);
}

size_t Fallback::Weights::grapheme_id(char c) const {
  const size_t id = graphemes.find(static_cast<unsigned char>(c), kFirstSymbol);
  return id == Phonemes::npos ? kUnknown : id;
}

Vector Fallback::Weights::embed(size_t id, size_t position, const Vector& table, const Norm& norm) const {
  Vector x(width);
  for (size_t i = 0; i < width; ++i) x[i] = embedding[id * width + i] + table[(offset + position) * width + i];
  return norm(std::move(x));
}

std::vector<Vector> Fallback::Weights::encode(std::string_view part) const {
  std::vector<Vector> hidden;
  hidden.push_back(embed(begin, 0, encoder_position, encoder_embedding_norm));
  for (const char c : part) {
    hidden.push_back(embed(grapheme_id(c), hidden.size(), encoder_position, encoder_embedding_norm));
  }
  hidden.push_back(embed(end, hidden.size(), encoder_position, encoder_embedding_norm));
  std::vector<Vector> keys;
  std::vector<Vector> values;
  for (const Vector& x : hidden) {
    keys.push_back(encoder_self.key(x));
    values.push_back(encoder_self.value(x));
  }
  for (Vector& x : hidden) x = encoder_feed(encoder_self_norm(sum(encoder_self(x, keys, values), x)));
  return hidden;
}

size_t Fallback::Weights::best_symbol(const Vector& hidden) const {
  size_t best = 0;
  float best_score = 0;
  for (size_t s = 0; s < symbols; ++s) {
    float score = logit_bias[s];
    for (size_t i = 0; i < width; ++i) score += hidden[i] * embedding[s * width + i];
    if (s == 0 || score > best_score) {
      best = s;
      best_score = score;
    }
  }
  return best;
}

Phonemes Fallback::Weights::say_part(std::string_view part) const {
  std::vector<Vector> memory_keys;
  std::vector<Vector> memory_values;
  for (const Vector& x : encode(part)) {
    memory_keys.push_back(decoder_cross.key(x));
    memory_values.push_back(decoder_cross.value(x));
  }
  std::vector<Vector> keys;
  std::vector<Vector> values;
  Phonemes out;
  size_t symbol = start;
  for (size_t position = 0; position + 1 < positions; ++position) {
    Vector x = embed(symbol, position, decoder_position, decoder_embedding_norm);
    keys.push_back(decoder_self.key(x));
    values.push_back(decoder_self.value(x));
    x = decoder_self_norm(sum(decoder_self(x, keys, values), x));
    x = decoder_cross_norm(sum(decoder_cross(x, memory_keys, memory_values), x));
    symbol = best_symbol(decoder_feed(x));
    if (symbol == end) break;
    if (symbol >= kFirstSymbol && symbol < phonemes.size()) out += phonemes[symbol];
  }
  return out;
}

Fallback::Fallback(std::unique_ptr<const Weights> weights) : weights_(std::move(weights)) {}
Fallback::~Fallback() = default;

Result<std::unique_ptr<const Fallback>> Fallback::load(const std::string& path) {
  SYRINX_TRY(const MappedFile file, MappedFile::open(path));
  SYRINX_TRY(const NpzFile archive, NpzFile::parse(file.bytes(), path));
  auto weights = std::make_unique<Weights>();
  SYRINX_TRY_VOID(weights->read_meta(archive, path));
  SYRINX_TRY_VOID(weights->read_tensors(archive, path));
  return std::unique_ptr<const Fallback>(new Fallback(std::move(weights)));
}

Phonemes Fallback::say(std::string_view word) const {
  constexpr std::string_view kEdges = "-.'";
  const size_t first = word.find_first_not_of(kEdges);
  if (first == std::string_view::npos) return {};
  word = word.substr(first, word.find_last_not_of(kEdges) - first + 1);
  word = word.substr(0, kMaxLetters);
  const size_t longest = weights_->positions - 2;
  Phonemes out;
  for (; !word.empty(); word.remove_prefix(std::min(longest, word.size()))) {
    out += weights_->say_part(word.substr(0, longest));
  }
  return out;
}

}  // namespace syrinx::g2p
