// Times of the day and days of the week: 3:05 pm, 3.30pm, 15:30, 9am-5pm, 3-4 p.m., 6 PM EST, 1:02:45, Mon-Fri.
#include <array>

#include "text/speech/context.h"
#include "text/speech/numbers.h"
#include "text/speech/readers.h"

namespace syrinx::text {
namespace {

std::string minute_words(int minutes) { return (minutes < 10 ? "oh " : "") + cardinal(std::to_string(minutes)); }

// "am", "p.m.", behind white space or not: end, or 0; `letters` is "AM" or "PM".
size_t half_of_day(const Input& in, size_t i, std::string& letters) {
  if (in.at(i) == ' ') ++i;
  const bool pm = in.matches(i, "p");
  if (!pm && !in.matches(i, "a")) return 0;
  const bool points = in.at(i + 1) == '.';
  const size_t m = points ? i + 2 : i + 1;
  if (!in.matches(m, "m") || !in.ends_word(m + 1)) return 0;
  letters = pm ? "PM" : "AM";
  if (!points || in.at(m + 1) != '.') return m + 1;
  // The point stays where it also ends the sentence.
  const size_t next = in.skip_spaces(m + 2);
  return next >= in.size() || (in.space(m + 2) && in.upper(next)) ? m + 1 : m + 2;
}

struct Time {
  std::string words;
  std::string half;     // "AM", "PM", or nothing
  size_t end = 0;       // behind the digits
  size_t half_end = 0;  // behind the half of the day; 0: none
  int hours = 0;
  bool has_minutes = false;
  size_t behind() const { return half_end > 0 ? half_end : end; }
};

// "3:05 pm", "3.30pm", "15:30", "1:02:45", "5 p.m."; a number alone too, where `may_be_bare`.
std::optional<Time> parse_time(const Input& in, size_t i, bool may_be_bare) {
  const size_t hours_end = in.digits_end(i);
  if (hours_end == i || hours_end - i > 2) return std::nullopt;
  Time time;
  time.hours = in.value(i, hours_end);
  const std::string hour_words = cardinal(std::to_string(time.hours));
  const char32_t sign = in.at(hours_end);
  const size_t minutes_end = in.digits_end(hours_end + 1);
  if ((sign == ':' || sign == '.') && minutes_end == hours_end + 3) {
    const int minutes = in.value(hours_end + 1, minutes_end);
    time.half_end = half_of_day(in, minutes_end, time.half);
    const bool ends = in.ends_word(minutes_end) || time.half_end > 0;
    if (time.hours > 24 || minutes > 59 || !ends || (sign == '.' && (time.half_end == 0 || time.hours > 12)))
      return std::nullopt;
    time.end = minutes_end;
    time.has_minutes = true;
    time.words = hour_words;
    if (sign == ':' && in.at(minutes_end) == ':' && in.digits_end(minutes_end + 1) == minutes_end + 3) {
      const int seconds = in.value(minutes_end + 1, minutes_end + 3);
      time.words += " " + minute_words(minutes) + " " + minute_words(seconds);
      time.end += 3;
      time.half_end = half_of_day(in, time.end, time.half);
    } else if (minutes > 0) {
      time.words += " " + minute_words(minutes);
    } else if (time.half_end == 0) {
      time.words += time.hours > 12 || time.hours == 0 ? " hundred" : " o'clock";
    }
    return time;
  }
  time.half_end = half_of_day(in, hours_end, time.half);
  if (time.half_end == 0 && (!may_be_bare || !in.ends_word(hours_end) || sign == ':')) return std::nullopt;
  if (time.hours < 1 || time.hours > 12) return std::nullopt;
  time.words = hour_words;
  time.end = hours_end;
  return time;
}

// "EST" behind a time; end, or 0.
size_t zone_end(const Input& in, size_t i) {
  static constexpr std::string_view kZones =
      " est edt et cst cdt ct mst mdt mt pst pdt pt gmt utc bst cet cest eet eest ist jst kst aest aedt acst awst nzst "
      "nzdt hst akst ";
  if (in.at(i) != ' ' || !in.upper(i + 1)) return 0;
  const size_t end = in.letters_end(i + 1);
  const std::string zone = in.ascii(i + 1, end);
  return zone == ascii_upper(zone) && is_listed(zone, kZones) ? end : 0;
}

void say_time(size_t begin, const Time& time, Output& out) {
  out.numbers(time.words, begin, time.end);
  if (time.half_end > 0) out.letters(time.half, time.end, time.half_end);
}

// The dash of a range of times and where the second one begins; 0: none.
size_t behind_dash(const Input& in, size_t i) {
  const size_t at = in.at(i) == ' ' ? i + 1 : i;
  if (!in.dash(at)) return 0;
  return in.at(at + 1) == ' ' ? at + 2 : at + 1;
}

struct Day {
  std::string_view name;
  size_t end = 0;  // without a full stop
  bool is_short = false;
};

Day parse_day(const Input& in, size_t i) {
  static constexpr std::array<std::string_view, 7> kDays = {"Monday", "Tuesday",  "Wednesday", "Thursday",
                                                            "Friday", "Saturday", "Sunday"};
  if (!in.upper(i)) return {};
  const size_t end = in.letters_end(i);
  const std::string word = in.ascii(i, end);
  for (const std::string_view day : kDays) {
    if (word == day) return {day, end, false};
    const bool is_short =
        word == day.substr(0, 3) || word == day.substr(0, 4) || (day == "Thursday" && word == "Thurs");
    if (is_short) return {day, end, true};
  }
  return {};
}

// The name of a month as a day's: "Jan", "January".
Day parse_month_name(const Input& in, size_t i) {
  const Month month = parse_month(in, i);
  if (month.number == 0) return {};
  const size_t end = in.letters_end(i);
  const std::string_view name = month_name(month.number);
  return {name, end, end - i < name.size()};
}

size_t behind_stop(const Input& in, size_t i) { return in.at(i) == '.' ? i + 1 : i; }

// "Mon-Fri", "Jan.–Mar."; `parse` knows the names.
size_t read_name_range(const Input& in, size_t i, Day (*parse)(const Input&, size_t), Output& out) {
  const Day first = parse(in, i);
  if (first.name.empty()) return 0;
  const size_t dash = behind_stop(in, first.end);
  if (!in.dash(dash)) return 0;
  const Day last = parse(in, dash + 1);
  if (last.name.empty() || !in.ends_word(last.end)) return 0;
  const size_t end = sentence_ends(in, behind_stop(in, last.end)) ? last.end : behind_stop(in, last.end);
  out.word(first.name, i, first.end);
  out.numbers("to", dash, dash + 1);
  out.word(last.name, dash + 1, end);
  return end;
}

bool is_day_before(const Input& in, size_t i) {
  const Near word = word_before(in, i);
  return !word.word.empty() && !parse_day(in, word.begin).name.empty();
}

}  // namespace

std::string clock_words(int hours, int minutes) {
  const std::string words = cardinal(std::to_string(hours));
  if (minutes > 0) return words + " " + minute_words(minutes);
  return words + (hours > 12 || hours == 0 ? " hundred" : " o'clock");
}

size_t read_day_name(const Input& in, size_t i, const NormalizeOptions&, Output& out) {
  if (!in.upper(i) || !in.begins_word(i)) return 0;
  if (const size_t end = read_name_range(in, i, parse_day, out); end > 0) return end;
  if (const size_t end = read_name_range(in, i, parse_month_name, out); end > 0) return end;
  const Day day = parse_day(in, i);
  if (!day.is_short || in.at(day.end) != '.') return 0;
  // "He sat. Then": in the middle of a sentence only.
  const bool goes_on = in.at(day.end + 1) == ',' || in.at(day.end + 1) == ';' || in.at(day.end + 1) == ')' ||
                       (in.at(day.end + 1) == ' ' && (in.lower(day.end + 2) || in.digit(day.end + 2)));
  const Near before = word_before(in, i);
  const bool after_day = before.is(" and or to ") && is_day_before(in, before.begin);  // not "the moon and Sun."
  const bool after_word = after_day || before.is(" on by until till next last this every from since ");
  if (!goes_on && !after_word) return 0;
  const size_t end = sentence_ends(in, day.end + 1) ? day.end : day.end + 1;
  out.word(day.name, i, end);
  return end;
}

size_t read_time(const Input& in, size_t i, const NormalizeOptions&, Output& out) {
  if (!in.digit(i) || !in.begins_word(i) || (i > 1 && in.at(i - 1) == '.' && in.digit(i - 2))) return 0;
  const size_t hours_end = in.digits_end(i);
  if (in.at(hours_end) == ':') {
    const size_t end = in.digits_end(hours_end + 1);
    if (end == hours_end + 2 && hours_end - i <= 2 && in.ends_word(end) && !(in.at(end) == '.' && in.digit(end + 1))) {
      out.numbers(cardinal(in.ascii(i, hours_end)) + " to " + cardinal(in.ascii(hours_end + 1, end)), i,
                  end);  // "16:9"
      return end;
    }
  }
  auto first = parse_time(in, i, true);
  if (!first) return 0;
  if (const size_t second = behind_dash(in, first->behind()); second > 0) {
    const auto last = parse_time(in, second, first->has_minutes || first->half_end > 0);
    const bool sure = last && (last->has_minutes || last->half_end > 0 || first->has_minutes);
    if (sure && !in.digit(last->end) && in.at(last->end) != '/' && in.at(last->end) != '%') {
      out.rule("range");
      say_time(i, *first, out);
      out.numbers("to", first->behind(), second);
      say_time(second, *last, out);
      return last->behind();
    }
  }
  if (!first->has_minutes && first->half_end == 0) return 0;
  say_time(i, *first, out);
  const size_t zone = zone_end(in, first->behind());
  if (zone == 0) return first->behind();
  out.letters(in.ascii(first->behind() + 1, zone), first->behind() + 1, zone);
  return zone;
}

}  // namespace syrinx::text
