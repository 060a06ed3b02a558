// Phonemises standard input, one text a line, for tools/judge/phonemes.py and for looking at by eye:
//   g2p_dump MODEL_FOLDER [--british] [--words]        prints the phonemes, one line a text
// --words prints one JSON object a line: normalised text, phonemes, and for each word its source, phonemes and kind.
#include <cstdio>
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>

#include "models/g2p/english.h"
#include "text/speech/normalize.h"

namespace {

std::string to_json(const std::string& line, const syrinx::g2p::Phonemized& said, bool british) {
  nlohmann::json object;
  syrinx::text::NormalizeOptions options;
  options.british = british;
  const auto normalized = syrinx::text::normalize(line, options);
  object["text"] = line;
  object["tokens"] = nlohmann::json::array();
  for (const auto& token : normalized->tokens) {
    object["tokens"].push_back({{"text", token.text},
                                {"space", token.space_after},
                                {"kind", static_cast<int>(token.kind)},
                                {"number", token.number}});
  }
  object["phonemes"] = said.phonemes;
  object["dropped"] = said.dropped;
  object["words"] = nlohmann::json::array();
  for (const auto& word : said.words) {
    object["words"].push_back({{"source", line.substr(word.source.begin, word.source.size())},
                               {"begin", word.source.begin},
                               {"phonemes", said.phonemes.substr(word.phonemes.begin, word.phonemes.size())},
                               {"kind", syrinx::g2p::word_kind_name(word.kind)}});
  }
  return object.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace

int main(int argc, char** argv) {
  bool words = false;
  syrinx::g2p::G2pFiles files;
  std::string folder;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if (argument == "--words") {
      words = true;
    } else if (argument == "--british") {
      files.british = true;
    } else {
      folder = argument;
    }
  }
  if (folder.empty()) {
    std::fprintf(stderr, "usage: g2p_dump MODEL_FOLDER [--british] [--words] < texts\n");
    return 2;
  }
  const std::string variant = files.british ? "gb" : "us";
  files.gold = folder + "/" + variant + "_gold.json";
  files.silver = folder + "/" + variant + "_silver.json";
  files.fallback = folder + "/oov_bart_en_us.npz";
  const auto g2p = syrinx::g2p::EnglishG2p::load(files);
  if (!g2p) {
    std::fprintf(stderr, "%s\n", g2p.error().message.c_str());
    return 1;
  }
  for (std::string line; std::getline(std::cin, line);) {
    const auto said = (*g2p)->phonemize(line);
    if (!said) {
      std::fprintf(stderr, "%s\n", said.error().message.c_str());
      return 1;
    }
    std::cout << (words ? to_json(line, *said, files.british) : said->phonemes) << '\n';
  }
  return 0;
}
