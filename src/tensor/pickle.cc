#include "tensor/pickle.h"

#include <algorithm>
#include <bit>
#include <iterator>
#include <optional>
#include <unordered_map>

#include "base/byte_reader.h"

namespace syrinx {
namespace {

using Kind = PickleValue::Kind;

constexpr size_t kMaxBytes = size_t{16} << 20;
constexpr size_t kMaxValues = size_t{1} << 20;
constexpr size_t kMaxItems = size_t{4} << 20;  // of all containers together
constexpr size_t kMaxArguments = 16;
constexpr size_t kMaxMarks = 4096;
constexpr uint8_t kMaxProtocol = 4;

// The allowed names.  Storage classes carry their element type behind kStorageBase.
enum AllowedName : int64_t { kRebuildTensor, kRebuildParameter, kOrderedDict, kSize, kStorageBase };

std::optional<int64_t> allowed_name(std::string_view module, std::string_view name) {
  struct Known {
    std::string_view module, name;
    int64_t id;
  };
  const auto storage = [](DType dtype) { return kStorageBase + static_cast<int64_t>(dtype); };
  const Known known[] = {
      {"torch._utils", "_rebuild_tensor_v2", kRebuildTensor}, {"torch._utils", "_rebuild_parameter", kRebuildParameter},
      {"collections", "OrderedDict", kOrderedDict},           {"torch", "Size", kSize},
      {"torch", "DoubleStorage", storage(DType::kF64)},       {"torch", "FloatStorage", storage(DType::kF32)},
      {"torch", "HalfStorage", storage(DType::kF16)},         {"torch", "BFloat16Storage", storage(DType::kBF16)},
      {"torch", "LongStorage", storage(DType::kI64)},         {"torch", "IntStorage", storage(DType::kI32)},
      {"torch", "ShortStorage", storage(DType::kI16)},        {"torch", "CharStorage", storage(DType::kI8)},
      {"torch", "ByteStorage", storage(DType::kU8)},          {"torch", "BoolStorage", storage(DType::kBool)}};
  for (const Known& candidate : known)
    if (candidate.module == module && candidate.name == name) return candidate.id;
  return std::nullopt;
}

// Classes of what trainers keep beside the weights.  Of Python's own only those that are data.
bool is_settings(std::string_view module, std::string_view name) {
  constexpr std::string_view kPackages[] = {"omegaconf", "nemo", "lightning", "pytorch_lightning", "lightning_fabric"};
  for (const std::string_view package : kPackages)
    if (module.starts_with(package) && (module.size() == package.size() || module[package.size()] == '.')) return true;
  constexpr PickleObject kKnown[] = {{"typing", "Any"},        {"collections", "defaultdict"},
                                     {"collections", "deque"}, {"argparse", "Namespace"},
                                     {"pathlib", "PosixPath"}, {"pathlib", "WindowsPath"}};
  for (const PickleObject& known : kKnown)
    if (known.module == module && known.name == name) return true;
  constexpr std::string_view kPlain[] = {"dict",  "list",      "tuple",   "set",   "frozenset", "int",
                                         "long",  "float",     "complex", "bool",  "str",       "unicode",
                                         "bytes", "bytearray", "slice",   "object"};
  return (module == "builtins" || module == "__builtin__") && std::ranges::find(kPlain, name) != std::end(kPlain);
}

class Machine {
 public:
  Machine(std::span<const std::byte> bytes, const std::string& name) : reader_(bytes), name_(name) {}

  Result<PickleGraph> run() {
    while (error_.message.empty()) {
      const uint8_t op = reader_.u8();
      if (reader_.failed()) break;
      if (op == '.') {
        graph_.root = pop();
        if (error_.message.empty() && !reader_.failed()) return std::move(graph_);
        break;
      }
      if (!(number(op) || text(op) || container(op) || stack(op) || call(op)))
        refuse(fmt::format("opcode 0x{:02x} is not one that tensor files need", op));
      if (graph_.values.size() > kMaxValues)
        set_error(Code::kLimitExceeded, fmt::format("more than {} values", kMaxValues));
      if (reader_.failed()) break;
    }
    if (error_.message.empty()) malformed("it ends early");
    return tl::unexpected(error_);
  }

 private:
  // --- errors: the first one stays
  void set_error(Code code, const std::string& what) {
    if (error_.message.empty())
      error_ = Error{code, fmt::format("'{}': the pickle inside is refused: {}", name_, what)};
  }
  void malformed(const std::string& what) { set_error(Code::kDataLoss, what); }
  void refuse(const std::string& what) { set_error(Code::kUnsupported, what); }

  // --- the stack
  PickleValue& value(uint32_t index) { return graph_.values[index]; }
  void push(PickleValue fresh) {
    stack_.push_back(static_cast<uint32_t>(graph_.values.size()));
    graph_.values.push_back(std::move(fresh));
  }
  void push_kind(Kind kind, int64_t whole = 0) {
    PickleValue fresh;
    fresh.kind = kind;
    fresh.whole = whole;
    push(std::move(fresh));
  }
  // Below the last mark nothing may be taken.  After an error the index is 0, which exists once anything was pushed.
  uint32_t pop() {
    const size_t floor = marks_.empty() ? 0 : marks_.back();
    if (stack_.size() <= floor) {
      malformed("its stack runs empty");
      if (graph_.values.empty()) graph_.values.emplace_back();
      return 0;
    }
    const uint32_t top = stack_.back();
    stack_.pop_back();
    return top;
  }
  std::vector<uint32_t> pop_to_mark() {
    if (marks_.empty()) {
      malformed("a mark is missing");
      return {};
    }
    std::vector<uint32_t> items(stack_.begin() + static_cast<std::ptrdiff_t>(marks_.back()), stack_.end());
    stack_.resize(marks_.back());
    marks_.pop_back();
    return items;
  }

  // --- opcodes, in groups; each returns false for an opcode that is not its own
  bool number(uint8_t op) {
    switch (op) {
      case 'N': push_kind(Kind::kNone); return true;
      case 0x88:
      case 0x89: push_kind(Kind::kBool, op == 0x88 ? 1 : 0); return true;
      case 'J': push_kind(Kind::kWhole, static_cast<int32_t>(reader_.u32())); return true;
      case 'K': push_kind(Kind::kWhole, reader_.u8()); return true;
      case 'M': push_kind(Kind::kWhole, reader_.u16()); return true;
      case 0x8a: push_long(reader_.u8()); return true;
      case 'G': {  // the only big-endian number of the format
        PickleValue fresh;
        fresh.kind = Kind::kReal;
        fresh.real = std::bit_cast<double>(__builtin_bswap64(reader_.u64()));
        push(std::move(fresh));
        return true;
      }
      default: return false;
    }
  }
  void push_long(size_t size) {
    const auto digits = reader_.take(size);
    if (size > 8) return refuse("a whole number of more than 64 bits");
    uint64_t bits = 0;
    for (size_t i = 0; i < digits.size(); ++i) bits |= static_cast<uint64_t>(digits[i]) << (8 * i);
    if (size > 0 && size < 8 && (bits >> (8 * size - 1)) != 0) bits |= ~uint64_t{0} << (8 * size);
    push_kind(Kind::kWhole, static_cast<int64_t>(bits));
  }

  bool text(uint8_t op) {
    uint64_t size = 0;
    switch (op) {
      case 0x8c:  // short text, short bytes, short string of protocol 2
      case 'C':
      case 'U': size = reader_.u8(); break;
      case 'X':
      case 'B':
      case 'T': size = reader_.u32(); break;
      case 0x8d:
      case 0x8e: size = reader_.u64(); break;
      default: return false;
    }
    PickleValue fresh;
    fresh.kind = Kind::kText;
    fresh.text = reader_.text(size);
    push(std::move(fresh));
    return true;
  }

  bool container(uint8_t op) {
    switch (op) {
      case ')': push_kind(Kind::kTuple); return true;
      case ']': push_kind(Kind::kList); return true;
      case '}': push_kind(Kind::kDict); return true;
      case 't': push_items(Kind::kTuple, pop_to_mark()); return true;
      case 'l': push_items(Kind::kList, pop_to_mark()); return true;
      case 'd': push_items(Kind::kDict, pop_to_mark()); return true;
      case 0x85:
      case 0x86:
      case 0x87: {
        std::vector<uint32_t> items(op - 0x84u);
        for (size_t i = items.size(); i-- > 0;) items[i] = pop();
        push_items(Kind::kTuple, std::move(items));
        return true;
      }
      case 'a': append(Kind::kList, {pop()}); return true;
      case 'e': append(Kind::kList, pop_to_mark()); return true;
      case 's': {
        const uint32_t item = pop();
        append(Kind::kDict, {pop(), item});
        return true;
      }
      case 'u': append(Kind::kDict, pop_to_mark()); return true;
      default: return false;
    }
  }
  void push_items(Kind kind, std::vector<uint32_t> items) {
    if (kind == Kind::kDict && items.size() % 2 != 0) return malformed("a dictionary has a key without a value");
    if (!count_items(items.size())) return;
    PickleValue fresh;
    fresh.kind = kind;
    fresh.items = std::move(items);
    push(std::move(fresh));
  }
  // One small call may ask for a copy of a large list: the sum is bounded, not only each.
  bool count_items(size_t more) {
    items_ += more;
    if (items_ > kMaxItems) set_error(Code::kLimitExceeded, fmt::format("more than {} items", kMaxItems));
    return items_ <= kMaxItems;
  }
  void append(Kind kind, const std::vector<uint32_t>& items) {
    const uint32_t target = pop();
    stack_.push_back(target);
    if (!error_.message.empty() || value(target).kind == Kind::kObject) return;
    if (value(target).kind != kind || (kind == Kind::kDict && items.size() % 2 != 0))
      return malformed("items are added to something else than a list or dictionary");
    if (!count_items(items.size())) return;
    auto& to = value(target).items;
    to.insert(to.end(), items.begin(), items.end());
  }

  bool stack(uint8_t op) {
    switch (op) {
      case 0x80:
        if (reader_.u8() > kMaxProtocol) refuse(fmt::format("a protocol newer than {}", kMaxProtocol));
        return true;
      case 0x95:  // a frame only groups reads
        reader_.u64();
        return true;
      case '(':
        if (marks_.size() >= kMaxMarks) set_error(Code::kLimitExceeded, "nested too deeply");
        marks_.push_back(stack_.size());
        return true;
      case '0': pop(); return true;
      case '1': pop_to_mark(); return true;
      case '2': {
        const uint32_t top = pop();
        stack_.push_back(top);
        stack_.push_back(top);
        return true;
      }
      case 'q': remember(reader_.u8()); return true;
      case 'r': remember(reader_.u32()); return true;
      case 0x94: remember(static_cast<uint32_t>(memo_.size())); return true;
      case 'h': recall(reader_.u8()); return true;
      case 'j': recall(reader_.u32()); return true;
      default: return false;
    }
  }
  void remember(uint32_t key) {
    const uint32_t top = pop();
    stack_.push_back(top);
    memo_[key] = top;
  }
  void recall(uint32_t key) {
    const auto found = memo_.find(key);
    if (found == memo_.end()) return malformed("it recalls a value that was never stored");
    stack_.push_back(found->second);
  }

  bool call(uint8_t op) {
    switch (op) {
      case 'c': {
        const std::string_view module = reader_.take_until('\n');
        push_name(module, reader_.take_until('\n'));
        return true;
      }
      case 0x93: {
        const uint32_t name = pop();
        const uint32_t module = pop();
        push_name(value(module).text, value(name).text);
        return true;
      }
      case 'Q': push_storage(pop()); return true;
      case 'R': {
        const uint32_t arguments = pop();
        reduce(pop(), arguments);
        return true;
      }
      case 0x81: {
        const uint32_t arguments = pop();
        make_object(pop(), arguments);
        return true;
      }
      case 'b': {  // the state of settings, or of an OrderedDict: torch's "_metadata", of no use here
        pop();
        const uint32_t target = pop();
        if (value(target).kind != Kind::kDict && value(target).kind != Kind::kObject)
          refuse("it sets attributes of something else than a dictionary");
        stack_.push_back(target);
        return true;
      }
      default: return false;
    }
  }
  void push_name(std::string_view module, std::string_view name) {
    if (reader_.failed() || !error_.message.empty()) return;
    if (const auto id = allowed_name(module, name)) return push_kind(Kind::kName, *id);
    if (!is_settings(module, name))
      return refuse(
          fmt::format("it asks for '{}.{}', which tensor files do not need", module.substr(0, 80), name.substr(0, 80)));
    push_kind(Kind::kObject, static_cast<int64_t>(graph_.objects.size()));
    graph_.objects.push_back({module, name});
  }
  // Nothing is made: the new object is as unknown as its class.
  void make_object(uint32_t type, uint32_t arguments) {
    if (!error_.message.empty()) return;
    if (value(arguments).kind != Kind::kTuple) return malformed("an object is made without proper arguments");
    if (value(type).kind != Kind::kObject)
      return refuse("it makes an object of something else than a class of settings");
    push_kind(Kind::kObject, value(type).whole);
  }

  // ('storage', torch.FloatStorage, key, location, elements)
  void push_storage(uint32_t index) {
    const PickleValue& id = value(index);
    const bool shaped = id.kind == Kind::kTuple && id.items.size() == 5 && value(id.items[0]).text == "storage" &&
                        value(id.items[1]).kind == Kind::kName && value(id.items[1]).whole >= kStorageBase &&
                        value(id.items[2]).kind == Kind::kText && value(id.items[4]).kind == Kind::kWhole &&
                        value(id.items[4]).whole >= 0;
    if (!shaped) return malformed("a storage is not described as torch does");
    PickleStorage storage;
    storage.dtype = static_cast<DType>(value(id.items[1]).whole - kStorageBase);
    storage.key = value(id.items[2]).text;
    storage.elements = static_cast<size_t>(value(id.items[4]).whole);
    push_kind(Kind::kStorage, static_cast<int64_t>(graph_.storages.size()));
    graph_.storages.push_back(storage);
  }

  void reduce(uint32_t callable, uint32_t arguments) {
    if (!error_.message.empty()) return;
    if (value(callable).kind == Kind::kObject) return make_object(callable, arguments);
    if (value(callable).kind != Kind::kName || value(arguments).kind != Kind::kTuple ||
        value(arguments).items.size() > kMaxArguments)
      return malformed("a call has no name or no proper arguments");
    const std::vector<uint32_t> items = value(arguments).items;
    switch (value(callable).whole) {
      case kRebuildTensor: return rebuild_tensor(items);
      case kRebuildParameter:
        if (items.empty() || value(items[0]).kind != Kind::kTensor) return malformed("a parameter without a tensor");
        return stack_.push_back(items[0]);
      case kOrderedDict: return ordered_dict(items);
      case kSize:
        if (items.size() != 1) return malformed("a size without its tuple");
        return stack_.push_back(items[0]);
      default: return refuse("it calls a storage class");
    }
  }
  void ordered_dict(const std::vector<uint32_t>& arguments) {
    std::vector<uint32_t> flat;
    if (!arguments.empty() && count_items(value(arguments[0]).items.size()))
      for (const uint32_t pair : value(arguments[0]).items) {
        if (value(pair).items.size() != 2) return malformed("an OrderedDict is not made from pairs");
        flat.insert(flat.end(), value(pair).items.begin(), value(pair).items.end());
      }
    push_items(Kind::kDict, std::move(flat));
  }
  // (storage, offset, dims, strides, requires_grad, hooks[, metadata])
  void rebuild_tensor(const std::vector<uint32_t>& arguments) {
    if (arguments.size() < 4 || value(arguments[0]).kind != Kind::kStorage ||
        value(arguments[1]).kind != Kind::kWhole || value(arguments[1]).whole < 0)
      return malformed("a tensor lacks its storage or offset");
    PickleTensor tensor;
    tensor.storage = graph_.storages[static_cast<size_t>(value(arguments[0]).whole)];
    tensor.offset = static_cast<size_t>(value(arguments[1]).whole);
    if (!sizes(arguments[2], tensor.dims) || !sizes(arguments[3], tensor.strides) ||
        tensor.dims.size() != tensor.strides.size())
      return malformed("a tensor lacks proper dims and strides");
    push_kind(Kind::kTensor, static_cast<int64_t>(graph_.tensors.size()));
    graph_.tensors.push_back(std::move(tensor));
  }
  bool sizes(uint32_t index, std::vector<size_t>& out) {
    const PickleValue& tuple = value(index);
    if (tuple.kind != Kind::kTuple || tuple.items.size() > kMaxRank) return false;
    for (const uint32_t item : tuple.items) {
      if (value(item).kind != Kind::kWhole || value(item).whole < 0) return false;
      out.push_back(static_cast<size_t>(value(item).whole));
    }
    return true;
  }

  ByteReader reader_;
  const std::string& name_;
  PickleGraph graph_;
  std::vector<uint32_t> stack_;
  std::vector<size_t> marks_;
  std::unordered_map<uint32_t, uint32_t> memo_;
  size_t items_ = 0;
  Error error_;
};

}  // namespace

Result<PickleGraph> parse_pickle(std::span<const std::byte> bytes, const std::string& name) {
  if (bytes.size() > kMaxBytes)
    return fail(Code::kLimitExceeded, "'{}': a pickle of {} bytes, the limit is {}", name, bytes.size(), kMaxBytes);
  return Machine(bytes, name).run();
}

}  // namespace syrinx
