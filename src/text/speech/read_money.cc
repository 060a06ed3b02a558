// Amounts of money: $3.50, £5 million, -$20, US$1.5bn, 50¢, €20-30, CHF 480, 39.99 EUR, $10/hr, "a $5 bill".
#include "text/speech/context.h"
#include "text/speech/currencies.h"
#include "text/speech/numbers.h"
#include "text/speech/readers.h"

namespace syrinx::text {
namespace {

bool only_zeros(std::string_view s) { return s.find_first_not_of('0') == std::string_view::npos; }

// A currency and how its name is said: with the nation where its code or prefix is written.
struct Name {
  const Currency* currency = nullptr;
  bool with_nation = false;

  std::string words(std::string_view unit) const {
    const bool nation = with_nation && !currency->nation.empty();
    return (nation ? std::string(currency->nation) + " " : std::string()) + std::string(unit);
  }
  std::string one() const { return words(currency->one); }
  std::string more() const { return words(currency->more); }
};

// "three dollars and fifty cents"; zero parts are left out.  `describes`: "three dollar and fifty cent", of a noun.
std::string amount_words(const Number& amount, const Name& name, bool describes, const NormalizeOptions& options) {
  const Currency& currency = *name.currency;
  const auto minor_digits = static_cast<size_t>(currency.minor_digits);
  const bool cents = !amount.decimals.empty() && amount.decimals.size() <= minor_digits && !currency.cent.empty();
  if (!cents && !amount.decimals.empty() && !only_zeros(amount.decimals)) {
    return number_words(amount, options) + " " + (describes ? name.one() : name.more());
  }
  const std::string whole = amount.whole.empty() ? "0" : amount.whole;
  std::string minor = cents ? amount.decimals : "0";
  if (cents) minor.resize(minor_digits, '0');
  std::string words;
  if (!only_zeros(whole) || only_zeros(minor)) {
    words = cardinal(whole, {options.british}) + " " + (describes || is_one(whole) ? name.one() : name.more());
  }
  if (only_zeros(minor)) return words;
  if (!words.empty()) words += " and ";
  const bool one_cent = describes || is_one(minor);
  return words + cardinal(minor, {options.british}) + " " + std::string(one_cent ? currency.cent : currency.cents);
}

struct Amount {
  Number number;
  std::optional<Scale> scale;
  size_t end = 0;
};

std::optional<Amount> parse_amount(const Input& in, size_t i) {
  const auto number = parse_number(in, i);
  if (!number) return std::nullopt;
  Amount amount{*number, parse_scale(in, number->end), number->end};
  if (amount.scale) amount.end = amount.scale->end;
  return amount;
}

std::string scaled_words(const Amount& amount, const NormalizeOptions& options) {
  std::string words = number_words(amount.number, options);
  if (amount.scale) words += " " + std::string(amount.scale->word);
  return words;
}

// The words of an amount whose name ends at `end`; steps over "/hr" and, in an adjective, over a hyphen.
struct Written {
  size_t begin;
  size_t end;
  std::string sign;
};

size_t say(const Input& in, const Written& written, const Amount& amount, const Name& name,
           const NormalizeOptions& options, Output& out) {
  size_t end = written.end;
  const bool is_hyphened = in.at(end) == '-' && in.letter(end + 1);  // "a $5-a-day plan"
  const bool describes = is_hyphened || describes_noun(in, written.begin, end);
  std::string words = written.sign;
  if (amount.scale) {
    words += scaled_words(amount, options) + " " + (describes ? name.one() : name.more());
  } else {
    words += amount_words(amount.number, name, describes, options);
  }
  if (is_hyphened) ++end;
  if (const auto per = parse_per(in, end)) {
    words += " per " + per->unit;
    end = per->end;
  }
  out.numbers(words, written.begin, end);
  return end;
}

// "$5-10", "$5-$10 million", "$15–20".
size_t say_range(const Input& in, const Written& written, const Amount& low, const Name& name,
                 const NormalizeOptions& options, Output& out) {
  if (!in.dash(low.end)) return 0;
  size_t next = low.end + 1;
  if (currency_of_sign(in.at(next)) == name.currency) ++next;
  const auto high = parse_amount(in, next);
  if (!high || (in.letter(high->end) && !high->scale)) return 0;
  std::string words = written.sign + scaled_words(low, options) + " to ";
  const bool describes = describes_noun(in, written.begin, high->end);
  size_t end = high->end;
  if (high->scale) {
    words += scaled_words(*high, options) + " " + (describes ? name.one() : name.more());
  } else {
    words += amount_words(high->number, name, describes, options);
  }
  if (const auto per = parse_per(in, end)) {
    words += " per " + per->unit;
    end = per->end;
  }
  out.numbers(words, written.begin, end);
  return end;
}

// "5¢".
size_t read_cents(const Input& in, size_t i, const NormalizeOptions& options, Output& out) {
  const auto number = parse_number(in, i);
  if (!number || in.at(number->end) != U'¢') return 0;
  const bool one = number->one() || describes_noun(in, i, number->end + 1);
  out.numbers(number_words(*number, options) + (one ? " cent" : " cents"), i, number->end + 1);
  return number->end + 1;
}

// Does a code stand among capitals or before what is counted, as a word does: "TOP 1,000 SONGS", "3 PHP scripts"?
bool is_other_word(const Input& in, const Currency& currency, size_t begin, size_t end, const Number& number) {
  constexpr std::string_view kWords = " all top try pen cop cup mad sos bam bob ron mop php cad ";
  if (!currency.is_word && !is_listed(currency.code, kWords)) return false;
  if (number.decimals.size() == 2) return false;
  if (is_listed(currency.code, " all top ")) return true;
  const Near next = word_after(in, end);
  const Near before = word_before(in, begin);
  const auto is_shouted = [&](const Near& near) {
    return near.word.size() > 1 && in.upper(near.begin) && in.upper(near.begin + 1);
  };
  if (plural_follows(in, end) || is_shouted(next) || is_shouted(before)) return true;
  return currency.is_word && !number.grouped;
}

// "39.99 EUR", "20€", "500 kr".
size_t read_name_behind(const Input& in, size_t i, const NormalizeOptions& options, Output& out) {
  if (!in.digit(i)) return 0;
  const auto amount = parse_amount(in, i);
  if (!amount) return 0;
  const size_t at = in.at(amount->end) == ' ' ? amount->end + 1 : amount->end;
  if (const Currency* sign = currency_of_sign(in.at(at));
      sign != nullptr && !in.digit(at + 1) && !(at > amount->end && !in.space(at + 1) && in.at(at + 1) != '.')) {
    return say(in, {i, at + 1, ""}, *amount, {sign}, options, out);
  }
  size_t letters = at;
  while (in.letter(letters) && letters - at < 4) ++letters;
  if (letters == at || !in.ends_word(letters)) return 0;
  const std::string word = in.ascii(at, letters);
  if (const Currency* currency = currency_of_code(word)) {
    if (!amount->scale && is_other_word(in, *currency, i, letters, amount->number)) return 0;
    return say(in, {i, letters, ""}, *amount, {currency, true}, options, out);
  }
  const Currency* currency = currency_of_short_form(word);
  return currency == nullptr ? 0 : say(in, {i, letters, ""}, *amount, {currency}, options, out);
}

// The end of a currency's sign or code before its amount ("$", "US$", "CHF", "Rs."), or i.
size_t name_end(const Input& in, size_t i, Name& name) {
  if (const Currency* sign = currency_of_sign(in.at(i))) {
    name = {sign};
    return i + 1;
  }
  if (!in.upper(i) && in.at(i) != 'k' && in.at(i) != 'z') return i;
  size_t letters = i;
  while (in.letter(letters) && letters - i < 4) ++letters;
  if (in.letter(letters)) return i;
  const std::string word = in.ascii(i, letters);
  if (in.at(letters) == '$') {
    if (const Currency* dollar = currency_of_dollar(word)) {
      name = {dollar, true};
      return letters + 1;
    }
  }
  const bool is_spaced = in.at(letters) == ' ';
  if (const Currency* currency = currency_of_code(word)) {
    const auto number = parse_number(in, is_spaced ? letters + 1 : letters);
    const bool is_sum = number && (number->grouped || number->decimals.size() == 2);
    if (!number || (currency->is_word && !is_sum)) return i;
    if (!parse_scale(in, number->end) && is_other_word(in, *currency, i, number->end, *number)) return i;
    name = {currency, true};
    return letters;
  }
  if (const Currency* currency = currency_of_short_form(word)) {
    const size_t end = in.at(letters) == '.' ? letters + 1 : letters;
    if (!in.digit(in.at(end) == ' ' ? end + 1 : end)) return i;
    name = {currency};
    return end;
  }
  return i;
}

}  // namespace

size_t read_money(const Input& in, size_t i, const NormalizeOptions& options, Output& out) {
  if (!in.begins_word(i)) return 0;
  const bool minus = in.at(i) == '-' && (i == 0 || in.space(i - 1) || in.at(i - 1) == '(');
  size_t at = minus ? i + 1 : i;
  Name name;
  const size_t named = name_end(in, at, name);
  if (named == at) {
    if (const size_t end = read_cents(in, i, options, out); end > 0) return end;
    return read_name_behind(in, i, options, out);
  }
  at = named;
  if (in.at(at) == ' ' && in.digit(at + 1)) ++at;
  const bool inner_minus = in.at(at) == '-' && in.digit(at + 1);
  if (inner_minus) ++at;
  const auto amount = parse_amount(in, at);
  if (!amount) return 0;
  const std::string sign = minus || inner_minus ? "minus " : "";
  if (const size_t end = say_range(in, {i, amount->end, sign}, *amount, name, options, out); end > 0) return end;
  // "$5 USD": the code says which dollars.
  size_t end = amount->end;
  if (in.at(end) == ' ' && in.letters_end(end + 1) == end + 4) {
    const Currency* code = currency_of_code(in.ascii(end + 1, end + 4));
    if (code != nullptr && code->one == name.currency->one) {
      name = {code, true};
      end += 4;
    }
  }
  return say(in, {i, end, sign}, *amount, name, options, out);
}

}  // namespace syrinx::text
