#include "models/kokoro/onnx_names.h"

#include <algorithm>
#include <vector>

namespace syrinx::kokoro {
namespace {

constexpr std::string_view kModules[] = {"bert", "bert_encoder", "predictor", "text_encoder", "decoder"};
// Parts of `predictor` that the wrapper calls by itself.
constexpr std::string_view kPredictorParts[] = {"F0", "N", "F0_proj", "N_proj", "shared"};

std::vector<std::string_view> split(std::string_view text, char mark) {
  std::vector<std::string_view> parts;
  while (!text.empty()) {
    const size_t end = std::min(text.find(mark), text.size());
    if (end > 0) parts.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return parts;
}

template <size_t N>
bool is_one_of(std::string_view word, const std::string_view (&words)[N]) {
  return std::find(std::begin(words), std::end(words), word) != std::end(words);
}

// "F0.1" and "F0" are both the part F0.
bool is_predictor_part(std::string_view word) { return is_one_of(word.substr(0, word.find('.')), kPredictorParts); }

// Drops the wrapper, adds a missing "predictor"; empty if no module is found.
std::string join(std::vector<std::string_view> parts) {
  const auto known = [](std::string_view part) { return is_one_of(part, kModules) || is_predictor_part(part); };
  if (parts.size() < 2) return "";
  // A wrapper may be called like a module ("decoder.decoder"): it is one if what follows is a module itself.
  if (!known(parts[0]) || (parts[0] == "decoder" && parts[1] == "decoder")) parts.erase(parts.begin());
  if (!known(parts[0])) return "";
  std::string name = is_predictor_part(parts[0]) ? "predictor." : "";
  for (size_t i = 0; i < parts.size(); ++i) {
    if (i > 0) name += '.';
    name += parts[i];
  }
  return name;
}

}  // namespace

std::string module_of_node(std::string_view node_name) {
  std::vector<std::string_view> parts = split(node_name, '/');
  if (parts.size() < 2) return "";
  parts.pop_back();  // the operation
  for (size_t i = 0; i + 1 < parts.size();) {
    const bool repeats = parts[i + 1].starts_with(parts[i]) && parts[i + 1].substr(parts[i].size()).starts_with('.');
    if (repeats)
      parts.erase(parts.begin() + static_cast<std::ptrdiff_t>(i));
    else
      ++i;
  }
  if (parts.size() == 1) parts.insert(parts.begin(), "");  // no wrapper: join() drops one component
  return join(std::move(parts));
}

std::string parameter_name(std::string_view initialiser_name) {
  if (initialiser_name.find_first_of("/:") != std::string_view::npos) return "";
  return join(split(initialiser_name, '.'));
}

}  // namespace syrinx::kokoro
