// The installed lexicons and fallback network: $SYRINX_TEST_MODELS/english-g2p, else where `syrinx pull` puts them.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <memory>
#include <string>

#include "models/g2p/english.h"

namespace syrinx::g2p {

inline std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

inline std::string model_folder() {
  if (const std::string folder = variable("SYRINX_TEST_MODELS"); !folder.empty()) return folder + "/english-g2p";
  if (const std::string home = variable("SYRINX_HOME"); !home.empty()) return home + "/data/models/english-g2p";
  if (const std::string data = variable("XDG_DATA_HOME"); !data.empty()) return data + "/syrinx/models/english-g2p";
  return variable("HOME") + "/.local/share/syrinx/models/english-g2p";
}

inline std::shared_ptr<const EnglishG2p> load_real(bool british, const std::string& cache = "") {
  const std::string folder = model_folder();
  G2pFiles files;
  files.gold = folder + (british ? "/gb_gold.json" : "/us_gold.json");
  files.silver = folder + (british ? "/gb_silver.json" : "/us_silver.json");
  files.fallback = folder + "/oov_bart_en_us.npz";
  files.cache_dir = cache;
  files.british = british;
  auto loaded = EnglishG2p::load(files);
  EXPECT_TRUE(loaded) << loaded.error().message << " (run `syrinx pull` first)";
  return loaded ? *loaded : nullptr;
}

}  // namespace syrinx::g2p
