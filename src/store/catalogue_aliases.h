// Names under which other programs know the models of the catalogue that is built into the binary (`also` in
// docs/catalogue.md).  The first call reads the catalogue; all are thread-safe.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace syrinx {

// The aliases of the entry that is called so, or of the variant that a family's name alone means.  Empty for unknown
// names.
std::vector<std::string> catalogue_aliases(std::string_view entry_name);

// The name of the entry that has this alias, whose case does not matter; any other name comes back unchanged.
std::string catalogue_name(std::string_view name);

}  // namespace syrinx
