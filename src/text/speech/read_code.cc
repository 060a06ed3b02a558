// Code and names of files in running text: main.cpp, Node.js, .NET, C#, max_retries, getUserName, /etc/hosts, M.2.
#include <algorithm>
#include <array>

#include "text/speech/context.h"
#include "text/speech/numbers.h"
#include "text/speech/readers.h"

namespace syrinx::text {
namespace {

constexpr size_t kMostName = 80;  // characters of a name
constexpr size_t kMostModelLetters = 3, kMostModelDigits = 3;

// Endings of files: those that are spelled, and those that are words.  Source: the suffixes of shared-mime-info 2.2.
constexpr std::string_view kSpelledEndings =
    " cpp cc cxx hpp hh c h py js ts jsx tsx rb rs sh txt html htm css scss xml svg pdf csv tsv md rst sql php pl kt "
    "cs vb lua asm ps wav mp3 mp4 mkv avi mov flac ogg png jpg gif bmp tif tiff webp psd ico exe dll so dylib msi "
    "deb rpm iso img xls xlsx ppt pptx odt rtf tex bib cfg cnf yml gz bz2 xz tgz rar jar apk ipa dmg pem crt cer db "
    "sqlite ini ipynb npz npy pt onnx gguf ttf otf srt vtt eml ics kml gpx ";
constexpr std::string_view kSaidEndings =
    " json yaml toml jpeg mpeg zip tar bat log conf config lock go swift java dart scala vue bin bak tmp dat doc "
    "docx env key app patch diff make cmake gradle properties template backup old ";
// Those that may as well begin a sentence behind a full stop without a space: "I left.go home".
constexpr std::string_view kPlainEndings =
    " so c h ps zip tar bat log lock go swift scala key app patch make properties template backup old ";
// A file is spoken of behind these, and before the last two.
constexpr std::string_view kBeforeFile =
    " file files open opens opened edit edited editing run running compile called named rename delete download "
    "extract unzip save saved load see in from into import via ";
constexpr std::string_view kBehindFile = " file files ";
constexpr std::string_view kFileNames =
    " main index app server client config test tests util utils handler handlers router routes model models types "
    "package cargo poetry yarn setup build data private public error access debug system output dump backup archive "
    "flake gemfile composer catalog makefile ";

bool is_name_sign(char32_t c) { return c == '_' || c == '-' || c == '.'; }

bool has_vowel(std::string_view word) { return word.find_first_of("aeiouyAEIOUY") != std::string_view::npos; }

// A piece of a name: letters or digits.
void say_piece(const Input& in, size_t begin, size_t end, Output& out) {
  const std::string piece = in.ascii(begin, end);
  if (in.digit(begin)) {
    out.numbers(piece.size() <= 2 && piece[0] != '0' ? cardinal(piece) : one_by_one(piece), begin, end);
  } else if (ascii_lower(piece) == "readme") {
    out.word("read", begin, end);
    out.word("me", begin, end);
  } else if (piece.size() == 1 || !has_vowel(piece) || is_listed(piece, " etc ssh usr lib src ")) {
    out.letters(ascii_upper(piece), begin, end);
  } else {
    out.word(piece, begin, end);
  }
}

std::string_view sign_word(char32_t c) {
  switch (c) {
    case '.': return "dot";
    case '_': return "underscore";
    case '-': return "dash";
    case '/': return "slash";
    case '~': return "tilde";
    default: return "at";
  }
}

// "getUserName": where the small letter ends before a capital; else `end`.
size_t hump(const Input& in, size_t i, size_t end) {
  while (i + 1 < end && !(in.lower(i) && in.upper(i + 1))) ++i;
  return i + 1 < end ? i + 1 : end;
}

void say_name(const Input& in, size_t begin, size_t end, Output& out) {
  for (size_t i = begin; i < end;) {
    if (in.letter(i)) {
      const size_t letters = std::min(in.letters_end(i), end);
      const size_t next = hump(in, i, letters);
      say_piece(in, i, next, out);
      i = next;
    } else if (in.digit(i)) {
      const size_t digits = std::min(in.digits_end(i), end);
      say_piece(in, i, digits, out);
      i = digits;
    } else {
      out.numbers(sign_word(in.at(i)), i, i + 1);
      ++i;
    }
  }
}

size_t name_end(const Input& in, size_t i) {
  size_t end = i;
  while (end - i < kMostName && (in.alnum(end) || (is_name_sign(in.at(end)) && in.alnum(end + 1)))) ++end;
  return end;
}

void say_ending(const Input& in, size_t begin, size_t end, bool spelled, Output& out) {
  const std::string ending = in.ascii(begin, end);
  if (ending == "docx") {
    out.word("doc", begin, end);
    out.letters("X", begin, end);
  } else if (spelled) {
    for (size_t i = begin; i < end;) {
      const size_t next = in.letter(i) ? in.letters_end(i) : in.digits_end(i);
      if (in.letter(i)) {
        out.letters(ascii_upper(in.ascii(i, next)), i, next);
      } else {
        out.numbers(cardinal(in.ascii(i, next)), i, next);
      }
      i = next;
    }
  } else if (ending == "json" || ending == "yaml" || ending == "jpeg" || ending == "mpeg") {
    out.rule({});  // the table of acronyms reads it
    out.word(ascii_upper(ending), begin, end);
  } else {
    out.word(ending, begin, end);
  }
}

// Is "left.go" a file and no missing space: by its name, or by a word beside it?
bool is_surely_file(const Input& in, size_t i, size_t point, size_t end) {
  for (size_t k = i; k < point; ++k) {
    if (!in.letter(k) || (k > i && in.upper(k))) return true;
  }
  return is_listed(in.ascii(i, point), kFileNames) || word_before(in, i).is(kBeforeFile) ||
         word_after(in, end).is(kBehindFile);
}

// "main.cpp", "Node.js", "draft_two.pdf", "backup.tar.gz".
size_t read_file(const Input& in, size_t i, size_t end, Output& out) {
  size_t point = end - 1;
  while (point > i && in.at(point) != '.') --point;
  if (point == i || !in.lower(point + 1)) return 0;
  const std::string ending = in.ascii(point + 1, end);
  const bool spelled = is_listed(ending, kSpelledEndings);
  if (!spelled && !is_listed(ending, kSaidEndings)) return 0;
  if (is_listed(ending, kPlainEndings) && !is_surely_file(in, i, point, end)) return 0;
  // "Node.js" is a name: its point says nothing.
  const bool is_library = ending == "js" && in.upper(i) && in.letters_end(i) == point;
  say_name(in, i, point, out);
  if (!is_library) out.numbers("dot", point, point + 1);
  say_ending(in, point + 1, end, spelled, out);
  return end;
}

// "max_retries", "getUserName".
size_t read_identifier(const Input& in, size_t i, size_t end, Output& out) {
  size_t underscores = 0;
  size_t humps = 0;
  size_t letters = 0;
  for (size_t k = i; k < end; ++k) {
    if (in.at(k) == '_') ++underscores;
    if (in.at(k) == '.') return 0;
    letters += in.letter(k) ? 1 : 0;
    if (k > i + 1 && in.upper(k) && in.lower(k - 1) && in.lower(k + 1)) ++humps;
  }
  const bool is_camel = humps > 0 && in.lower(i) && in.lower(i + 1);
  if (letters == 0 || (underscores == 0 && !is_camel)) return 0;
  say_name(in, i, end, out);
  return end;
}

// "/etc/hosts", "~/notes", "./run".
size_t read_path(const Input& in, size_t i, Output& out) {
  const bool starts = i == 0 || in.space(i - 1) || in.at(i - 1) == '(' || in.at(i - 1) == '"' || in.at(i - 1) == '\'';
  const bool is_prefixed = in.at(i) == '~' || in.at(i) == '.';
  const size_t slash = is_prefixed ? i + 1 : i;
  if (!starts || in.at(slash) != '/' || !in.letter(slash + 1)) return 0;
  size_t end = slash;
  while (end - i < kMostName &&
         (in.alnum(end) || ((is_name_sign(in.at(end)) || in.at(end) == '/') && in.alnum(end + 1))))
    ++end;
  if (in.letters_end(slash + 1) == slash + 2 && end == slash + 2) return 0;  // "/ x"
  say_name(in, i, end, out);
  return in.at(end) == '/' ? end + 1 : end;
}

// ".NET", "ASP.NET", ".env", "M.2".
size_t read_dotted(const Input& in, size_t i, Output& out) {
  if (in.at(i) == '.') {
    const bool starts = i == 0 || in.space(i - 1) || in.at(i - 1) == '(';
    const size_t end = in.letters_end(i + 1);
    if (!starts || end - i < 3 || !in.ends_word(end) || end - i > kMostName) return 0;
    // "He left .Then", "so .and": a space on the wrong side.
    if ((in.upper(i + 1) && in.lower(i + 2)) || is_function_word(ascii_lower(in.ascii(i + 1, end)))) return 0;
    out.numbers("dot", i, i + 1);
    out.word(ascii_lower(in.ascii(i + 1, end)), i + 1, end);
    return end;
  }
  const size_t end = in.letters_end(i);
  if (in.at(end) != '.' || !in.upper(i)) return 0;
  if (in.ascii(end, end + 4) == ".NET" && in.ends_word(end + 4)) {
    out.letters(in.ascii(i, end), i, end);
    out.numbers("dot", end, end + 1);
    out.word("net", end + 1, end + 4);
    return end + 4;
  }
  if (end == i + 1 && in.digit(end + 1) && in.digits_end(end + 1) == end + 2 && in.ends_word(end + 2)) {
    out.letters(in.ascii(i, end), i, end);
    out.numbers("dot " + cardinal(in.ascii(end + 1, end + 2)), end, end + 2);
    return end + 2;
  }
  return 0;
}

// "F-16s", "MiG-29s": several of a model.
size_t read_models(const Input& in, size_t i, Output& out) {
  const size_t letters = in.letters_end(i);
  if (!in.upper(i) || letters - i > kMostModelLetters || in.at(letters) != '-') return 0;
  const std::string name = in.ascii(i, letters);
  const size_t digits = in.digits_end(letters + 1);
  const bool is_plural = digits > letters + 1 && digits - letters <= kMostModelDigits + 1 && in.at(digits) == 's' &&
                         in.ends_word(digits + 1);
  if (!is_plural || (name != ascii_upper(name) && name != "MiG")) return 0;
  out.rule("number");
  if (name == "MiG") {
    out.word(name, i, letters);
  } else {
    out.letters(name, i, letters);
  }
  out.numbers(plural(in_a_name(in.ascii(letters + 1, digits))), letters + 1, digits + 1);
  return digits + 1;
}

}  // namespace

size_t read_code(const Input& in, size_t i, const NormalizeOptions&, Output& out) {
  const char32_t c = in.at(i);
  if (c == '/' || c == '~' || c == '.') {
    if (const size_t end = read_path(in, i, out); end > 0) return end;
  }
  if (c == '.') return read_dotted(in, i, out);
  if (c == '_' && in.letter(i + 1) && in.begins_word(i)) return 0;
  if (!in.alnum(i) || !in.begins_word(i)) return 0;
  if (i > 0 && is_name_sign(in.at(i - 1)) && i > 1 && in.alnum(i - 2)) return 0;  // within a run that was looked at
  // "C#", "F#"
  if (in.upper(i) && in.at(i + 1) == '#' && !in.alnum(i + 2)) {
    out.letters(in.ascii(i, i + 1), i, i + 1);
    out.numbers("sharp", i + 1, i + 2);
    return i + 2;
  }
  if (const size_t end = read_dotted(in, i, out); end > 0) return end;
  if (const size_t end = read_models(in, i, out); end > 0) return end;
  const size_t end = name_end(in, i);
  if (end - i >= kMostName || !in.ends_word(end)) return 0;
  if (const size_t behind = read_file(in, i, end, out); behind > 0) return behind;
  return read_identifier(in, i, end, out);
}

namespace {

// The symbols of the elements (IUPAC, 2022).
constexpr std::string_view kElements =
    " H He Li Be B C N O F Ne Na Mg Al Si P S Cl Ar K Ca Sc Ti V Cr Mn Fe Co Ni Cu Zn Ga Ge As Se Br Kr Rb Sr Y Zr "
    "Nb Mo Tc Ru Rh Pd Ag Cd In Sn Sb Te I Xe Cs Ba La Ce Pr Nd Pm Sm Eu Gd Tb Dy Ho Er Tm Yb Lu Hf Ta W Re Os Ir Pt "
    "Au Hg Tl Pb Bi Po At Rn Fr Ra Ac Th Pa U Np Pu Am Cm Bk Cf Es Fm Md No Lr Rf Db Sg Bh Hs Mt Ds Rg Cn Nh Fl Mc "
    "Lv Ts Og ";

// Length of the element's symbol at i, the longer first; 0: none.
size_t element_length(const Input& in, size_t i) {
  if (!in.upper(i)) return 0;
  for (const size_t length : {size_t{2}, size_t{1}}) {
    if (length == 2 && !in.lower(i + 1)) continue;
    if (kElements.find(" " + in.ascii(i, i + length) + " ") != std::string_view::npos) return length;
  }
  return 0;
}

struct Formula {
  size_t end = 0;
  size_t elements = 0, digits = 0, long_symbols = 0;
};

Formula parse_formula(const Input& in, size_t i) {
  Formula formula;
  size_t at = i;
  while (at - i < kMostName) {
    if (const size_t length = element_length(in, at); length > 0) {
      ++formula.elements;
      if (length == 2) ++formula.long_symbols;
      at += length;
    } else if ((in.at(at) == '(' && in.upper(at + 1)) || (in.at(at) == ')' && in.digit(at + 1))) {
      ++at;
    } else if (in.digit(at) && at > i && in.digits_end(at) - at <= 2) {
      ++formula.digits;
      at = in.digits_end(at);
    } else {
      break;
    }
  }
  formula.end = at;
  return formula;
}

}  // namespace

// "H2SO4", "NaCl": letters one by one, digits as numbers.
size_t read_formula(const Input& in, size_t i, const NormalizeOptions&, Output& out) {
  if (!in.upper(i) || !in.begins_word(i) || element_length(in, i) == 0) return 0;
  const Formula formula = parse_formula(in, i);
  if (!in.ends_word(formula.end) || formula.elements < 2) return 0;
  // Two elements, and a digit or a symbol with a small letter that is not alone: "NaCl", not "CO" or "He".
  if (formula.digits == 0 && formula.long_symbols == 0) return 0;
  // "UFOs", "PCs": the plural of an acronym, and no osmium.
  if (formula.digits == 0 && formula.long_symbols == 1 && in.at(formula.end - 1) == 's') return 0;
  if (in.ascii(i, formula.end) == "NaN") return 0;
  for (size_t at = i; at < formula.end;) {
    size_t end = at;
    while (end < formula.end && in.letter(end)) ++end;
    if (end > at) {
      out.letters(ascii_upper(in.ascii(at, end)), at, end);
    } else if (in.digit(at)) {
      end = in.digits_end(at);
      out.numbers(cardinal(in.ascii(at, end)), at, end);
    } else {
      ++end;
    }
    at = end;
  }
  return formula.end;
}

// "(ii)", "(a)": the marks of items.
size_t read_item_mark(const Input& in, size_t i, const NormalizeOptions&, Output& out) {
  if (in.at(i) != '(' || !in.letter(i + 1) || (i > 0 && !in.space(i - 1))) return 0;
  const size_t end = in.letters_end(i + 1);
  if (in.at(end) != ')' || end - i > 6 || !in.space(end + 1)) return 0;
  const std::string letters = in.ascii(i + 1, end);
  const int value = roman_value(ascii_upper(letters));
  const bool opens = i == 0 || in.at(i - 1) == '\n' || (i > 1 && in.at(i - 2) != ' ' && !in.alnum(i - 2));
  const bool is_roman =
      letters == ascii_lower(letters) && value > 0 && (is_in_list(in, i, end) || (opens && letters == "i"));
  if (!is_roman && (letters.size() > 1 || !opens)) return 0;
  out.punctuation('(', i, i + 1);
  if (is_roman) {
    out.numbers(cardinal(std::to_string(value)), i + 1, end);
  } else {
    out.letters(letters, i + 1, end);
  }
  out.punctuation(')', end, end + 1);
  return end + 1;
}

}  // namespace syrinx::text
