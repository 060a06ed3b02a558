// Numbers that are read digit by digit: codes, PINs, cards, ISBN, short telephone numbers, postcodes; and what names a
// chapter and a verse.
#include <algorithm>
#include <array>

#include "text/speech/context.h"
#include "text/speech/numbers.h"
#include "text/speech/readers.h"

namespace syrinx::text {
namespace {

constexpr size_t kMostGroups = 8;
constexpr size_t kMostDigits = 24;
constexpr size_t kLookForDial = 60;  // characters

// The number of these is a code.
constexpr std::string_view kCodeWords =
    " code codes pin pins pincode ssn otp passcode password isbn serial iban vin ein routing zip zipcode postcode "
    "imei sku barcode ";
constexpr std::string_view kNothingElse = " code pin pincode passcode otp ";  // before a number, all are codes
constexpr std::string_view kBetween =
    " is are was were be number numbers no id my your his her our their it enter use type as now s verification "
    "access security ";
// These have a number, but may stand before a year or a quantity too.
constexpr std::string_view kNumberedWords =
    " card cards account acct confirmation tracking badge licence license passport invoice visa mastercard amex "
    "extension combination social policy reference ref ";
constexpr std::string_view kOrderWords = " order ticket membership ";  // most often of a quantity
constexpr std::string_view kNumberWords = " number numbers no id ";
constexpr std::string_view kVerbsOfCodes =
    " shows appears works ships refers belongs expires matches remains means needs involves arrives ";
constexpr std::string_view kOwners =
    " my your his her our their the this phone telephone mobile cell fax account serial case customer member patient "
    "employee student registration model ";
constexpr std::string_view kDialWords = " dial fax telephone tel hotline whatsapp ";
constexpr std::string_view kCallWords = " call ring phone text mobile cell ";
constexpr std::string_view kBetweenPhone = " us me him her them at on is now number back please just or my our your ";
// Behind a number these show a quantity.
constexpr std::string_view kCountedWords =
    " percent more less fewer new square cubic hundred thousand million billion trillion dozen short extra "
    "additional further other different young old big small large sure ";
constexpr std::array<std::string_view, 14> kShortNumbers = {"911", "999", "112", "111", "101", "311", "411",
                                                            "988", "000", "811", "511", "211", "711", "119"};
constexpr std::string_view kStates =
    " al ak az ar ca co ct de fl ga hi id il in ia ks ky la me md ma mi mn ms mo mt ne nv nh nj nm ny nc nd oh ok or "
    "pa ri sc sd tn tx ut vt va wa wv wi wy dc pr ";

struct Groups {
  std::vector<std::string> digits;
  std::vector<size_t> ends;
  char32_t sign = 0;  // between them
  size_t total = 0;
  bool has_sizes(std::initializer_list<size_t> sizes) const {
    return std::equal(digits.begin(), digits.end(), sizes.begin(), sizes.end(),
                      [](const std::string& group, size_t size) { return group.size() == size; });
  }
};

// Groups of digits with the same space or hyphen between all of them.
Groups read_groups(const Input& in, size_t i) {
  Groups groups;
  for (size_t at = i; groups.digits.size() < kMostGroups && in.digit(at);) {
    size_t end = at;
    while (in.digit(end) && end - at <= kMostDigits) ++end;
    groups.digits.push_back(in.ascii(at, end));
    groups.ends.push_back(end);
    groups.total += end - at;
    const char32_t sign = in.at(end);
    if ((sign != ' ' && sign != '-') || (groups.sign != 0 && sign != groups.sign) || !in.digit(end + 1)) break;
    groups.sign = sign;
    at = end + 1;
  }
  return groups;
}

// The digits of all groups with a pause between two.
std::string grouped_digits(const Groups& groups) {
  std::string words;
  for (const std::string& digits : groups.digits) words += (words.empty() ? "" : " , ") + one_by_one(digits);
  return words;
}

bool ends_code(const Input& in, size_t end) {
  return in.ends_word(end) &&
         !((in.at(end) == '.' || in.at(end) == ',' || in.at(end) == '/' || in.at(end) == ':') && in.digit(end + 1)) &&
         in.at(end) != '%' && !(in.at(end) == '-' && in.alnum(end + 1));
}

// "978-3-16-148410-0", "0-306-40615-X".
size_t read_isbn(const Input& in, size_t i, const Groups& groups, Output& out) {
  std::string words = grouped_digits(groups);
  size_t end = groups.ends.back();
  if ((in.at(end) == '-' || in.at(end) == ' ') && in.at(end + 1) == 'X' && in.ends_word(end + 2)) {
    words += " X";
    end += 2;
  } else if (in.at(end) == 'X' && in.ends_word(end + 1)) {
    words += " X";
    ++end;
  }
  if (groups.total < 9) return 0;
  out.numbers(words, i, end);
  return end;
}

// Was a call spoken of shortly before: "you dial 112, in Britain 999"?
bool dial_before(const Input& in, size_t i) {
  constexpr std::string_view kVerbs =
      " dial dials dialed dialled dialing dialling call calls called calling ring rings rang ringing phone phones "
      "phoned "
      "phoning ";
  for (size_t k = i; k > 0 && i - k < kLookForDial; --k) {
    const char32_t c = in.at(k - 1);
    if (c == '.' || c == '!' || c == '?') return false;
    if (in.letter(k - 1) && in.begins_word(k - 1) && is_listed(in.ascii(k - 1, in.letters_end(k - 1)), kVerbs))
      return true;
  }
  return false;
}

bool is_short_number(const Input& in, size_t i, const std::string& digits) {
  if (std::find(kShortNumbers.begin(), kShortNumbers.end(), digits) == kShortNumbers.end()) return false;
  const size_t end = i + digits.size();
  const Near next = word_after(in, end);
  const bool is_counted = plural_follows(in, end) || next.is_capital || next.is(kCountedWords) ||
                          word_before(in, i).is(" to by from of about over under nearly almost some than with ");
  return !is_counted && dial_before(in, i);
}

bool is_year_like(const std::string& digits) { return digits.size() == 4 && digits >= "1100" && digits <= "2099"; }

// Behind a card, an account, a policy: "Policy 88213", "account number 417", "my Social is 6021", "order #3317".
bool is_numbered(const Input& in, size_t i, const std::string& digits) {
  Near near = word_before(in, i);
  const char32_t mark = near.mark;
  const bool is_said = near.is(" is are ");
  if (is_said) near = word_before(in, near.begin);
  const bool has_number = near.is(kNumberWords) || mark == '#' || mark == ':';
  if (near.is(kNumberWords)) {
    near = word_before(in, near.begin);
    if (digits.size() > 4 && near.is(kOwners) && (is_said || near.word != "the")) return true;
  }
  const bool is_order = near.is(kOrderWords);
  if (!is_order && !near.is(kNumberedWords)) return false;
  if (has_number) return true;
  if (is_year_like(digits)) return false;
  if (!is_order) return digits.size() > 3 || !is_said;
  const Near owner = word_before(in, near.begin);
  if (is_said || owner.word == "to") return false;
  return digits.size() > 4 || (digits.size() == 4 && owner.is(" my your his her our their the this "));
}

// "The card ending in 8832"; a year may end so too.
bool is_ending(const Input& in, size_t i, const std::string& digits) {
  Near near = word_before(in, i);
  if (near.is(" in with ")) near = word_before(in, near.begin);
  if (!near.is(" ending ends ")) return false;
  return !is_year_like(digits) ||
         comes_after(in, near.begin, " card cards account visa mastercard amex number ", " s that which ", 2);
}

// One group that a word before it makes a code.
bool is_code(const Input& in, size_t i, size_t end, const std::string& digits) {
  if (digits.size() < 3 || (word_after(in, end).is(kCountedWords) && !word_before(in, i).is(kNothingElse)))
    return false;
  if (comes_after(in, i, kCodeWords, kBetween, 7) || is_ending(in, i, digits) || is_numbered(in, i, digits))
    return true;
  const Near before = word_before(in, i);
  if (before.word == "to" && !is_year_like(digits) && comes_after(in, before.begin, kNothingElse, " ", 1)) return true;
  if (before.word == "to" && digits.size() > 4 &&
      comes_after(in, before.begin, " text sms send ", " stop yes join ", 2))
    return true;
  if (comes_after(in, i, kDialWords, kBetweenPhone, 4)) return true;
  return digits.size() > 4 && comes_after(in, i, kCallWords, kBetweenPhone, 4);
}

}  // namespace

size_t read_digits(const Input& in, size_t i, const NormalizeOptions&, Output& out) {
  if (!in.digit(i) || !in.begins_word(i)) return 0;
  if (i > 1 && (in.at(i - 1) == '.' || in.at(i - 1) == ',' || in.at(i - 1) == '/') && in.digit(i - 2)) return 0;
  const Groups groups = read_groups(in, i);
  const size_t end = groups.ends.back();
  const bool ends = ends_code(in, end);
  if (groups.digits.size() > 1 && comes_after(in, i, " isbn ", " is number ", 3)) return read_isbn(in, i, groups, out);
  if (!ends) return 0;
  const bool is_card =
      groups.has_sizes({4, 4, 4, 4}) || groups.has_sizes({4, 6, 5}) || groups.has_sizes({4, 4, 4, 4, 3});
  const bool is_ssn = groups.sign == '-' && groups.has_sizes({3, 2, 4});
  const bool is_phone = groups.sign == ' ' && groups.digits.size() > 1 && groups.digits[0][0] == '0' &&
                        groups.digits[0].size() > 1 && groups.total >= 9 && groups.total <= 12;
  const std::string& first = groups.digits[0];
  // "code 5592 works", "number 773 shows": a verb.
  const Near label = word_before(in, i);
  const bool is_label = label.is(kNothingElse) || (label.is(kNumberWords) && word_after(in, end).is(kVerbsOfCodes));
  const bool plural = plural_follows(in, end) && !is_label;
  const bool is_labelled = !plural && groups.total <= kMostDigits &&
                           is_code(in, i, end, groups.digits.size() > 1 ? std::string(groups.total, '0') : first) &&
                           (groups.digits.size() == 1 || groups.total > 6);
  if (is_card || is_ssn || is_phone || is_labelled || (groups.digits.size() == 1 && is_short_number(in, i, first))) {
    const bool is_zip = groups.total == 5 && comes_after(in, i, " zip zipcode ", kBetween, 3);
    out.rule(is_phone || dial_before(in, i) ? "phone" : "digits");
    out.numbers(is_zip ? with_oh(first) : grouped_digits(groups), i, end);
    return end;
  }
  return 0;
}

namespace {

// Letters and digits one by one: "S W one A".
void say_each(const Input& in, size_t begin, size_t end, Output& out) {
  for (size_t i = begin; i < end;) {
    if (in.letter(i)) {
      const size_t letters = in.letters_end(i);
      out.letters(in.ascii(i, letters), i, letters);
      i = letters;
    } else if (in.digit(i)) {
      out.numbers(one_by_one(in.ascii(i, i + 1)), i, i + 1);
      ++i;
    } else {
      ++i;
    }
  }
}

// Does the shape ("A9A 9A9": letters, digits, spaces) stand at i?
bool has_shape(const Input& in, size_t i, std::string_view shape) {
  for (size_t k = 0; k < shape.size(); ++k) {
    const bool same = shape[k] == 'A' ? in.upper(i + k) : shape[k] == '9' ? in.digit(i + k) : in.at(i + k) == ' ';
    if (!same) return false;
  }
  return in.ends_word(i + shape.size());
}

}  // namespace

// "SW1A 2AA", "K1A 0B1", "Chicago, IL 60614".
size_t read_postcode(const Input& in, size_t i, const NormalizeOptions&, Output& out) {
  if (!in.upper(i) || !in.begins_word(i)) return 0;
  for (const std::string_view shape : {"A9A 9A9", "AA9A 9AA", "A9A 9AA", "A9 9AA", "A99 9AA", "AA9 9AA", "AA99 9AA"}) {
    if (!has_shape(in, i, shape)) continue;
    say_each(in, i, i + shape.size(), out);
    return i + shape.size();
  }
  if (!has_shape(in, i, "AA 99999") || !is_listed(in.ascii(i, i + 2), kStates)) return 0;
  out.letters(in.ascii(i, i + 2), i, i + 2);
  out.numbers(with_oh(in.ascii(i + 3, i + 8)), i + 3, i + 8);
  if (in.at(i + 8) != '-' || in.digits_end(i + 9) != i + 13) return i + 8;
  out.numbers(", " + with_oh(in.ascii(i + 9, i + 13)), i + 9, i + 13);
  return i + 13;
}

namespace {

constexpr std::string_view kBooks =
    " genesis exodus leviticus numbers deuteronomy joshua judges ruth samuel kings chronicles ezra nehemiah esther "
    "job psalm psalms proverbs ecclesiastes isaiah jeremiah lamentations ezekiel daniel hosea joel amos obadiah "
    "jonah micah nahum habakkuk zephaniah haggai zechariah malachi matthew mark luke john acts romans corinthians "
    "galatians ephesians philippians colossians thessalonians timothy titus philemon hebrews james peter jude "
    "revelation tobit judith wisdom sirach baruch maccabees esdras surah sura quran ";
constexpr std::string_view kCountedBooks =
    " samuel kings chronicles corinthians thessalonians timothy peter john maccabees esdras ";

// "1 Corinthians".
size_t read_counted_book(const Input& in, size_t i, Output& out) {
  if (in.at(i) < '1' || in.at(i) > '4' || in.at(i + 1) != ' ' || !in.upper(i + 2)) return 0;
  const Near book = word_after(in, i + 1);
  if (!book.is(kCountedBooks)) return 0;
  // "2 Johns": a person needs a chapter behind.
  if ((book.word == "john" || book.word == "peter" || book.word == "timothy" || book.word == "samuel") &&
      !in.digit(book.end + 1))
    return 0;
  out.numbers(ordinal(in.ascii(i, i + 1)), i, i + 1);
  return i + 1;
}

}  // namespace

// "1 Corinthians 13:4-8", "Psalm 23:1-4".
size_t read_verse(const Input& in, size_t i, const NormalizeOptions& options, Output& out) {
  if (!in.digit(i) || !in.begins_word(i)) return 0;
  if (const size_t end = read_counted_book(in, i, out); end > 0) return end;
  const size_t chapter = in.digits_end(i);
  if (chapter - i > 3 || in.at(chapter) != ':' || !word_before(in, i).is(kBooks)) return 0;
  size_t end = in.digits_end(chapter + 1);
  if (end == chapter + 1 || end - chapter > 4) return 0;
  const NumberStyle style{options.british};
  std::string words = in_label(in.ascii(i, chapter)) + " " + cardinal(in.ascii(chapter + 1, end), style);
  if ((in.at(end) == '-' || in.at(end) == U'–') && in.digit(end + 1)) {
    const size_t last = in.digits_end(end + 1);
    if (last - end <= 4 && in.ends_word(last) && in.at(last) != ':') {
      words += " to " + cardinal(in.ascii(end + 1, last), style);
      end = last;
    }
  }
  out.numbers(words, i, end);
  return end;
}

}  // namespace syrinx::text
