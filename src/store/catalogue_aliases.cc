#include "store/catalogue_aliases.h"

#include <utility>

#include "store/catalogue.h"

namespace syrinx {
namespace {

// Without files and sources, which take some hundred kilobytes.
Result<Catalogue> read_names() {
  SYRINX_TRY(const Catalogue whole, Catalogue::built_in());
  std::vector<CatalogueEntry> entries;
  for (const CatalogueEntry& entry : whole.entries()) {
    CatalogueEntry named;
    named.name = entry.name;
    named.is_default = entry.is_default;
    named.also = entry.also;
    entries.push_back(std::move(named));
  }
  return Catalogue::make(std::move(entries));
}

// Null where the catalogue has a fault, which its next reader reports.
const Catalogue* names_of_catalogue() {
  static const Result<Catalogue> catalogue = read_names();
  return catalogue ? &*catalogue : nullptr;
}

}  // namespace

std::vector<std::string> catalogue_aliases(std::string_view entry_name) {
  std::vector<std::string> names;
  const Catalogue* const catalogue = names_of_catalogue();
  if (catalogue == nullptr || catalogue->find_alias(entry_name) != nullptr) return names;
  const auto entry = catalogue->find(entry_name);
  if (!entry) return names;
  for (const CatalogueAlias& alias : (*entry)->also) names.push_back(alias.name);
  return names;
}

std::string catalogue_name(std::string_view name) {
  const Catalogue* const catalogue = names_of_catalogue();
  const CatalogueEntry* const entry = catalogue != nullptr ? catalogue->find_alias(name) : nullptr;
  return entry != nullptr ? entry->name : std::string(name);
}

}  // namespace syrinx
