// The wire format of Protocol Buffers, field by field, over unchecked bytes.  A message is a run of
// fields; what a field's number means is the reader's to know.
#pragma once

#include <utility>

#include "base/byte_reader.h"
#include "base/result.h"

namespace syrinx {

struct ProtoField {
  enum Wire { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

  uint32_t number = 0;
  int wire = kVarint;
  uint64_t varint = 0;
  std::span<const std::byte> bytes;  // also the 4 or 8 bytes of fixed values

  bool is_bytes() const { return wire == kBytes; }
  bool is_varint() const { return wire == kVarint; }
  std::string_view text() const { return {reinterpret_cast<const char*>(bytes.data()), bytes.size()}; }
};

// Reads the next field; false at the end of the message and when `reader` has failed, which it does on a field that
// does not fit, has the number 0 or the long-forgotten form of a group.
inline bool next_field(ByteReader& reader, ProtoField& field) {
  if (reader.at_end() || reader.failed()) return false;
  const uint64_t tag = reader.varint();
  field = ProtoField{};
  field.number = static_cast<uint32_t>(tag >> 3);
  field.wire = static_cast<int>(tag & 7);
  bool known = tag >> 3 != 0 && tag >> 32 == 0;
  switch (field.wire) {
    case ProtoField::kVarint: field.varint = reader.varint(); break;
    case ProtoField::kFixed64: field.bytes = reader.take(8); break;
    case ProtoField::kBytes: field.bytes = reader.take(reader.varint()); break;
    case ProtoField::kFixed32: field.bytes = reader.take(4); break;
    default: known = false;
  }
  if (!known) reader.take(UINT64_MAX);  // fails the reader
  return !reader.failed();
}

// Hands each field of a message to `handle`, which returns a Status, until one fails.  `misfit()` makes the error of a
// message that cannot be cut into fields.
template <class Handler, class Misfit>
Status each_field(std::span<const std::byte> message, Handler&& handle, Misfit&& misfit) {
  ByteReader reader(message);
  ProtoField field;
  while (next_field(reader, field)) SYRINX_TRY_VOID(handle(std::as_const(field)));
  if (reader.failed()) return misfit();
  return {};
}

}  // namespace syrinx
