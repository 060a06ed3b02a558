// Languages as clients name them: codes of ISO 639-1, -2 and -3, old and regional ones, and English names
// (languages.def).  Pure, thread-safe.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace syrinx::text {

// "nb-no" for "nob_NO.UTF-8", "de" for "German" or "ger"; a language that the table lacks in lower case, with '-'.
std::string canonical_language(std::string_view language);

// Whether the model is to find the language out: nothing is named, or "auto", "und" or "mul".
bool is_any_language(std::string_view language);

// Whether one of them is the other or part of it: "en_US" and "eng-us" are one, "en" is part of both; the empty one is
// none.
bool is_same_language(std::string_view a, std::string_view b);

// The best match of `wanted`: itself, else the first more specific one ("pt-BR" for "pt"), else the first less specific
// one ("pt" for "pt-PT"), else one that stands in for it ("no" for "nb"); null: none.
const std::string* closest_language(std::span<const std::string> known, std::string_view wanted);

// That which a recogniser is told where these are expected: the only one, or of several none, as it finds out which.
std::string language_expected(std::span<const std::string> languages);

}  // namespace syrinx::text
