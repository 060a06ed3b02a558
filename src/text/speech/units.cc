// Units of measure: one table of names, prefixes and powers from which compound units are built ("kg/m³", "Mbit/s").
// Names and symbols: the SI brochure (9th edition), NIST Handbook 44 for US customary units, IEC 80000-13 for data.
#include <algorithm>
#include <array>

#include "text/speech/context.h"
#include "text/speech/readers.h"

namespace syrinx::text {
namespace {

// Where a name may stand: too much like a word or a letter for anywhere.
enum Place : uint8_t {
  kAnywhere = 0,
  kGlued = 1,    // right behind the digits
  kPointed = 2,  // with its full stop
  kGluedOrPointed = 3,
  kPrefixed = 4,  // only with a prefix: "GB"
};

enum Prefixes : uint8_t { kNone, kSi, kSmall, kLarge };

struct Base {
  std::string_view written;  // exact case
  std::string_view one, more;
  Place place = kAnywhere;
  Prefixes prefixes = kNone;
  bool has_powers = false;  // a length
};

constexpr Base kBases[] = {
    {"%", "percent", "percent"},
    {"‰", "per mille", "per mille"},
    {"°C", "degree celsius", "degrees celsius"},
    {"°F", "degree fahrenheit", "degrees fahrenheit"},
    {"° C", "degree celsius", "degrees celsius"},
    {"° F", "degree fahrenheit", "degrees fahrenheit"},
    {"°", "degree", "degrees"},
    {"m", "meter", "meters", kAnywhere, kSi, true},
    {"in", "inch", "inches", kGluedOrPointed, kNone, true},
    {"ins", "inch", "inches", kGluedOrPointed},
    {"ft", "foot", "feet", kAnywhere, kNone, true},
    {"yd", "yard", "yards", kAnywhere, kNone, true},
    {"yds", "yard", "yards"},
    {"mi", "mile", "miles", kAnywhere, kNone, true},
    {"nmi", "nautical mile", "nautical miles"},
    {"ly", "light year", "light years"},
    {"g", "gram", "grams", kAnywhere, kSi},
    {"gr", "gram", "grams", kPointed},
    {"t", "ton", "tons", kGlued, kLarge},
    {"lb", "pound", "pounds"},
    {"lbs", "pound", "pounds"},
    {"oz", "ounce", "ounces"},
    {"l", "liter", "liters", kGlued, kSmall},
    {"L", "liter", "liters", kAnywhere, kSmall},
    {"gal", "gallon", "gallons"},
    {"gals", "gallon", "gallons"},
    {"qt", "quart", "quarts"},
    {"qts", "quart", "quarts"},
    {"pt", "point", "points", kGlued},
    {"pts", "point", "points"},
    {"c", "cup", "cups", kPointed},
    {"tbsp", "tablespoon", "tablespoons"},
    {"tbsps", "tablespoon", "tablespoons"},
    {"Tbsp", "tablespoon", "tablespoons"},
    {"tbs", "tablespoon", "tablespoons"},
    {"tsp", "teaspoon", "teaspoons"},
    {"tsps", "teaspoon", "teaspoons"},
    {"cc", "C C", "C C"},
    {"doz", "dozen", "dozen"},
    {"s", "second", "seconds", kAnywhere, kSmall},
    {"sec", "second", "seconds"},
    {"secs", "second", "seconds"},
    {"min", "minute", "minutes"},
    {"mins", "minute", "minutes"},
    {"h", "hour", "hours"},
    {"hr", "hour", "hours"},
    {"hrs", "hour", "hours"},
    {"d", "day", "days", kPointed},
    {"wk", "week", "weeks"},
    {"wks", "week", "weeks"},
    {"mo", "month", "months", kGluedOrPointed},
    {"mos", "month", "months"},
    {"yr", "year", "years"},
    {"yrs", "year", "years"},
    {"Hz", "hertz", "hertz", kAnywhere, kLarge},
    {"V", "volt", "volts", kAnywhere, kSi},
    {"A", "amp", "amps", kPrefixed, kSmall},
    {"Ah", "amp hour", "amp hours", kAnywhere, kSmall},
    {"W", "watt", "watts", kAnywhere, kSi},
    {"Wh", "watt hour", "watt hours", kAnywhere, kLarge},
    {"J", "joule", "joules", kAnywhere, kLarge},
    {"eV", "electron volt", "electron volts", kAnywhere, kLarge},
    {"N", "newton", "newtons", kPrefixed, kLarge},
    {"Nm", "newton meter", "newton meters"},
    {"Pa", "pascal", "pascals", kGlued, kLarge},
    {"hPa", "hectopascal", "hectopascals"},
    {"mbar", "millibar", "millibars"},
    {"atm", "atmosphere", "atmospheres"},
    {"Ω", "ohm", "ohms", kAnywhere, kLarge},
    {"F", "farad", "farads", kPrefixed, kSmall},
    {"H", "henry", "henries", kPrefixed, kSmall},
    {"T", "tesla", "teslas", kPrefixed, kSmall},
    {"mol", "mole", "moles", kAnywhere, kSmall},
    {"Sv", "sievert", "sieverts", kAnywhere, kSmall},
    {"Bq", "becquerel", "becquerels", kAnywhere, kLarge},
    {"lm", "lumen", "lumens"},
    {"lx", "lux", "lux"},
    {"dB", "decibel", "decibels"},
    {"dBm", "D B M", "D B M"},
    {"cal", "calorie", "calories", kGlued, kLarge},
    {"BTU", "B T U", "B T U"},
    {"B", "byte", "bytes", kPrefixed, kLarge},
    {"KB", "kilobyte", "kilobytes"},
    {"KiB", "kibibyte", "kibibytes"},
    {"MiB", "mebibyte", "mebibytes"},
    {"GiB", "gibibyte", "gibibytes"},
    {"TiB", "tebibyte", "tebibytes"},
    {"bit", "bit", "bits", kAnywhere, kLarge},
    {"b", "bit", "bits", kPrefixed, kLarge},
    {"bps", "bit per second", "bits per second", kAnywhere, kLarge},
    {"kph", "kilometer per hour", "kilometers per hour"},
    {"kmh", "kilometer per hour", "kilometers per hour"},
    {"mph", "mile per hour", "miles per hour"},
    {"mpg", "mile per gallon", "miles per gallon"},
    {"kn", "knot", "knots"},
    {"kts", "knot", "knots"},
    {"ha", "hectare", "hectares", kGlued},
    {"ac", "acre", "acres", kGluedOrPointed},
    {"hp", "horsepower", "horsepower"},
    {"rpm", "revolution per minute", "revolutions per minute"},
    {"bpm", "beat per minute", "beats per minute"},
    {"fps", "frame per second", "frames per second"},
    {"dpi", "dot per inch", "dots per inch"},
    {"ppi", "pixel per inch", "pixels per inch"},
    {"ppm", "part per million", "parts per million"},
    {"ppb", "part per billion", "parts per billion"},
    {"psi", "P S I", "P S I"},
    {"px", "pixel", "pixels"},
    {"MP", "megapixel", "megapixels"},
    {"sq ft", "square foot", "square feet"},
    {"sq mi", "square mile", "square miles"},
    {"sq yd", "square yard", "square yards"},
    {"sq in", "square inch", "square inches"},
    {"sq km", "square kilometer", "square kilometers"},
    {"sq m", "square meter", "square meters"},
    {"cu ft", "cubic foot", "cubic feet"},
    {"cu in", "cubic inch", "cubic inches"},
    {"cu yd", "cubic yard", "cubic yards"},
    {"cu m", "cubic meter", "cubic meters"},
    {"fl oz", "fluid ounce", "fluid ounces"},
    {"lb ft", "pound foot", "pound feet"},
};

struct Prefix {
  std::string_view written, spoken;
  bool is_small;
};
constexpr Prefix kPrefixes[] = {
    {"p", "pico", true},  {"n", "nano", true},  {"μ", "micro", true}, {"m", "milli", true},
    {"c", "centi", true}, {"d", "deci", true},  {"k", "kilo", false}, {"M", "mega", false},
    {"G", "giga", false}, {"T", "tera", false}, {"P", "peta", false},
};

// Units that are words behind "per": those of the table, and these.
constexpr std::string_view kPerWords[] = {
    "day",   "night", "week", "month",  "year",  "hour",   "minute", "second", "person",  "head",  "unit", "share",
    "item",  "user",  "seat", "page",   "word",  "mile",   "foot",   "acre",   "pound",   "ounce", "each", "player",
    "child", "adult", "ton",  "gallon", "liter", "barrel", "bottle", "ticket", "session", "visit", "call"};

// A name of a unit in the text; `end` is behind it, without a full stop.
struct Found {
  const Base* base = nullptr;
  const Prefix* prefix = nullptr;
  size_t end = 0;
};

// End of `written` if it stands at i, else 0.  A full stop may stand before a space of it: "sq. ft".
size_t stands_at(const Input& in, size_t i, std::string_view written) {
  for (size_t b = 0; b < written.size(); ++i) {
    if (written[b] == ' ') {
      if (in.at(i) == '.') ++i;
      if (in.at(i) == '-') {  // "lb-ft"
        ++b;
        continue;
      }
    }
    if (decode(written, b) != in.at(i)) return 0;
  }
  return i;
}

bool ends_name(const Input& in, size_t end, const Base& base) {
  if (base.written == "%" || base.written == "‰" || base.written == "°") return true;
  if (in.at(end) == '\'' && in.letter(end + 1)) return false;
  if (in.digit(end)) return base.has_powers && (in.at(end) == '2' || in.at(end) == '3') && in.ends_word(end + 1);
  return in.ends_word(end);
}

bool takes(const Base& base, const Prefix& prefix) {
  return base.prefixes == kSi || (base.prefixes == kSmall && (prefix.is_small || prefix.written == "k")) ||
         (base.prefixes == kLarge && (!prefix.is_small || prefix.written == "m"));
}

Found find_name(const Input& in, size_t i) {
  Found best;
  const auto offer = [&](const Base& base, const Prefix* prefix, size_t end) {
    if (prefix == nullptr && base.place == kPrefixed) return;
    if (end > best.end && ends_name(in, end, base)) best = {&base, prefix, end};
  };
  for (const Base& base : kBases) offer(base, nullptr, stands_at(in, i, base.written));
  if (best.base != nullptr) return best;
  for (const Prefix& prefix : kPrefixes) {
    if (stands_at(in, i, prefix.written) == 0) continue;
    for (const Base& base : kBases) {
      if (takes(base, prefix)) offer(base, &prefix, stands_at(in, i + 1, base.written));
    }
  }
  return best;
}

bool may_stand(const Input& in, const Found& found, bool is_spaced) {
  const bool is_pointed_letter = found.base->place == kPointed && found.base->written.size() == 1;
  if (is_pointed_letter && found.prefix == nullptr) {  // "2 c. flour", but "Apartment 3c."
    return is_spaced && in.at(found.end) == '.' && in.space(found.end + 1) && in.lower(found.end + 2);
  }
  if (found.prefix != nullptr || !is_spaced) return found.base->place != kPointed || in.at(found.end) == '.';
  switch (found.base->place) {
    case kAnywhere: return true;
    case kGlued: return false;
    default: return in.at(found.end) == '.';
  }
}

// "²", "^2", "2" behind a length; steps over it.
std::string_view power_word(const Input& in, size_t& end) {
  const size_t at = in.at(end) == '^' ? end + 1 : end;
  const char32_t c = in.at(at);
  if (!in.ends_word(at + 1)) return {};
  if (c == U'²' || c == '2' || c == U'³' || c == '3') {
    end = at + 1;
    return c == U'²' || c == '2' ? "square " : "cubic ";
  }
  return {};
}

std::string joined(std::string_view power, const Prefix* prefix, std::string_view name) {
  return std::string(power) + std::string(prefix == nullptr ? "" : prefix->spoken) + std::string(name);
}

}  // namespace

std::optional<Per> parse_per(const Input& in, size_t i) {
  if (in.at(i) != '/') return std::nullopt;
  if (const Found found = find_name(in, i + 1); found.base != nullptr && found.base->place != kPointed) {
    size_t end = found.end;
    const std::string_view power = found.base->has_powers ? power_word(in, end) : std::string_view();
    const std::string name = joined(power, found.prefix, found.base->one);
    if (in.at(end) == U'²') return Per{name + " squared", end + 1};
    if (in.ends_word(end)) return Per{name, end};
  }
  const size_t end = in.letters_end(i + 1);
  const std::string word = in.ascii(i + 1, end);
  if (std::find(std::begin(kPerWords), std::end(kPerWords), word) != std::end(kPerWords)) return Per{word, end};
  return std::nullopt;
}

namespace {

// "1 pt cream", but "12 pt type".
std::optional<Unit> parse_pint(const Input& in, const Found& found) {
  constexpr std::string_view kLiquids =
      " of milk cream buttermilk beer ale stout lager cider wine water stock broth vinegar blood juice oil ";
  if (found.base->one != "point") return std::nullopt;
  const size_t end = in.at(found.end) == '.' ? found.end + 1 : found.end;
  if (!word_after(in, end).is(kLiquids)) return std::nullopt;
  return Unit{"pint", "pints", end};
}

}  // namespace

std::optional<Unit> parse_unit(const Input& in, size_t i) {
  const bool is_hyphen = in.at(i) == '-' && in.letter(i + 1);  // "20-ft"
  const bool is_spaced = in.at(i) == ' ';
  const size_t begin = is_spaced || is_hyphen ? i + 1 : i;
  const Found found = find_name(in, begin);
  if (found.base != nullptr && is_spaced) {
    if (auto pint = parse_pint(in, found)) return pint;
  }
  if (found.base == nullptr || !may_stand(in, found, is_spaced)) return std::nullopt;
  // "3-in-1", "5-a-side"
  if (is_hyphen && (in.at(found.end) == '-' || (found.end == begin + 1 && in.at(begin) != 'm'))) return std::nullopt;
  Unit unit;
  unit.end = found.end;
  const std::string_view power = found.base->has_powers ? power_word(in, unit.end) : std::string_view();
  unit.singular = joined(power, found.prefix, found.base->one);
  unit.plural = joined(power, found.prefix, found.base->more);
  unit.is_glued = begin == i;
  unit.is_hyphen = is_hyphen;
  unit.is_length = found.base->has_powers || found.base->written == "B";
  unit.is_sign = !in.letter(begin);
  unit.is_letter = unit.end == begin + 1;
  if (const auto per = parse_per(in, unit.end)) {
    unit.singular += " per " + per->unit;
    unit.plural += " per " + per->unit;
    unit.end = per->end;
  } else if (in.at(unit.end) == '.' && !unit.is_sign && unit.end == found.end && !sentence_ends(in, unit.end + 1) &&
             !in.alnum(unit.end + 1)) {
    ++unit.end;  // of the abbreviation
  }
  return unit;
}

std::optional<Scale> parse_scale(const Input& in, size_t i) {
  struct Short {
    std::string_view written;
    std::string_view word;
  };
  static constexpr Short kGlued[] = {{"k", "thousand"},  {"mn", "million"},   {"mm", "million"},  {"mln", "million"},
                                     {"m", "million"},   {"bn", "billion"},   {"bln", "billion"}, {"b", "billion"},
                                     {"tn", "trillion"}, {"trn", "trillion"}, {"t", "trillion"}};
  static constexpr std::string_view kWords[] = {"hundred",  "thousand",    "million", "billion",
                                                "trillion", "quadrillion", "lakh",    "crore"};
  if (in.at(i) == ' ' || in.at(i) == '-') {
    for (const std::string_view word : kWords) {
      if (in.matches(i + 1, word) && in.ends_word(i + 1 + word.size())) return Scale{word, i + 1 + word.size()};
    }
    if (in.at(i) == '-') return std::nullopt;
  }
  const size_t begin = in.at(i) == ' ' ? i + 1 : i;
  for (const Short& scale : kGlued) {
    if (begin != i && (scale.written.size() < 2 || scale.written == "mm")) continue;
    if (in.matches(begin, scale.written) && in.ends_word(begin + scale.written.size())) {
      return Scale{scale.word, begin + scale.written.size(), begin == i && scale.written.size() == 1};
    }
  }
  return std::nullopt;
}

}  // namespace syrinx::text
