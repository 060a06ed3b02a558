#include "engine/families/kokoro/lexicon_files.h"

#include <exception>

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

Status check_lexicon_folder(const std::string& lexicon_folder) {
  if (!lexicon_folder.empty()) return {};
  return fail(Code::kNotFound, "the English lexicon is not installed; fetch it with `syrinx pull english-g2p`");
}

Result<std::shared_ptr<const g2p::EnglishG2p>> FrontEnds::get(bool british) {
  const std::lock_guard lock(mutex_);
  std::shared_ptr<const g2p::EnglishG2p>& kept = kept_[british ? 1 : 0];
  if (kept == nullptr) {
    SYRINX_TRY(kept, load(british));
  }
  return kept;
}

Result<std::shared_ptr<const g2p::EnglishG2p>> FrontEnds::load(bool british) const {
  SYRINX_TRY_VOID(check_lexicon_folder(lexicon_));
  g2p::G2pFiles files = lexicon_files(lexicon_, british);
  files.cache_dir = cache_folder_;
  files.user_dictionary = dictionary_;
  try {
    return g2p::EnglishG2p::load(files);
  } catch (const std::exception& error) {
    return fail(Code::kInternal, "unexpected failure while loading the lexicon: {}", error.what());
  }
}

}  // namespace syrinx
