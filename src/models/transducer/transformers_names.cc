#include "models/transducer/transformers_names.h"

#include <fmt/format.h>

#include <charconv>
#include <utility>

namespace syrinx::transducer {
namespace {

struct Renamed {
  std::string_view from, to;
};

constexpr Renamed kFronts[] = {{"encoder.subsampling.conv_in.", "encoder.pre_encode.conv.0."},
                               {"encoder.subsampling.linear.", "encoder.pre_encode.out."},
                               {"ctc_head.", "decoder.decoder_layers.0."},
                               {"encoder_projector.", "joint.enc."},
                               {"decoder.decoder_projector.", "joint.pred."},
                               {"decoder.embedding.", "decoder.prediction.embed."},
                               {"decoder.lstm.", "decoder.prediction.dec_rnn.lstm."},
                               {"joint.head.", "joint.joint_net.2."},
                               {"prompt_projector.linear_1.", "prompt_kernel.0."},
                               {"prompt_projector.linear_2.", "prompt_kernel.2."}};
// Names in a block of the encoder.
constexpr Renamed kParts[] = {{"self_attn.q_proj.", "self_attn.linear_q."},
                              {"self_attn.k_proj.", "self_attn.linear_k."},
                              {"self_attn.v_proj.", "self_attn.linear_v."},
                              {"self_attn.o_proj.", "self_attn.linear_out."},
                              {"self_attn.relative_k_proj.", "self_attn.linear_pos."},
                              {"self_attn.bias_", "self_attn.pos_bias_"},
                              {"conv.norm.", "conv.batch_norm."}};
constexpr std::string_view kSubsampling = "encoder.subsampling.layers.", kBlocks = "encoder.layers.";

std::string with_other_front(std::string_view name, const Renamed& renamed) {
  return std::string(renamed.to) + std::string(name.substr(renamed.from.size()));
}

// "1.rest" as 1 and "rest".
std::pair<size_t, std::string_view> cut_index(std::string_view text) {
  size_t index = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), index);
  if (error != std::errc() || end == text.data() + text.size() || *end != '.') return {0, {}};
  return {index, text.substr(static_cast<size_t>(end - text.data()) + 1)};
}

// Parakeet counts modules as the maker does; Nemotron counts pairs of convolutions behind the first one.
std::string subsampling_name(std::string_view name) {
  const std::string_view numbered = name.substr(kSubsampling.size());
  const auto [index, rest] = cut_index(numbered);
  const size_t first = 3 * std::min<size_t>(index, 1000) + 2;
  for (const auto& [part, at] :
       {std::pair<std::string_view, size_t>{"depthwise_conv.", first}, {"pointwise_conv.", first + 1}})
    if (rest.starts_with(part)) return fmt::format("encoder.pre_encode.conv.{}.{}", at, rest.substr(part.size()));
  return fmt::format("encoder.pre_encode.conv.{}", numbered);
}

}  // namespace

std::string maker_name(std::string_view name) {
  for (const Renamed& renamed : kFronts)
    if (name.starts_with(renamed.from)) return with_other_front(name, renamed);
  if (name.starts_with(kSubsampling)) return subsampling_name(name);
  if (!name.starts_with(kBlocks)) return std::string(name);
  const std::string_view part = cut_index(name.substr(kBlocks.size())).second;
  for (const Renamed& renamed : kParts)
    if (part.starts_with(renamed.from))
      return std::string(name.substr(0, name.size() - part.size())) + with_other_front(part, renamed);
  return std::string(name);
}

}  // namespace syrinx::transducer
