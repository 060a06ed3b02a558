// JSON values, with a bounded parser and a writer.  The parsing library stays behind json.cc.
// A value owns everything below it.  Lookups return null pointers instead of throwing; numbers keep the difference
// between whole (i64) and real, and whole ones beyond i64 are both natural (u64) and real.  An object keeps the order
// of the file and has no duplicate keys.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/result.h"

namespace syrinx {

struct JsonMember;

class Json {
 public:
  using Array = std::vector<Json>;
  using Object = std::vector<JsonMember>;

  // Implicit on purpose: values are written as they are.
  Json();  // null
  Json(bool value);
  Json(int value);
  Json(int64_t value);
  Json(size_t value);
  Json(double value);
  Json(std::string value);
  Json(std::string_view value);
  Json(const char* value);
  Json(Array value);
  Json(Object value);
  Json(const Json& other);
  Json(Json&& other) noexcept;
  Json& operator=(const Json& other);
  Json& operator=(Json&& other) noexcept;
  ~Json();

  bool is_null() const;
  // The value if it is of that kind, else null.
  const bool* boolean() const;
  const int64_t* whole() const;
  const double* real() const;  // only numbers that are not whole(), the nearest one to those that are too large for it
  std::optional<uint64_t> natural() const;  // whole ones from 0 to 2^64 - 1
  const std::string* string() const;
  const Array* array() const;
  const Object* object() const;
  Array* array();
  Object* object();

  // The member of an object, or null when there is none or this is no object.  Linear in the number of members.
  const Json* find(std::string_view key) const;
  // Adds a member; a value that is no object becomes an empty one first.  For building output.
  Json& set(std::string key, Json value);

  // On one line; bytes that are not UTF-8 become U+FFFD, numbers that are not finite become null.  Control characters,
  // U+0080 to U+009F among them, are escaped: a terminal takes no orders from it.
  std::string dump() const;

 private:
  struct Large {  // whole, and more than an int64_t holds
    uint64_t whole;
    double real;
  };
  std::variant<std::monostate, bool, int64_t, double, std::string, Array, Object, Large> value_;
};

struct JsonMember {
  std::string key;
  Json value;
};

struct JsonLimits {
  size_t max_bytes = size_t{64} << 20;
  size_t max_depth = 64;
  size_t max_values = SIZE_MAX;  // each takes some 40 bytes, however short it is written
  // One string, number or run of blanks; the parser takes up to 35 times its size in memory.
  size_t max_piece_bytes = SIZE_MAX;
  // The same without strings, which take a few times theirs and may have to be long.
  size_t max_bare_bytes = SIZE_MAX;
  // A surrogate without its other half (RFC 8259, section 8.2), as of a text that was cut within an emoji, is taken as
  // U+FFFD; else it is malformed.
  bool takes_lone_surrogates = false;
  bool drops_lone_surrogates = false;  // the same, but that nothing stands for it
};

// A member of the outermost object that is an array of whole numbers from 0 to 255: as values they would take many
// times the memory.
struct JsonBytes {
  std::string key;
  size_t max_bytes = SIZE_MAX;
  std::optional<std::string> bytes = {};  // what was found; absent: there is no such member
};

// `name` stands in messages.  kDataLoss on malformed text or duplicate keys, kLimitExceeded beyond `limits`.
Result<Json> parse_json(std::string_view text, const std::string& name, const JsonLimits& limits = {});
// The same, but that the array of `bytes` goes there, and null stands in its place.  kDataLoss also where it holds
// anything else; kLimitExceeded also beyond its own limit.
Result<Json> parse_json(std::string_view text, const std::string& name, const JsonLimits& limits, JsonBytes& bytes);

}  // namespace syrinx
