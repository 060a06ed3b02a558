#include "engine/families/kokoro/lexicon_files.h"

#include "store/paths.h"

namespace syrinx {

g2p::G2pFiles lexicon_files(const std::string& lexicon_folder, bool british) {
  const std::string prefix = lexicon_folder + (british ? "/gb_" : "/us_");
  g2p::G2pFiles files;
  files.gold = prefix + "gold.json";
  files.silver = prefix + "silver.json";
  files.fallback = lexicon_folder + "/oov_bart_en_us.npz";
  if (!is_there(files.silver)) files.silver.clear();
  if (!is_there(files.fallback)) files.fallback.clear();
  files.british = british;
  return files;
}

}  // namespace syrinx
