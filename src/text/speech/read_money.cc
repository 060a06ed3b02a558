// Amounts of money: $3.50, £5 million, -$20, US$1.5bn, 50¢, €20-30.
#include "text/speech/numbers.h"
#include "text/speech/readers.h"

namespace syrinx::text {
namespace {

struct Currency {
  char32_t sign;
  std::string_view one, more;    // "dollar", "dollars"
  std::string_view cent, cents;  // empty: no smaller unit
};

constexpr Currency kCurrencies[] = {
    {'$', "dollar", "dollars", "cent", "cents"},
    {U'£', "pound", "pounds", "penny", "pence"},
    {U'€', "euro", "euros", "cent", "cents"},
    {U'¥', "yen", "yen", "", ""},
};

const Currency* find_currency(char32_t sign) {
  for (const Currency& currency : kCurrencies) {
    if (currency.sign == sign) return &currency;
  }
  return nullptr;
}

bool only_zeros(std::string_view s) { return s.find_first_not_of('0') == std::string_view::npos; }

// "three dollars and fifty cents"; zero parts are left out.
std::string amount_words(const Number& amount, const Currency& currency, const NormalizeOptions& options) {
  const bool cents = !amount.decimals.empty() && amount.decimals.size() <= 2 && !currency.cent.empty();
  if (!cents && !amount.decimals.empty() && !only_zeros(amount.decimals)) {
    return number_words(amount, options) + " " + std::string(currency.more);
  }
  const std::string whole = amount.whole.empty() ? "0" : amount.whole;
  std::string minor = cents ? amount.decimals : "0";
  if (cents && minor.size() == 1) minor += '0';
  std::string words;
  if (!only_zeros(whole) || only_zeros(minor)) {
    words = cardinal(whole, {options.british}) + " " + std::string(is_one(whole) ? currency.one : currency.more);
  }
  if (only_zeros(minor)) return words;
  if (!words.empty()) words += " and ";
  return words + cardinal(minor) + " " + std::string(is_one(minor) ? currency.cent : currency.cents);
}

// "US$", "C$", "A$", "HK$" before the sign.
size_t prefix_length(const Input& in, size_t i) {
  size_t end = i;
  while (in.upper(end) && end - i < 3) ++end;
  return end > i && in.at(end) == '$' && in.digit(end + 1) ? end - i : 0;
}

size_t read_range(const Input& in, size_t i, size_t end, const Number& low, const Currency& currency,
                  const NormalizeOptions& options, Output& out) {
  if (in.at(end) != '-' && in.at(end) != U'–') return 0;
  size_t next = end + 1;
  if (in.at(next) == currency.sign) ++next;
  const auto high = parse_number(in, next);
  if (!high || in.letter(high->end)) return 0;
  std::string words = number_words(low, options) + " to ";
  if (const auto scale = parse_scale(in, high->end)) {
    words += number_words(*high, options) + " " + std::string(scale->word) + " " + std::string(currency.more);
    out.numbers(words, i, scale->end);
    return scale->end;
  }
  out.numbers(words + amount_words(*high, currency, options), i, high->end);
  return high->end;
}

}  // namespace

size_t read_money(const Input& in, size_t i, const NormalizeOptions& options, Output& out) {
  size_t at = i;
  if (!in.begins_word(i)) return 0;
  const bool minus = in.at(at) == '-' && (i == 0 || in.space(i - 1) || in.at(i - 1) == '(');
  if (minus) ++at;
  at += prefix_length(in, at);
  const Currency* currency = find_currency(in.at(at));
  if (currency == nullptr) {
    const auto number = parse_number(in, i);
    if (!number || in.at(number->end) != U'¢') return 0;
    out.numbers(number_words(*number, options) + (number->one() ? " cent" : " cents"), i, number->end + 1);
    return number->end + 1;
  }
  ++at;
  if (in.at(at) == ' ' && in.digit(at + 1)) ++at;
  if (in.at(at) == '-' && in.digit(at + 1)) ++at;
  const auto number = parse_number(in, at);
  if (!number) return 0;
  const std::string sign = minus || in.at(at - 1) == '-' ? "minus " : "";
  if (const auto scale = parse_scale(in, number->end)) {
    out.numbers(
        sign + number_words(*number, options) + " " + std::string(scale->word) + " " + std::string(currency->more), i,
        scale->end);
    return scale->end;
  }
  if (const size_t end = read_range(in, i, number->end, *number, *currency, options, out); end > 0) return end;
  // "a $5-a-day plan", "a $20 bill": what follows a hyphen goes on in the singular.
  const bool adjective = in.at(number->end) == '-' && in.letter(number->end + 1);
  if (adjective && number->decimals.empty()) {
    out.numbers(sign + cardinal(number->whole, {options.british}) + " " + std::string(currency->one), i,
                number->end + 1);
    return number->end + 1;
  }
  out.numbers(sign + amount_words(*number, *currency, options), i, number->end);
  return number->end;
}

}  // namespace syrinx::text
