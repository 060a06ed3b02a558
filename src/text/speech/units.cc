// Units of measure behind a number.
#include <algorithm>

#include "text/speech/readers.h"

namespace syrinx::text {
namespace {

struct Entry {
  std::string_view written;  // exact case
  std::string_view singular;
  std::string_view plural;
  bool glued = false;  // too much like a word: only right behind the digits
};

constexpr Entry kUnits[] = {
    {"%", "percent", "percent"},
    {"mm", "millimeter", "millimeters"},
    {"cm", "centimeter", "centimeters"},
    {"m", "meter", "meters"},
    {"km", "kilometer", "kilometers"},
    {"nm", "nanometer", "nanometers"},
    {"μm", "micrometer", "micrometers"},
    {"in", "inch", "inches", true},
    {"ft", "foot", "feet"},
    {"yd", "yard", "yards"},
    {"mi", "mile", "miles"},
    {"mg", "milligram", "milligrams"},
    {"μg", "microgram", "micrograms"},
    {"g", "gram", "grams"},
    {"kg", "kilogram", "kilograms"},
    {"lb", "pound", "pounds"},
    {"lbs", "pound", "pounds"},
    {"oz", "ounce", "ounces"},
    {"t", "ton", "tons", true},
    {"ml", "milliliter", "milliliters"},
    {"mL", "milliliter", "milliliters"},
    {"cl", "centiliter", "centiliters"},
    {"l", "liter", "liters", true},
    {"L", "liter", "liters"},
    {"ms", "millisecond", "milliseconds"},
    {"μs", "microsecond", "microseconds"},
    {"ns", "nanosecond", "nanoseconds"},
    {"s", "second", "seconds"},
    {"sec", "second", "seconds"},
    {"secs", "second", "seconds"},
    {"min", "minute", "minutes"},
    {"mins", "minute", "minutes"},
    {"h", "hour", "hours"},
    {"hr", "hour", "hours"},
    {"hrs", "hour", "hours"},
    {"Hz", "hertz", "hertz"},
    {"kHz", "kilohertz", "kilohertz"},
    {"MHz", "megahertz", "megahertz"},
    {"GHz", "gigahertz", "gigahertz"},
    {"dB", "decibel", "decibels"},
    {"V", "volt", "volts"},
    {"kV", "kilovolt", "kilovolts"},
    {"mA", "milliamp", "milliamps"},
    {"W", "watt", "watts"},
    {"kW", "kilowatt", "kilowatts"},
    {"MW", "megawatt", "megawatts"},
    {"GW", "gigawatt", "gigawatts"},
    {"kWh", "kilowatt hour", "kilowatt hours"},
    {"J", "joule", "joules"},
    {"kJ", "kilojoule", "kilojoules"},
    {"kcal", "kilocalorie", "kilocalories"},
    {"cal", "calorie", "calories", true},
    {"kB", "kilobyte", "kilobytes"},
    {"KB", "kilobyte", "kilobytes"},
    {"MB", "megabyte", "megabytes"},
    {"GB", "gigabyte", "gigabytes"},
    {"TB", "terabyte", "terabytes"},
    {"KiB", "kibibyte", "kibibytes"},
    {"MiB", "mebibyte", "mebibytes"},
    {"GiB", "gibibyte", "gibibytes"},
    {"kbps", "kilobit per second", "kilobits per second"},
    {"Mbps", "megabit per second", "megabits per second"},
    {"Gbps", "gigabit per second", "gigabits per second"},
    {"MB/s", "megabyte per second", "megabytes per second"},
    {"GB/s", "gigabyte per second", "gigabytes per second"},
    {"km/h", "kilometer per hour", "kilometers per hour"},
    {"kph", "kilometer per hour", "kilometers per hour"},
    {"mph", "mile per hour", "miles per hour"},
    {"m/s", "meter per second", "meters per second"},
    {"ft/s", "foot per second", "feet per second"},
    {"m²", "square meter", "square meters"},
    {"m³", "cubic meter", "cubic meters"},
    {"km²", "square kilometer", "square kilometers"},
    {"cm²", "square centimeter", "square centimeters"},
    {"cm³", "cubic centimeter", "cubic centimeters"},
    {"sq ft", "square foot", "square feet"},
    {"sq mi", "square mile", "square miles"},
    {"ha", "hectare", "hectares", true},
    {"hp", "horsepower", "horsepower"},
    {"rpm", "revolution per minute", "revolutions per minute"},
    {"bpm", "beat per minute", "beats per minute"},
    {"fps", "frame per second", "frames per second"},
    {"psi", "p s i", "p s i"},
    {"Pa", "pascal", "pascals", true},
    {"hPa", "hectopascal", "hectopascals"},
    {"kPa", "kilopascal", "kilopascals"},
    {"px", "pixel", "pixels"},
    {"pt", "point", "points", true},
    {"°C", "degree celsius", "degrees celsius"},
    {"°F", "degree fahrenheit", "degrees fahrenheit"},
    {"° C", "degree celsius", "degrees celsius"},
    {"° F", "degree fahrenheit", "degrees fahrenheit"},
    {"°", "degree", "degrees"},
};

// Length in characters if `written` stands at `i`, else 0.
size_t stands_at(const Input& in, size_t i, std::string_view written) {
  size_t k = 0;
  for (size_t b = 0; b < written.size(); ++k) {
    if (decode(written, b) != in.at(i + k)) return 0;
  }
  return k;
}

}  // namespace

std::optional<Unit> parse_unit(const Input& in, size_t i) {
  const bool spaced = in.at(i) == ' ';
  const size_t begin = spaced ? i + 1 : i;
  std::optional<Unit> best;
  for (const Entry& unit : kUnits) {
    if (spaced && unit.glued) continue;
    const size_t length = stands_at(in, begin, unit.written);
    if (length == 0) continue;
    const size_t end = begin + length;
    const bool is_sign = unit.written == "%" || unit.written == "°";
    if (!is_sign && (!in.ends_word(end) || (in.at(end) == '\'' && in.letter(end + 1)))) continue;
    if (!best || end > best->end) best = Unit{unit.singular, unit.plural, end};
  }
  return best;
}

std::optional<Scale> parse_scale(const Input& in, size_t i) {
  struct Short {
    std::string_view written;
    std::string_view word;
  };
  static constexpr Short kGlued[] = {{"k", "thousand"}, {"mn", "million"}, {"mm", "million"},  {"m", "million"},
                                     {"bn", "billion"}, {"b", "billion"},  {"tn", "trillion"}, {"t", "trillion"}};
  static constexpr std::string_view kWords[] = {"hundred", "thousand", "million", "billion", "trillion", "quadrillion"};
  if (in.at(i) == ' ' || in.at(i) == '-') {
    for (const std::string_view word : kWords) {
      if (in.matches(i + 1, word) && in.ends_word(i + 1 + word.size())) return Scale{word, i + 1 + word.size()};
    }
    if (in.at(i) == '-') return std::nullopt;
  }
  const size_t begin = in.at(i) == ' ' ? i + 1 : i;
  for (const Short& scale : kGlued) {
    if (begin != i && scale.written.size() < 2) continue;
    if (in.matches(begin, scale.written) && in.ends_word(begin + scale.written.size())) {
      return Scale{scale.word, begin + scale.written.size()};
    }
  }
  return std::nullopt;
}

}  // namespace syrinx::text
