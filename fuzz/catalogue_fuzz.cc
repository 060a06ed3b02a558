#include "store/catalogue.h"
#include "store/catalogue_values.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto entries = syrinx::parse_catalogue({reinterpret_cast<const char*>(data), size}, "fuzz");
  if (!entries) return entries.error().message.empty() ? (__builtin_trap(), 0) : 0;
  // Accepted names are safe as a path and to print.
  for (const auto& entry : *entries) {
    if (!syrinx::is_model_name(entry.name)) __builtin_trap();
    if (entry.also.size() > syrinx::kMaxAliases) __builtin_trap();
    for (const auto& alias : entry.also) {
      if (!syrinx::is_alias(alias.name)) __builtin_trap();
    }
    for (const auto& group : entry.groups) {
      for (const auto& file : group.files) {
        if (("/" + group.path_of(file)).find("/.") != std::string::npos) __builtin_trap();
        if (file.text && file.text->size() > syrinx::kMaxExpandedBytes) __builtin_trap();
      }
      for (const auto& source : group.sources) {
        if (source.label().empty()) __builtin_trap();
      }
    }
  }
  const auto catalogue = syrinx::Catalogue::make(*entries);
  if (!catalogue) return catalogue.error().message.empty() ? (__builtin_trap(), 0) : 0;
  for (const auto& entry : *entries) {
    for (const auto& alias : entry.also) {
      const auto found = catalogue->find(alias.name);
      if (!found || (*found)->name != entry.name) __builtin_trap();
    }
  }
  return 0;
}
